"""`GET /metrics`, on a port where there is nothing else, or at a path of an ASGI application.

Invariant: one rendering runs at a time; every request that arrives meanwhile gets its page.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.server.limits import KIB, Limits

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PAGE_LIMITS = Limits(connections=64, body_bytes=64 * KIB, buffered_bytes=64 * 64 * KIB, drain_seconds=2)
"""The limits of the port: scrapers are few and send no bodies."""


class MetricsPage:
    """A service that answers `GET` and `HEAD` of one path, whatever the query, and rejects everything else.

    Args:
        render: returns the page.
        path: where it is.
    """

    def __init__(self, render: Callable[[], Awaitable[bytes]], path: str = "/metrics") -> None:
        self._render = render
        self._path = path
        self._running: asyncio.Task[bytes] | None = None

    async def respond(self, request: Request) -> Response:
        """See `Service`."""
        if request.path != self._path:
            return self.reject(request, ServiceError("ResourceNotFound"))
        if request.method not in ("GET", "HEAD"):
            response = self.reject(request, ServiceError("MethodNotAllowed"))
            response.headers.append(("Allow", "GET, HEAD"))
            return response
        return Response(200, [("Content-Type", CONTENT_TYPE), ("Cache-Control", "no-store")], await self._page())

    def reject(self, request: Request, error: ServiceError) -> Response:  # noqa: ARG002 - the interface has it
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
    """Retrieve the outcome, so that asyncio does not warn of a failure that no request waits for."""
    if not rendering.cancelled():
        rendering.exception()
