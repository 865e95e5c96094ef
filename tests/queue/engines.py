"""An engine that counts its calls, and fails when a test wants it."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from lazulite.engine.commit import Commit
from lazulite.engine.contract import UNKNOWN, Engine, EngineUnavailableError, KeyRange, Slice, Snapshot, Unknown, Waiter

T = TypeVar("T")


class CountingEngine:
    """An `Engine` in front of another.

    Attributes:
        calls: by method, how many there were.
        fail_at: the number of the commit that fails, from 1; 0: none.
        applied: whether the failing commit is made all the same.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.calls: Counter[str] = Counter()
        self.fail_at = 0
        self.applied = False
        self.drops = True
        """Whether drops are made known at once, as in one process."""
        self.before_commit: Callable[[], Awaitable[None]] | None = None
        """Awaited before each commit."""

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """See `Engine`."""
        self.calls["get"] += 1
        return await self._engine.get(space, partition, row)

    @property
    def reads_now(self) -> bool:
        """See `Engine`."""
        return self._engine.reads_now

    @property
    def commits_now(self) -> bool:
        """See `Engine`."""
        return self._engine.commits_now

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        """See `Engine`."""
        return self._engine.get_now(space, partition, row)

    def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        """See `Engine`."""
        self.calls["scan"] += 1
        return self._engine.scan(space, ranges, limit, keys_only=keys_only)

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """See `Engine`."""
        return self._engine.snapshot()

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> T | Unknown:
        """Return `UNKNOWN`, so that `commit` does it."""
        return UNKNOWN

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        """See `Engine`."""
        if self.before_commit is not None:
            await self.before_commit()
        self.calls["commit"] += 1
        fails = self.calls["commit"] == self.fail_at
        if fails and not self.applied:
            raise EngineUnavailableError("as the test wants")
        result = await self._engine.commit(space, partition, commit)
        if fails:
            raise EngineUnavailableError("as the test wants")
        return result

    async def drop(self, space: int) -> None:
        """See `Engine`."""
        if self.drops:
            await self._engine.drop(space)

    async def check_writable(self) -> None:
        """See `Engine`."""

    async def close(self) -> None:
        """See `Engine`."""
