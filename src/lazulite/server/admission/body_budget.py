"""Memory for the bodies of requests whose credentials were found good: those that find it full wait for room.

Room is reserved for a whole body before the body is read. So each body that has begun to come can come to its end, and
no two half-read ones wait for each other.

Invariants: room is given in the order in which it was asked for; what is reserved exceeds `bytes_max` only by bodies
that were there before they could be asked for (`take`).
"""

import asyncio
from collections import deque
from collections.abc import Callable


class BodyBudget:
    """Keeps count of reserved memory.

    Args:
        bytes_max: the bound of the total.

    Attributes:
        held_bytes: what is reserved now.
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
        """Give room back, to the requests that wait for it."""
        self.held_bytes -= count
        self._admit()

    @property
    def is_crowded(self) -> bool:
        """Whether requests wait for room."""
        return bool(self._waiting)

    async def reserve(self, count: int, seconds: float, wait: Callable[[], "asyncio.Future[bool]"]) -> bool:
        """Return True once room for so many bytes is reserved, False once it is needed no more.

        Args:
            count: bytes.
            seconds: how long to wait at most.
            wait: makes the future to wait for; the caller sets it to False when the room is needed no more.

        Raises:
            TimeoutError: there was no room in time.
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
                self.held_bytes -= count  # The room came at the same moment as the end of the wait.
            raise
        finally:
            self._admit()

    def _fits(self, count: int) -> bool:
        """Say whether there is room; a body larger than the bound fits when no other is there."""
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
