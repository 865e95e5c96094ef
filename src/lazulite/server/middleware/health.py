"""`GET /health`: whether the service can do its work; and in a browser, `GET /` (`landing_page`).

Invariants: one check runs at a time for all requests, and its result is kept for a second; a response waits for it no
longer than `seconds`; a service that is about to stop is not healthy, whatever the result of the check.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence

from lazulite.engine.write_check import KEPT_SECONDS, WriteCheck
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response, Service
from lazulite.server.middleware.landing_page import PATH as PAGE
from lazulite.server.middleware.landing_page import LandingPage

OPERATION = "Health"
PATH = "/health"
_OWN_PATHS = frozenset((PATH, PAGE))
STOPPING = "Stopping"
"""The status of a service that stops soon."""
_HEADERS = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]


class Health:
    """A service that answers `GET` and `HEAD` of `/health` without a query itself, and passes on other requests.

    Args:
        inner: the service behind this one.
        check: returns when all is well; raises otherwise. A `ServiceError`'s code, or else the exception's type, is
            the reason that the answer gives.
        seconds: how long one asker waits.
        kept_seconds: how long a result stands.
        away: returns the names of parts that the service can do without and that the last check did not reach.
        clock: monotonic seconds.
        page: what a browser gets at `/`; None: what the service answers.
    """

    def __init__(
        self,
        inner: Service,
        check: Callable[[], Awaitable[None]],
        seconds: float = 5,
        kept_seconds: float = KEPT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        away: Callable[[], Sequence[str]] = tuple,
        page: LandingPage | None = None,
    ) -> None:
        self._away = away
        self._page = page
        self._inner = inner
        self._check = WriteCheck(check, kept_seconds, clock)
        self._seconds = seconds
        self._stopping = False

    def leave(self) -> None:
        """Respond from now on that the service stops soon."""
        self._stopping = True

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`."""
        if request.path in _OWN_PATHS:
            if _is_check(request):
                return self._answer(request)
            page = self._shown(request)
            if page is not None:
                return page
        return self._inner.respond(request)

    def _shown(self, request: Request) -> Response | None:
        return self._page.response(request) if self._page is not None and request.path == PAGE else None

    async def _answer(self, request: Request) -> Response:
        request.record.operation = OPERATION
        reason = await self._reason()
        if reason:
            return Response(503, list(_HEADERS), b'{"status":"%b"}' % reason.encode("ascii", "replace"), reason)
        body = {"status": "ok", "away": [*away]} if (away := self._away()) else {"status": "ok"}
        return Response(200, list(_HEADERS), json.dumps(body, separators=(",", ":")).encode())

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.reject(request, error)

    async def _reason(self) -> str:
        """Return in one word why the service is not healthy; empty when it is."""
        if self._stopping:
            return STOPPING
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


def _is_check(request: Request) -> bool:
    return request.path == PATH and not request.query and request.method in ("GET", "HEAD")
