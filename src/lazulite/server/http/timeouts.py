"""What connections wait for and how long: one coarse timer for all, and the pace of a body, which each tick looks at.

Invariants:
- A deadline is acted upon at the first tick after it, so at most one tick late and never early.
- Of a body, only progress counts, never the total: a body of any length may come for as long as it comes. The time in
  which the service works on what has come, or the server has no room, is not the client's.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

from lazulite.server.limits import Limits

TICK_SECONDS = 1.0


class TimedConnection(Protocol):
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
        self,
        watched: Collection[TimedConnection],
        clock: Callable[[], float],
        on_tick: Callable[[], None] = lambda: None,
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


class BodyPace:
    """The pace of one body.

    Args:
        limits: the bounds.
    """

    __slots__ = ("_awaited_s", "_limits", "_progress_s", "_received_bytes", "_since_s")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._awaited_s = 0.0
        self._since_s = 0.0
        self._progress_s = 0.0
        self._received_bytes = -1

    def await_more(self, now_s: float) -> None:
        """Begin to wait."""
        self._since_s = self._progress_s = now_s

    def end_wait(self, now_s: float) -> None:
        """Wait no more, for a while or forever."""
        self._awaited_s += now_s - self._since_s

    def shift(self, seconds: float) -> None:
        """Take time out of the wait that was not the client's."""
        self._since_s += seconds
        self._progress_s += seconds

    def is_too_slow(self, received_bytes: int, now_s: float, *, crowded: bool) -> bool:
        """Return whether to give the body up, of which so much has come; while it is crowded it has to come fast."""
        limits = self._limits
        if received_bytes != self._received_bytes:
            self._received_bytes, self._progress_s = received_bytes, now_s
        took_s = self._awaited_s + now_s - self._since_s
        asked_bytes = (took_s - limits.slow_body_seconds) * limits.body_bytes_per_second
        if crowded:
            asked_bytes = max(asked_bytes, (took_s - TICK_SECONDS) * limits.crowded_body_bytes_per_second)
        return received_bytes < asked_bytes or now_s - self._progress_s >= limits.body_stall_seconds
