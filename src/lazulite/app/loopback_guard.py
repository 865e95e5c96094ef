"""The machine's bounds for the public development key, where no listening address can be checked at the start."""

from collections.abc import Callable, Coroutine

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response, Service
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

    def handle(self, request: Request) -> Coroutine[object, object, Response]:
        """See `Service`."""
        return self._inner.handle(request) if self._passes(request) else self._rejected(request)

    def at_once(self, request: Request) -> Response | None:
        """See `Service`."""
        return self._inner.at_once(request) if self._passes(request) else None

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.reject(request, error)

    def _passes(self, request: Request) -> bool:
        return not request.client or is_loopback(request.client) or not self._guarded()

    async def _rejected(self, request: Request) -> Response:
        return self._inner.reject(request, ServiceError("AuthorizationFailure"))
