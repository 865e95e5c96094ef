"""What connections wait for and how long: one coarse timer for all, instead of a timer for each.

Invariant: a deadline is acted upon at the first tick after it, so at most one tick late and never early.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

TICK_SECONDS = 1.0


class Watched(Protocol):
    """Something with a deadline on the monotonic clock, in seconds."""

    deadline_s: float

    def on_timeout(self) -> None:
        """Act: the deadline has passed. It is called at each tick until there is a new one."""
        ...


class Sweeper:
    """Ticks over a collection of expiring things.

    Args:
        watched: looked through at each tick; may change at any time.
        clock: the monotonic clock, in seconds.
        on_tick: called at each tick.
    """

    def __init__(
        self, watched: Collection[Watched], clock: Callable[[], float], on_tick: Callable[[], None] = lambda: None
    ) -> None:
        self._watched = watched
        self._clock = clock
        self._on_tick = on_tick
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
            due.on_timeout()

    def _tick(self) -> None:
        self.start()
        self.sweep()
        self._on_tick()
