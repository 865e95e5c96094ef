"""The hosts that are answered while a service has a key that is public.

A web page can lead a name of its own to an address of this machine (DNS rebinding). For a browser, requests to that
name are then the page's own, and the public key signs them. The name stands in `Host`: a request is rejected unless its
host is an IP address, a name below `localhost`, or a name that the operator gave.

A request without a host passes: it is HTTP/1.0, which no browser speaks.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_address

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response, Service
from lazulite.protocol.template import Answer, HeadValues

REPORTS_MAX = 16
"""How many rejected hosts are reported."""
_HOST_LENGTH_MAX = 253 + len(".:65535")
"""The longest DNS name, its dot and a port."""
_LOCAL = "localhost"


class HostGuard:
    """A service that rejects requests for unknown hosts with `InvalidHeaderValue`, and passes on all other requests.

    Implements `Watcher`.

    Args:
        inner: the service behind this one.
        guarded: whether hosts matter now: whether the service has a public key.
        names: hosts that are known.
        suffixes: names that are known together with all names below them; `localhost` always is.
        report: takes a line for people about each of the first hosts that are rejected.
    """

    def __init__(
        self,
        inner: Service,
        guarded: Callable[[], bool],
        *,
        names: Iterable[str],
        suffixes: Iterable[str],
        report: Callable[[str], None],
    ) -> None:
        self._inner = inner
        self._guarded = guarded
        known = (_LOCAL, *suffixes)
        self._names = frozenset((*known, *(name.lower() for name in names)))
        self._endings = tuple(f".{suffix}" for suffix in known)
        self._report = report
        self._reported: set[str] = set()
        self._knows = lru_cache(maxsize=1024)(self._is_known)

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`. A template for an unknown host answers as long as hosts do not matter."""
        host = request.headers.get("host")
        if host is not None and not self._is_right(host):
            if self._guarded():
                return self._rejected(request)
            request.watchers += (self,)
        return self._inner.respond(request)

    def admits(self, _: HeadValues) -> bool:
        """See `Watcher`: hosts do not matter."""
        return not self._guarded()

    def answered(self, _: HeadValues, __: Answer) -> None:
        """See `Watcher`."""

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.reject(request, error)

    def _is_right(self, host: str) -> bool:
        return len(host) <= _HOST_LENGTH_MAX and self._knows(host)

    def _rejected(self, request: Request) -> Response:
        host = request.headers.get("host", "")
        name = _name(host)
        if len(host) <= _HOST_LENGTH_MAX and name not in self._reported and len(self._reported) < REPORTS_MAX:
            self._reported.add(name)
            self._report(
                f"rejected a request for the host {name}: with the public development key, only IP addresses, "
                f"localhost and names that are given are served (--allowed-host {name})"
            )
        return self._inner.reject(request, ServiceError("InvalidHeaderValue"))

    def _is_known(self, host: str) -> bool:
        name = _name(host)
        return name in self._names or name.endswith(self._endings) or _is_address(name)


def _name(host: str) -> str:
    """Return a host without its port, and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
