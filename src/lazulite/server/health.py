"""`GET /health`: whether the service can do its work.

Invariants: one check runs at a time, however many ask, and nobody waits for it longer than `seconds`; once the service
is about to stop it is not well, whatever the check would say.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response, Service

OPERATION = "Health"
LEAVING = "Stopping"
"""What is said of a service that stops soon."""
_HEADERS = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]


class Health:
    """A service that answers `GET` and `HEAD` of `/health` without a query itself, and hands on everything else.

    Args:
        inner: what it hands on to.
        check: returns when all is well; raises otherwise. A `ServiceError`'s code, or else the exception's type, is
            the reason that the answer gives.
        seconds: how long one asker waits.
    """

    def __init__(self, inner: Service, check: Callable[[], Awaitable[None]], seconds: float = 5) -> None:
        self._inner = inner
        self._check = check
        self._seconds = seconds
        self._running: asyncio.Task[None] | None = None
        self._leaving = False

    def leave(self) -> None:
        """Say from now on that the service is not well, because it stops soon."""
        self._leaving = True

    def handle(self, request: Request) -> Coroutine[object, object, Response]:
        """See `Service`."""
        if request.path != "/health" or request.query or request.method not in ("GET", "HEAD"):
            return self._inner.handle(request)
        return self._answer(request)

    async def _answer(self, request: Request) -> Response:
        request.operation = OPERATION
        reason = await self._reason()
        if reason:
            return Response(503, list(_HEADERS), b'{"status":"%b"}' % reason.encode("ascii", "replace"), reason)
        return Response(200, list(_HEADERS), b'{"status":"ok"}')

    def refuse(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.refuse(request, error)

    async def _reason(self) -> str:
        """Return why the service is not well, in one word; empty when it is."""
        if self._leaving:
            return LEAVING
        running = self._running
        if running is None or running.done():
            self._running = running = asyncio.ensure_future(self._run())
            running.add_done_callback(_seen)
        await asyncio.wait([running], timeout=self._seconds)
        if not running.done():
            return "Timeout"
        if running.cancelled():
            return "Cancelled"
        failure = running.exception()
        if failure is None:
            return ""
        return failure.code if isinstance(failure, ServiceError) else type(failure).__name__

    async def _run(self) -> None:
        await self._check()


def _seen(check: asyncio.Task[None]) -> None:
    """Look at the outcome, lest asyncio warns of a failure that everybody was too impatient to hear of."""
    if not check.cancelled():
        check.exception()
