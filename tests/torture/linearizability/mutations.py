"""Mutations that break linearizability, each a plausible mistake.

They change the engine's classes in a running program, see `tests/torture/mutations/__main__.py`.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from lazulite.engine.commit import Commit, Decision, Needs, Values, put_rows
from lazulite.engine.contract import JoinedKeys, KeyRange, Slice, Unknown
from lazulite.engine.key_encoding import encode_key
from lazulite.engine.postgres import partition_io as changes
from lazulite.engine.postgres.sql_statements import APPLY
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import Bounds, CommitGroup, GroupCommit
from tests.torture.variants import slow_syncs

T = TypeVar("T")


def read_what_is_not_written() -> None:
    """Show readers the open commit group, which a kill takes back; on a slow disk, so that there is such a group."""
    slow_syncs()

    def durable_within(self: GroupCommit, ranges: Sequence[Bounds]) -> dict[bytes, bytes | None]:
        groups = [each for each in (self._flushing, self._open) if each is not None]
        changes = {key: value for group in groups for key, value in group.changes.items()}
        return {key: value for key, value in changes.items() if any(start <= key < end for start, end in ranges)}

    GroupCommit.durable = GroupCommit.latest  # type: ignore[method-assign]  # That is the mutation.
    GroupCommit.durable_within = durable_within  # type: ignore[method-assign]


def read_stale() -> None:
    """Answer point queries with what was there before the last commit group, if that changed it."""
    before: dict[bytes, bytes] = {}
    get_now, acknowledge = RocksEngine.get_now, CommitGroup.acknowledge

    def stale_get(self: RocksEngine, space: int, partition: str, row: str) -> bytes | Unknown | None:
        return before.get(encode_key(space, partition, row)) or get_now(self, space, partition, row)

    def noted_acknowledge(self: CommitGroup) -> None:
        before.clear()
        before.update((key, value) for key, value in self.undo.items() if value is not None)
        acknowledge(self)

    RocksEngine.get_now = stale_get  # type: ignore[method-assign]
    CommitGroup.acknowledge = noted_acknowledge  # type: ignore[method-assign]


def check_then_write() -> None:
    """Judge If-Match by what was read before, and write in a later turn of the loop."""
    plain = RocksEngine.commit

    async def late_commit(self: RocksEngine, space: int, partition: str, commit: Commit[T]) -> T:
        current = [await self.get(space, partition, row) for row in commit.rows]
        await asyncio.sleep(0)
        late = replace(commit, decide=lambda _, timestamp: commit.decide(current, timestamp))
        return await plain(self, space, partition, late)

    RocksEngine.commit = late_commit  # type: ignore[method-assign]


def commit_twice() -> None:
    """Write the first row of a transaction in one commit, and the others in the next."""
    plain = RocksEngine.commit

    async def torn_commit(self: RocksEngine, space: int, partition: str, commit: Commit[T]) -> T:
        rest: dict[str, bytes | None] = {}

        def first(current: Values, timestamp: int) -> Decision[T] | Needs[T]:
            decision = commit.decide(current, timestamp)
            if isinstance(decision, Needs):
                return decision
            changes = dict(decision.changes)
            rest.update({row: changes.pop(row) for row in commit.rows[1:] if row in changes})
            return Decision(changes, decision.result)

        result = await plain(self, space, partition, replace(commit, decide=first))
        if rest:
            await plain(self, space, partition, put_rows(rest))
        return result

    RocksEngine.commit = torn_commit  # type: ignore[method-assign]


class _Rows:
    """Some rows, as a slice."""

    def __init__(self, rows: Sequence[tuple[tuple[str, str], bytes]]) -> None:
        self.values = [value for _, value in rows]
        self._keys = [key for key, _ in rows]

    def key(self, index: int) -> tuple[str, str]:
        return self._keys[index]

    def columns(self) -> tuple[list[str], list[str]]:
        return [partition for partition, _ in self._keys], [row for _, row in self._keys]

    def joined(self, start: int) -> JoinedKeys:
        raise NotImplementedError  # Tables do not ask for it.

    def find(self, key: tuple[str, str], start: int) -> int:
        return next((index for index in range(start, len(self._keys)) if self._keys[index] >= key), len(self._keys))


def scan_without_snapshot() -> None:
    """Read the second half of a scan later than the first."""
    scan = RocksEngine.scan

    async def halves(
        self: RocksEngine,
        space: int,
        ranges: Sequence[KeyRange],
        limit: int | None = None,
        *,
        keys_only: bool = False,
    ) -> AsyncGenerator[Slice, None]:
        async for part in scan(self, space, ranges, limit, keys_only=keys_only):
            keys = [part.key(index) for index in range(len(part.values))]
            half = len(keys) // 2
            yield _Rows(list(zip(keys, part.values, strict=True))[:half])
            await asyncio.sleep(0)
            later = [(key, await self.get(space, *key)) for key in keys[half:]]
            yield _Rows([(key, value) for key, value in later if value is not None])

    RocksEngine.scan = halves  # type: ignore[method-assign, assignment]  # slices of another kind


MUTATIONS: dict[str, Callable[[], None]] = {
    "read-what-is-not-written": read_what_is_not_written,
    "read-stale": read_stale,
    "check-then-write": check_then_write,
    "commit-twice": commit_twice,
    "scan-without-snapshot": scan_without_snapshot,
}


def write_whatever_others_wrote() -> None:
    """Write on a database what was decided, without a look at what other processes have written since."""
    condition = re.compile(r"WHERE known.stamp =\s+\(.*\)")
    vars(changes)["APPLY"], found = condition.subn("", APPLY)
    assert found == 1


MUTATIONS_ON_POSTGRES: dict[str, Callable[[], None]] = {"write-whatever-others-wrote": write_whatever_others_wrote}
