"""`GET /metrics`, on a port where there is nothing else.

Invariant: one rendering runs at a time, however many ask; whoever asks meanwhile gets what it makes.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.server.limits import KIB, Limits

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PAGE_LIMITS = Limits(connections=64, body_bytes=64 * KIB, buffered_bytes=64 * 64 * KIB, drain_seconds=2)
"""Of the port: scrapers are few and send no bodies."""


class MetricsPage:
    """A service that answers `GET` and `HEAD` of `/metrics`, whatever the query, and refuses everything else.

    Args:
        render: returns the page.
    """

    def __init__(self, render: Callable[[], Awaitable[bytes]]) -> None:
        self._render = render
        self._running: asyncio.Task[bytes] | None = None

    async def handle(self, request: Request) -> Response:
        """See `Service`."""
        if request.path != "/metrics":
            return self.refuse(request, ServiceError("ResourceNotFound"))
        if request.method not in ("GET", "HEAD"):
            response = self.refuse(request, ServiceError("MethodNotAllowed"))
            response.headers.append(("Allow", "GET, HEAD"))
            return response
        return Response(200, [("Content-Type", CONTENT_TYPE), ("Cache-Control", "no-store")], await self._page())

    def refuse(self, request: Request, error: ServiceError) -> Response:  # noqa: ARG002 - the interface has it
        """See `Service`."""
        return Response(error.status, [("Content-Type", "text/plain")], f"{error.code}\n".encode(), error.code)

    async def _page(self) -> bytes:
        running = self._running
        if running is None or running.done():
            self._running = running = asyncio.ensure_future(self._rendered())
            running.add_done_callback(_seen)
        return await asyncio.shield(running)

    async def _rendered(self) -> bytes:
        return await self._render()


def _seen(rendering: asyncio.Task[bytes]) -> None:
    """Look at the outcome, lest asyncio warns of a failure that nobody waits to hear of any more."""
    if not rendering.cancelled():
        rendering.exception()
