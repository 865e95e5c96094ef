"""The durable write of a health check, shared: anyone may ask for it, at no price, as often as they like.

Invariants: one write is on its way at a time; its result, good or bad, stands for `kept_seconds` after it came.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

KEPT_SECONDS = 1.0


class WriteCheck:
    """Share a durable write among all who ask within a while.

    Args:
        write: makes the write; raises if it fails.
        kept_seconds: how long its result stands.
        clock: monotonic seconds.
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
        """Return the write on its way, or the latest one whose result stands, or a new one. Do not cancel it."""
        latest = self._latest
        if latest is None or (latest.done() and self._clock() >= self._expires_s):
            self._latest = latest = asyncio.ensure_future(self._run())
            latest.add_done_callback(_look)
        return latest

    async def passed(self) -> None:
        """Return if the write succeeds.

        Raises:
            EngineError: it failed.
        """
        await asyncio.shield(self.start())

    async def _run(self) -> None:
        try:
            await self._write()
        finally:
            self._expires_s = self._clock() + self._kept_seconds


def _look(done: "asyncio.Task[None]") -> None:
    """Look at the outcome, lest asyncio warns of a failure that nobody waited for."""
    if not done.cancelled():
        done.exception()
