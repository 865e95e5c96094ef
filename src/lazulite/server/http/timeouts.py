"""What connections wait for and how long: one coarse timer for all, instead of a timer for each.

Invariant: a deadline is acted upon at the first tick after it, so at most one tick late and never early.
"""

import asyncio
from collections.abc import Callable, Collection
from enum import Enum
from typing import Protocol

TICK_SECONDS = 1.0


class Phase(Enum):
    """What a connection is waiting for; the value names the limit of that wait."""

    IDLE = "keep_alive_idle_seconds"
    NEWCOMER = "newcomer_seconds"
    HEAD = "header_read_seconds"
    BODY = "body_read_seconds"
    SERVICE = "request_seconds"
    READER = "write_stall_seconds"
    LINGER = "linger_seconds"
    FAREWELL = "farewell_seconds"

    def __init__(self, limit: str) -> None:
        self.limit = limit


class Expiring(Protocol):
    """Something with a deadline on the monotonic clock, in seconds."""

    deadline_s: float

    def expire(self) -> None:
        """Act: the deadline has passed. Sets a new one."""
        ...


class Sweeper:
    """Ticks over a collection of expiring things.

    Args:
        watched: looked through at each tick; may change at any time.
        clock: the monotonic clock, in seconds.
    """

    def __init__(self, watched: Collection[Expiring], clock: Callable[[], float]) -> None:
        self._watched = watched
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Tick from now on, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sweep(self) -> None:
        """Expire what is due now."""
        now_s = self._clock()
        for due in [each for each in self._watched if each.deadline_s <= now_s]:
            due.expire()

    def _tick(self) -> None:
        self.start()
        self.sweep()
