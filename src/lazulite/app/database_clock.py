"""A database's time, known to a process between the moments when it asks.

Invariant: between two answers the time goes by as on this machine. An answer tells the database's time at some moment
between question and answer. The clock stays as it is while that is possible, and else moves to the nearest time that
is. It may step back; what needs a time that does not (`queue.model.rising_clock.RisingClock`) stands still meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from lazulite.engine.contract import EngineError
from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS, ticks_since_boot

ASK_SECONDS = 10.0


class DatabaseClock:
    """A `Clock`. `ask` comes first.

    Args:
        unix_seconds: asks for the database's time.
        since_boot: how long this machine has been running, in ticks.
    """

    def __init__(
        self, unix_seconds: Callable[[], Awaitable[float]], since_boot: Callable[[], int] = ticks_since_boot
    ) -> None:
        self._unix_seconds = unix_seconds
        self._since_boot = since_boot
        self._boot_tick: int | None = None
        """When this machine booted, by the database's time."""

    def __call__(self) -> int:
        """See `Clock`."""
        assert self._boot_tick is not None
        return self._boot_tick + self._since_boot()

    async def ask(self) -> None:
        """Ask for the time.

        Raises:
            EngineError: the database did not answer.
        """
        asked = self._since_boot()
        reported = int(await self._unix_seconds() * TICKS_PER_SECOND) + UNIX_EPOCH_TICKS
        earliest, latest = reported - self._since_boot(), reported - asked
        known = (earliest + latest) // 2 if self._boot_tick is None else self._boot_tick
        self._boot_tick = min(max(known, earliest), latest)

    async def run(self) -> None:
        """Ask every `ASK_SECONDS`, for ever."""
        while True:
            await asyncio.sleep(ASK_SECONDS)
            with suppress(EngineError):
                await self.ask()
