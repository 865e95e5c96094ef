"""An engine in a dictionary: quick, deterministic, and put back to a saved state between two inputs.

Rows are kept under the byte keys of the real store, so the order and the limits of keys are the real ones. It joins
the engines that the tests of the contract run against.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from lazulite.engine.commit import Commit, Needs
from lazulite.engine.commit_needs import commit_prepared
from lazulite.engine.contract import (
    UNKNOWN,
    Clock,
    EngineUnavailableError,
    JoinedKeys,
    Key,
    KeyRange,
    SpaceDroppedError,
    Unknown,
    Waiter,
)
from lazulite.engine.key_encoding import (
    SPACE_BYTES,
    decode_key,
    decode_keys,
    encode_key,
    join_keys,
    range_bounds,
    space_end,
    space_of,
    space_prefix,
)

T = TypeVar("T")


class State(NamedTuple):
    """All that an engine holds."""

    rows: dict[bytes, bytes]
    dropped: frozenset[int]
    timestamp: int


class Run(NamedTuple):
    """A `Slice`."""

    keys: list[bytes]
    values: list[bytes]

    def key(self, index: int) -> Key:
        return decode_key(self.keys[index])

    def columns(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `Slice`."""
        return decode_keys(self.keys)

    def joined(self, start: int) -> JoinedKeys:
        """See `Slice`."""
        return join_keys(self.keys[start:], SPACE_BYTES)

    def find(self, key: Key, start: int) -> int:
        """See `Slice`."""
        if start == len(self.keys):
            return start
        return bisect_left(self.keys, encode_key(space_of(self.keys[start]), *key), start)


class MemorySnapshot:
    """A `Snapshot`."""

    def __init__(self, rows: dict[bytes, bytes]) -> None:
        self._rows = rows

    async def keys(self, space: int, key_range: KeyRange, limit: int) -> list[Key]:
        lower, upper = range_bounds(space, key_range)
        return [decode_key(key) for key in sorted(key for key in self._rows if lower <= key < upper)[:limit]]

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        return [self._rows.get(encode_key(space, *key)) for key in keys]


class MemoryEngine:
    """An `Engine`. `writes` counts what changed it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[bytes, bytes] = {}
        self._dropped: frozenset[int] = frozenset()
        self._timestamp = 0
        self._closed = False
        self.writes = 0

    def state(self) -> State:
        """A copy of all there is."""
        return State(dict(self._rows), self._dropped, self._timestamp)

    def restore(self, state: State) -> None:
        """Go back to what `state` returned."""
        self._rows, self._dropped, self._timestamp = dict(state.rows), state.dropped, state.timestamp
        self.writes = 0

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailableError

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        self._check_open()
        return self._rows.get(encode_key(space, partition, row))

    reads_now, commits_now = True, False

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        return UNKNOWN if self._closed else self._rows.get(encode_key(space, partition, row))

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Run, None]:
        self._check_open()
        keys: list[bytes] = []
        for lower, upper in [range_bounds(space, each) for each in ranges]:
            keys += sorted(key for key in self._rows if lower <= key < upper)
        found = [(key, self._rows[key]) for key in keys[:limit]]
        for key, value in found:
            yield Run([key], [b"" if keys_only else value])
            await asyncio.sleep(0)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["MemorySnapshot"]:
        self._check_open()
        yield MemorySnapshot(dict(self._rows))

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        self._check_open()
        if space in self._dropped:
            raise SpaceDroppedError
        keys = {row: encode_key(space, partition, row) for row in commit.rows}
        timestamp = max(self._clock(), self._timestamp + 1)
        decision = commit.decide([self._rows.get(keys[row]) for row in commit.rows], timestamp)
        if not isinstance(decision, Needs) and not decision.changes.keys() <= keys.keys():
            decision = commit.naming(decision.changes)
        if isinstance(decision, Needs):
            return await commit_prepared(self, space, partition, commit, decision)
        for row, value in decision.changes.items():
            if value is None:
                self._rows.pop(keys[row], None)
            else:
                self._rows[keys[row]] = value
        for other, key, value, _ in decision.companions:
            if other in self._dropped:
                continue
            if value is None:
                self._rows.pop(encode_key(other, *key), None)
            else:
                self._rows[encode_key(other, *key)] = value
        if decision.changes or decision.companions:
            self._timestamp = timestamp
            self.writes += 1
        return decision.result

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> T | Unknown:
        """Return `UNKNOWN`, see `Engine.commit_now`."""
        return UNKNOWN

    async def drop(self, space: int) -> None:
        self._check_open()
        first, end = space_prefix(space), space_end(space)
        self._rows = {key: value for key, value in self._rows.items() if not first <= key < end}
        self._dropped |= {space}
        self.writes += 1

    async def check_writable(self) -> None:
        self._check_open()
        self._clock()

    async def close(self) -> None:
        self._closed = True
