"""An engine that reads the rows of an earlier moment, and writes to the store of now."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from lazulite.engine.commit import Commit
from lazulite.engine.contract import (
    UNKNOWN,
    Engine,
    EngineUnavailableError,
    Key,
    KeyRange,
    Slice,
    Snapshot,
    Unknown,
    Waiter,
)
from lazulite.engine.key_encoding import encode_key
from lazulite.engine.rocksdb.scan import RowSlice

T = TypeVar("T")

_ROWS_MAX = 64
_ALL = KeyRange(("", ""), None)


class HeldSnapshot:
    """A `Snapshot` that is held for longer than a request, and that several requests read at a time.

    It is released by the first call that fails: a database forgets a snapshot with the connection.

    Args:
        snapshot: makes one call at a time.
        opened: closes the snapshot, and gives its errors their types.
    """

    def __init__(self, snapshot: Snapshot, opened: AsyncExitStack) -> None:
        self._snapshot = snapshot
        self._opened: AsyncExitStack | None = opened
        self._turn = asyncio.Lock()

    @classmethod
    async def of(cls, engine: Engine, stack: AsyncExitStack | None = None) -> "HeldSnapshot":
        """Return a snapshot of now.

        Args:
            engine: has the rows.
            stack: closed with the snapshot, and by an error.
        """
        async with stack or AsyncExitStack() as opened:
            snapshot = await opened.enter_async_context(engine.snapshot())
            await snapshot.keys(0, _ALL, 1)  # A database takes its snapshot with the first statement.
            return cls(snapshot, opened.pop_all())

    async def keys(self, space: int, key_range: KeyRange, limit: int) -> list[Key]:
        """See `Snapshot`."""
        return await self._read(lambda: self._snapshot.keys(space, key_range, limit))

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        """See `Snapshot`."""
        return await self._read(lambda: self._snapshot.values(space, keys)) if keys else []

    async def close(self) -> None:
        """Release the rows."""
        async with self._turn:
            opened, self._opened = self._opened, None
            if opened is not None:
                await opened.aclose()

    async def _read(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Read, also if the caller is cancelled meanwhile: that would end the snapshot for all others."""
        return await asyncio.shield(self._read_in_turn(call))

    async def _read_in_turn(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._turn:
            opened = self._opened
            if opened is None:
                raise EngineUnavailableError("the earlier rows are gone")
            try:
                return await call()
            except Exception as error:
                self._opened = None
                await opened.__aexit__(
                    type(error), error, error.__traceback__
                )  # It raises the error, or that of a type.
                raise


class FrozenEngine:
    """Implements `Engine`.

    Args:
        live: the store of now.
        snapshot: has the rows that are read.
    """

    reads_now = commits_now = False

    def __init__(self, live: Engine, snapshot: Snapshot) -> None:
        self._live = live
        self._snapshot = snapshot

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
        """Do nothing: the live store stays open, and so do the rows."""
