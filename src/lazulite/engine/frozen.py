"""An engine that reads the rows of an earlier moment, and writes to the store of now."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TypeVar

from lazulite.engine.commit import Commit
from lazulite.engine.contract import UNKNOWN, Engine, KeyRange, Slice, Snapshot, Unknown, Waiter
from lazulite.engine.key_encoding import encode_key
from lazulite.engine.rocksdb.scan import RowSlice

T = TypeVar("T")

_ROWS_MAX = 64


class FrozenEngine:
    """Implements `Engine`.

    Args:
        live: the store of now.
        snapshot: of it, whose calls do not wait for one another.
        opened: closes the snapshot.
    """

    reads_now = commits_now = False

    def __init__(self, live: Engine, snapshot: Snapshot, opened: AsyncExitStack) -> None:
        self._live = live
        self._snapshot = snapshot
        self._opened = opened

    @classmethod
    async def of(cls, live: Engine) -> "FrozenEngine":
        """Return the engine with the rows of now, to be closed."""
        async with AsyncExitStack() as stack:
            snapshot = await stack.enter_async_context(live.snapshot())
            return cls(live, snapshot, stack.pop_all())

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """See `Engine`."""
        (value,) = await self._snapshot.values(space, [(partition, row)])
        return value

    def get_now(self, space: int, partition: str, row: str) -> Unknown:  # noqa: ARG002 - the contract's
        """Return `UNKNOWN`, see `Engine`."""
        return UNKNOWN

    async def scan(
        self,
        space: int,
        ranges: Sequence[KeyRange],
        limit: int | None = None,
        *,
        keys_only: bool = False,  # noqa: ARG002 - values do no harm
    ) -> AsyncGenerator[Slice, None]:
        """See `Engine`."""
        left = limit
        for lower, upper in ranges:
            start = lower
            while left is None or left > 0:
                most = _ROWS_MAX if left is None else min(left, _ROWS_MAX)
                keys = await self._snapshot.keys(space, KeyRange(start, upper), most)
                values = await self._snapshot.values(space, keys)
                rows = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
                yield RowSlice([encode_key(space, *key) for key, _ in rows], [value for _, value in rows])
                left = None if left is None else left - len(keys)
                if len(keys) < most:
                    break
                partition, row = keys[-1]
                start = partition, f"{row}\0"

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        """See `Engine`."""
        return await self._live.commit(space, partition, commit)

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> T | Unknown:
        """See `Engine`."""
        return self._live.commit_now(space, partition, commit, waiter)

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """See `Engine`: of now."""
        return self._live.snapshot()

    async def drop(self, space: int) -> None:
        """See `Engine`."""
        await self._live.drop(space)

    async def check_writable(self) -> None:
        """See `Engine`."""
        await self._live.check_writable()

    async def close(self) -> None:
        """Release the rows; the live store stays open."""
        await self._opened.aclose()
