"""The time slice of long work: how long it may hold the event loop before other tasks run.

Whatever works for long calls `await time_slice.checkpoint()` between two short steps. A checkpoint yields to the event
loop (`asyncio.sleep(0)`), and only there; `server.admission.scheduler` delays the resumption of work that has exceeded
its share, and needs no other cooperation. An engine limits a slice of a scan by its own clock instead: reading the next
rows is one call of the database, between whose rows nothing can be awaited.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lazulite.protocol.steps import Steps

T = TypeVar("T")


class TimeSlice:
    """A time slice; it begins with this object, and again with each checkpoint that yields.

    Args:
        seconds: the length of a slice.
        monotonic: a clock in seconds that never steps back.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._ends = monotonic() + seconds

    async def checkpoint(self) -> float:
        """Yield to other tasks if the slice is used up. Return the time before that, in seconds of the clock."""
        now = self._monotonic()
        if now >= self._ends:
            await asyncio.sleep(0)
            self._ends = self._monotonic() + self._seconds
        return now

    async def run(self, steps: Steps[T]) -> T:
        """Run work with a checkpoint after each step, and return its result. Raises what the work raises."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            if self._monotonic() >= self._ends:  # Without a coroutine for each step.
                await self.checkpoint()
