"""Several services on one port: the host of a request tells which service it is for.

A request whose host names no service's account goes to the first service, path style.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response, Service


class HostedService(NamedTuple):
    """A service, and the hosts that it has."""

    has: Callable[[str], bool]
    """Takes a `Host` field."""
    service: Service


class ByHost:
    """A service that passes each request on to one of several.

    Args:
        hosted: the services; no host is of two. The first one has all hosts that no service has.
    """

    def __init__(self, hosted: Sequence[HostedService]) -> None:
        self._hosted = tuple(hosted)
        self._first = self._hosted[0].service

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`."""
        return self._service(request).respond(request)

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._service(request).reject(request, error)

    def _service(self, request: Request) -> Service:
        host = request.headers.get("host", "")
        return next((service for has, service in self._hosted if has(host)), self._first)
