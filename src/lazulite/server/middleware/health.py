"""`GET /health`: whether the service can do its work.

Invariants: however many ask, one check runs at a time, and its result stands for a second; an answer waits for it no
longer than `seconds`; once the service is about to stop it is not well, whatever the check would say.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine

from lazulite.engine.write_check import KEPT_SECONDS, WriteCheck
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
        kept_seconds: how long a result stands.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        inner: Service,
        check: Callable[[], Awaitable[None]],
        seconds: float = 5,
        kept_seconds: float = KEPT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._check = WriteCheck(check, kept_seconds, clock)
        self._seconds = seconds
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
        running = self._check.start()
        await asyncio.wait([running], timeout=self._seconds)
        if not running.done():
            return "Timeout"
        if running.cancelled():
            return "Cancelled"
        failure = running.exception()
        if failure is None:
            return ""
        return failure.code if isinstance(failure, ServiceError) else type(failure).__name__
