"""Stores for copies: made by hypothesis, on any engine, and engines that break off."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st

from lazulite.auth.accounts.document import Accounts, Change
from lazulite.engine.commit import Commit, changing
from lazulite.engine.contract import UNKNOWN, Engine, EngineError, Key, KeyRange, Slice, Snapshot, Unknown, Waiter
from lazulite.engine.ordinal import ordinal
from lazulite.migration.endpoint import Endpoint
from lazulite.migration.monotonic_clock import MonotonicClock
from lazulite.records.spaces import COPIES, COUNTERS, FIRST_FREE_SPACE, SERVICE_PROPERTIES, TABLES
from lazulite.table.catalog import Table

NOW = 134_000_000_000_000_000
"""A time in ticks, in 2025."""
FUTURE = NOW + 10**15

Rows = dict[Key, bytes]
Contents = dict[int, Rows]

_SHORT = ("", "\0", "a", "a\0", "ab", "b", "é", "\ud7ff", "\ue000", "￿", "\U00010000")
_LONG = ("x" * 1024, "x" * 1023 + "y", "x" * 1023, "\U00010000" * 512)
texts = st.sampled_from(_SHORT) | st.sampled_from(_LONG)
keys = st.tuples(texts, texts)

T = TypeVar("T")


def entity(ticks: int, text: bytes = b"") -> bytes:
    """A row of a table, as far as a copy looks at it."""
    return b"\x01" + ticks.to_bytes(8, "big") + text


ticks = st.integers(1, FUTURE)
entities = st.builds(entity, ticks, st.binary(max_size=10) | st.just(bytes(200_000)))


@st.composite
def contents(draw: st.DrawFn) -> Contents:
    """All rows of a store: what the service keeps, tables, and tables whose drop has not ended."""
    names = draw(st.sets(st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(["orders", "kept", "x1"]))))
    found: Contents = {COUNTERS: {("spaces", "next"): (FIRST_FREE_SPACE + 128).to_bytes(8, "big")}, TABLES: {}}
    spaces = draw(st.permutations(range(FIRST_FREE_SPACE, FIRST_FREE_SPACE + len(names))))
    for (account, name), space in zip(sorted(names), spaces, strict=True):
        if draw(st.integers(0, 4)) == 0:
            found[TABLES][account, f"!{space}"] = b""
        else:
            found[TABLES][account, name] = Table(name.upper(), space).to_bytes()
        found[space] = draw(st.dictionaries(keys, entities, max_size=8))
    if draw(st.booleans()):
        found[SERVICE_PROPERTIES] = {("one", "table"): json.dumps({"cors": []}).encode()}
    return found


def copied(found: Contents) -> Contents:
    """What of a store a copy takes along."""
    tables = {key: value for key, value in found[TABLES].items() if not key[1].startswith("!")}
    spaces = {Table.from_bytes(value).space for value in tables.values()} | {COUNTERS, SERVICE_PROPERTIES}
    kept = {space: rows for space, rows in found.items() if space in spaces} | {TABLES: tables}
    return {space: rows for space, rows in kept.items() if rows}


async def fill(engine: Engine, found: Mapping[int, Mapping[Key, bytes]]) -> None:
    """Put rows into an engine."""
    for space, rows in found.items():
        for (partition, row), value in rows.items():
            await put(engine, space, partition, row, value)


async def put(engine: Engine, space: int, partition: str, row: str, value: bytes | None) -> int:
    """Write one row; return the timestamp."""
    return await engine.commit(space, partition, changing([row], lambda current, timestamp: {row: value}))


async def all_rows(engine: Engine) -> Contents:
    """Return every row of the spaces that a copy could know of."""
    found: Contents = {}
    for space in (COUNTERS, SERVICE_PROPERTIES, TABLES, COPIES, *range(FIRST_FREE_SPACE, FIRST_FREE_SPACE + 8)):
        async for piece in engine.scan(space, [KeyRange(("", ""), None)]):
            for index, value in enumerate(piece.values):
                found.setdefault(space, {})[piece.key(index)] = value
    return found


def order(key: Key) -> tuple[bytes, bytes]:
    """What rows are sorted by."""
    return ordinal(key[0]), ordinal(key[1])


@dataclass
class MemoryAccounts:
    """Accounts of a test."""

    kept: Accounts = field(default_factory=dict)

    async def load(self) -> Accounts:
        return self.kept

    async def edit(self, change: Change) -> Accounts:
        self.kept = change(self.kept)
        return self.kept


class Broken(EngineError):  # noqa: N818
    """The process was killed, as far as the copy can see."""


class BreakingEngine:
    """An engine that breaks off after so many commits, before or after the last of them was applied."""

    def __init__(self, inner: Engine, commits: int, *, applied: bool) -> None:
        self._inner = inner
        self._left = commits
        self._applied = applied

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        return await self._inner.get(space, partition, row)

    @property
    def reads_now(self) -> bool:
        return self._inner.reads_now

    @property
    def commits_now(self) -> bool:
        return self._inner.commits_now

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        return self._inner.get_now(space, partition, row)

    def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        return self._inner.scan(space, ranges, limit, keys_only=keys_only)

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        return self._inner.snapshot()

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> T | Unknown:
        return UNKNOWN

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        self._left -= 1
        if self._left < 0 or (self._left == 0 and not self._applied):
            raise Broken("killed")
        result = await self._inner.commit(space, partition, commit)
        if self._left == 0:
            raise Broken("killed")
        return result

    async def drop(self, space: int) -> None:
        await self._inner.drop(space)

    async def check_writable(self) -> None:
        await self._inner.check_writable()

    async def close(self) -> None:
        await self._inner.close()


class Pair(NamedTuple):
    """Two ends, and the clock of the second."""

    source: Endpoint
    target: Endpoint
    clock: MonotonicClock
