"""A bounded window of concurrent commits, reported as durable in the order in which they were added.

Invariant: `on_durable` is called in the order of `add` for each commit that succeeded, up to the first that failed.
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
    label: T


class CommitWindow(Generic[T]):
    """Run commits concurrently inside an `async with` block. Await all at its end; cancel all if the block fails."""

    def __init__(self, on_durable: Callable[[T], None]) -> None:
        """`on_durable` is called with the label of each durable commit."""
        self._on_durable = on_durable
        self._tasks: deque[_InFlight[T]] = deque()
        self._bytes = 0

    async def add(self, commit: Coroutine[object, object, None], size_bytes: int, label: T) -> None:
        """Start a commit as soon as there is room. Raise the error of an earlier commit."""
        try:
            while self._tasks and (self._tasks[0].commit.done() or self._full(size_bytes)):
                await self._await_oldest()
        except BaseException:
            commit.close()
            raise
        self._tasks.append(_InFlight(asyncio.create_task(commit), size_bytes, label))
        self._bytes += size_bytes

    def _full(self, size_bytes: int) -> bool:
        return len(self._tasks) >= COUNT_MAX or self._bytes + size_bytes > BYTES_MAX

    async def _await_oldest(self) -> None:
        oldest = self._tasks[0]
        await oldest.commit
        self._tasks.popleft()
        self._bytes -= oldest.size_bytes
        self._on_durable(oldest.label)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            while error is None and self._tasks:
                await self._await_oldest()
        finally:
            tasks = [each.commit for each in self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
