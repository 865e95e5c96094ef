"""The machine's bounds for the public development key, where no listening address can be checked at the start."""

from collections.abc import Callable

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response, Service
from lazulite.settings.config import is_loopback


class LoopbackGuard:
    """A service that rejects clients of other machines with `AuthorizationFailure`, and hands on all others.

    A request without a client's address passes: it came through a socket of this machine's file system.

    Args:
        inner: the service behind the guard.
        guarded: whether the service has the public key now.
    """

    def __init__(self, inner: Service, guarded: Callable[[], bool]) -> None:
        self._inner = inner
        self._guarded = guarded

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`."""
        if self._passes(request):
            return self._inner.respond(request)
        return self._inner.reject(request, ServiceError("AuthorizationFailure"))

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.reject(request, error)

    def _passes(self, request: Request) -> bool:
        return not request.client or is_loopback(request.client) or not self._guarded()
