"""The memory that bodies of authenticated requests share; a request waits while the budget is exhausted.

Memory is reserved for a whole body before the body is read. So each body that is being received can be completed, and
no two incomplete bodies wait for each other.

Invariants: reservations are granted first come, first served. The total exceeds `bytes_max` only by bodies that were in
memory before they could be reserved (`take`), and by a single body larger than the bound.
"""

import asyncio
from collections import deque
from collections.abc import Callable

SMALL_BODY_BYTES = 16 * 1024
"""A body of this length, or a shorter one, does not wait for the budget."""


class BodyBudget:
    """Counts reserved memory.

    Args:
        bytes_max: the bound of the total.

    Attributes:
        held_bytes: the bytes reserved now.
    """

    __slots__ = ("_bytes_max", "_waiting", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._waiting: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self.held_bytes = 0

    def take(self, count: int) -> None:
        """Account for a body that is in memory already."""
        self.held_bytes += count

    def release(self, count: int) -> None:
        """Return bytes to the budget, and admit waiting requests."""
        self.held_bytes -= count
        self._admit()

    @property
    def is_crowded(self) -> bool:
        """Whether requests wait for the budget."""
        return bool(self._waiting)

    async def reserve(self, count: int, seconds: float, wait: Callable[[], "asyncio.Future[bool]"]) -> bool:
        """Return True once so many bytes are reserved, False if the reservation is no longer needed.

        Args:
            count: bytes.
            seconds: the longest wait.
            wait: makes the future to wait for; the caller sets it to False to give the reservation up.

        Raises:
            TimeoutError: the budget stayed exhausted.
        """
        if not self._waiting and self._fits(count):
            self.held_bytes += count
            return True
        admitted = wait()
        self._waiting.append((count, admitted))
        try:
            async with asyncio.timeout(seconds):
                return await admitted
        except BaseException:
            if admitted.done() and not admitted.cancelled() and admitted.result():
                self.held_bytes -= count  # Granted in the same step in which the wait ended.
            raise
        finally:
            self._admit()

    def _fits(self, count: int) -> bool:
        """Tell whether so many bytes fit; a body larger than the bound fits when no other is held."""
        return self.held_bytes + count <= self._bytes_max or not self.held_bytes

    def _admit(self) -> None:
        waiting = self._waiting
        while waiting:
            count, admitted = waiting[0]
            if not admitted.done():
                if not self._fits(count):
                    return
                self.held_bytes += count
                admitted.set_result(True)
            waiting.popleft()
