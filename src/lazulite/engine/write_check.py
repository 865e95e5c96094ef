"""The durable write of a health check, shared by all requests: health checks need no credentials, and must cost little.

Invariants: one write is in flight at a time. Its result, good or bad, is kept for `kept_seconds`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

KEPT_SECONDS = 1.0


class WriteCheck:
    """Share one durable write among the callers of a short time.

    Args:
        write: makes the write; raises if it fails.
        kept_seconds: how long its result is kept.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        write: Callable[[], Awaitable[None]],
        kept_seconds: float = KEPT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._kept_seconds = kept_seconds
        self._clock = clock
        self._latest: asyncio.Task[None] | None = None
        self._expires_s = 0.0

    def start(self) -> "asyncio.Task[None]":
        """Return the write in flight, or the latest one if its result is kept, or a new one. Do not cancel it."""
        latest = self._latest
        if latest is None or (latest.done() and self._clock() >= self._expires_s):
            self._latest = latest = asyncio.ensure_future(self._run())
            latest.add_done_callback(_retrieve)
        return latest

    async def passed(self) -> None:
        """Return once the shared write succeeds.

        Raises:
            EngineError: the write failed.
        """
        await asyncio.shield(self.start())

    async def _run(self) -> None:
        try:
            await self._write()
        finally:
            self._expires_s = self._clock() + self._kept_seconds


def _retrieve(done: "asyncio.Task[None]") -> None:
    """Retrieve the outcome: asyncio warns of failures that are never retrieved."""
    if not done.cancelled():
        done.exception()
