"""A turn of the event loop: long work gives others theirs, now and then."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lazulite.protocol.steps import Steps

T = TypeVar("T")


class Turn:
    """The turn that some work has; it begins with this object.

    Args:
        seconds: how long it is.
        monotonic: counts seconds.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._ends = monotonic() + seconds

    @property
    def over(self) -> bool:
        """Whether it is time to let others have theirs: `look` does."""
        return self._monotonic() >= self._ends

    async def look(self) -> float:
        """Return the time; if the turn is over, let others have theirs and begin a new one."""
        now = self._monotonic()
        if now >= self._ends:
            await asyncio.sleep(0)
            self._ends = self._monotonic() + self._seconds
        return now

    async def through(self, steps: Steps[T]) -> T:
        """Do some work, other requests having their turns between its steps. Raises what the work raises."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            if self.over:
                await self.look()
