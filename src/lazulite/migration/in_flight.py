"""Commits in flight: many at a time, but boundedly many, and known to be durable in the order in which they came.

Invariant: `behind` is called for each commit that succeeded, in the order of `add`, and for none that comes after one
that failed.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

COUNT_MAX = 256
BYTES_MAX = 16 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _InFlight(Generic[T]):
    commit: asyncio.Task[None]
    size_bytes: int
    what: T


class Window(Generic[T]):
    """What is in flight, inside an `async with` block. At its end everything is durable; if it fails, broken off."""

    def __init__(self, behind: Callable[[T], None]) -> None:
        """`behind` is told of what is durable."""
        self._behind = behind
        self._tasks: deque[_InFlight[T]] = deque()
        self._bytes = 0

    async def add(self, commit: Coroutine[object, object, None], size_bytes: int, what: T) -> None:
        """Begin a commit as soon as there is room. Raises what an earlier one raised."""
        try:
            while self._tasks and (self._tasks[0].commit.done() or self._full(size_bytes)):
                await self._settle()
        except BaseException:
            commit.close()
            raise
        self._tasks.append(_InFlight(asyncio.create_task(commit), size_bytes, what))
        self._bytes += size_bytes

    def _full(self, size_bytes: int) -> bool:
        return len(self._tasks) >= COUNT_MAX or self._bytes + size_bytes > BYTES_MAX

    async def _settle(self) -> None:
        oldest = self._tasks[0]
        await oldest.commit
        self._tasks.popleft()
        self._bytes -= oldest.size_bytes
        self._behind(oldest.what)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            while error is None and self._tasks:
                await self._settle()
        finally:
            tasks = [each.commit for each in self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
