"""Partition commits: the commits of one partition that must read their rows share one read and one change.

The commits that wait for a partition are decided in their order of arrival, each on the values that the ones before it
leave. The result is written if the partition's version is still the one that was read with the rows. If it is not,
another process has committed meanwhile, and everything is read and decided anew. The second attempt locks the version
row first: a process that writes without reading would otherwise always be faster.

Expecting commits are decided without a read if the partition's version and their kept row are known since the last
commit. The statement that writes checks the version and what the rows begin with. So the values on which
the commits were decided are those of the moment of the write. If the check fails, or if nothing would be written, the
rows are read.

Where statements go to one partition each, a commit whose rows may be absent, and that does not depend
on their values, is sent with their preconditions. If they are not met, the rows are read.

Kept rows are a hint: each commit that relies on them checks the version. A partition that another process has changed
is forgotten, and kept again after the next commit but one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lazulite.engine.contract import CommitFunction, EngineUnavailableError
from lazulite.engine.expectation import ExpectingCommit
from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.errors import copy_for_waiter
from lazulite.engine.postgres.keys import encode_text, index_key, long_key
from lazulite.engine.postgres.partition_io import PartitionChange, PartitionIo, PartitionRead, PartitionState, Write
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks
from lazulite.engine.postgres.pending_write import RowWrites
from lazulite.engine.postgres.sql_scripts import Place, RowBeginning, RowChange, RowWrite
from lazulite.engine.precondition import ConditionalCommit, Expect, Precondition

PARTITIONS_MAX = 4096
VALUE_BYTES_MAX = 1024

_ROWS_MAX = 200
"""Rows that are committed together, unless one commit has more."""
_NONE: Mapping[str, bytes] = {}


class Kept(NamedTuple):
    """The version of a partition, and the row of that moment."""

    version: int
    row_key: bytes
    """Its index key; empty: none."""
    value: bytes | None
    """None: there is no such row."""


class KeptRows:
    """The rows that are kept, at most one of a partition. The oldest ones are forgotten."""

    def __init__(self) -> None:
        self._kept: dict[Partition, Kept] = {}

    def take(self, place: Place, row_key: bytes) -> Kept | None:
        """Forget what is kept of a partition; return it if it is this row."""
        kept = self._kept.pop((place.space, place.partition_key), None)
        return kept if kept is not None and kept.row_key == row_key else None

    def keep(self, place: Place, kept: Kept) -> None:
        """Keep a row, if there is one and it is not too large."""
        if not kept.row_key or len(kept.value or b"") > VALUE_BYTES_MAX:
            return
        self._kept[place.space, place.partition_key] = kept
        if len(self._kept) > PARTITIONS_MAX:
            del self._kept[next(iter(self._kept))]


@dataclass(slots=True, eq=False)
class _Commit:
    rows: Sequence[str]
    decide: CommitFunction
    answer: "asyncio.Future[int]"
    keys: dict[str, bytes] = field(init=False)
    """By row, its index key."""
    kept_key: bytes = b""
    """The index key of the row that an expecting commit wants to be kept; empty for other commits."""
    beginnings: Mapping[str, bytes] = field(default_factory=lambda: _NONE)
    """What the rows of an expecting commit are expected to begin with."""

    def __post_init__(self) -> None:
        self.keys = {row: index_key(encode_text(row)) for row in self.rows}
        if isinstance(self.decide, ExpectingCommit):
            self.kept_key = self.keys[self.decide.kept]
            self.beginnings = self.decide.beginnings


class PartitionCommits:
    """Commits that must read their rows.

    Args:
        io: reads and changes partitions.
        timestamps: commit timestamps of this process.
        conditional: the writes that need no read.
        locks: partitions that a statement is changing; a partition is locked by one of the two kinds of commits.
        seconds_max: how long a commit is attempted while other processes commit in between.
    """

    def __init__(
        self,
        io: PartitionIo,
        timestamps: CommitTimestamps,
        conditional: RowWrites,
        locks: PartitionLocks,
        seconds_max: float,
    ) -> None:
        self._io = io
        self._timestamps = timestamps
        self._conditional = conditional
        self._locks = locks
        self._seconds_max = seconds_max
        self._waiting: dict[Partition, list[_Commit]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept = KeptRows()

    def has(self, place: Place) -> bool:
        """Return whether commits of a partition are waiting or in flight."""
        return (place.space, place.partition_key) in self._waiting

    async def finished(self) -> None:
        """Return when no commit is in flight."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._io.finished()

    async def commit(self, place: Place, rows: Sequence[str], decide: CommitFunction) -> int:
        """Return the commit timestamp, see `Engine.commit`."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        commit = _Commit(rows, decide, answer)
        partition = place.space, place.partition_key
        waiting = self._waiting.get(partition)
        if waiting is not None:
            waiting.append(commit)
        else:
            self._waiting[partition] = [commit]
            task = asyncio.create_task(self._commit_all(place, partition))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            return await answer
        finally:
            del answer, commit  # An error's traceback has this frame, which would refer to the error.

    async def _commit_all(self, place: Place, partition: Partition) -> None:
        """Make the commits that wait for a partition, until none does."""
        waiting = self._waiting[partition]
        await self._locks.wait_and_acquire(partition)
        self._conditional.give_up(partition)
        try:
            while waiting:
                commits = _next_batch(waiting)
                del waiting[: len(commits)]
                await self._commit_and_answer(place, commits)
        finally:
            del self._waiting[partition]
            self._locks.release([partition])

    async def _commit_and_answer(self, place: Place, commits: Sequence[_Commit]) -> None:
        outcomes: Sequence[int | BaseException]
        try:
            async with asyncio.timeout(self._seconds_max):
                outcomes = await self._commit(place, commits)
        except TimeoutError:
            outcomes = [EngineUnavailableError("too many other processes write to the partition")] * len(commits)
        except Exception as error:  # noqa: BLE001 - whatever it is, each commit must be answered.
            outcomes = [error] * len(commits)
        for commit, outcome in zip(commits, outcomes, strict=True):
            if commit.answer.done():  # Its caller was cancelled.
                continue
            if isinstance(outcome, int):
                commit.answer.set_result(outcome)
            else:
                commit.answer.set_exception(copy_for_waiter(outcome))

    async def _commit(self, place: Place, commits: Sequence[_Commit]) -> "Sequence[int | BaseException]":
        """Return the outcome of each commit: its timestamp, or its rejection."""
        kept_key = _kept_key(commits)
        kept = self._kept.take(place, kept_key)
        if kept is not None:
            outcomes = await self._commit_unread(place, commits, kept)
            if outcomes is not None:
                return outcomes
        elif self._io.write is not None:
            outcomes = await self._commit_conditional(self._io.write, place, commits)
            if outcomes is not None:
                return outcomes
        read = PartitionRead(place, list({key for commit in commits for key in commit.keys.values()}))
        outcomes = ()
        after = Kept(0, b"", None)

        def decide(state: PartitionState) -> PartitionChange | None:
            nonlocal outcomes, after
            first = self._timestamps.take(len(commits), above=state.version)
            outcomes, changed, _ = _decide(commits, state.rows, first)
            version = first + len(commits) - 1 if changed else state.version
            after = Kept(version, kept_key, state.rows.get(kept_key))
            return PartitionChange(place, state.version, version, changed) if changed else None

        change = decide(await self._io.read(read))
        done = change is None or await self._io.apply(change)
        is_contested = kept is not None or not done
        while not done:
            done = await self._io.apply_locked(read, decide)
        if not is_contested:
            self._kept.keep(place, after)
        return outcomes

    async def _commit_unread(
        self, place: Place, commits: Sequence[_Commit], kept: Kept
    ) -> "Sequence[int | BaseException] | None":
        """Commit without a read; return None if nothing was written."""
        first = self._timestamps.take(len(commits), above=kept.version)
        rows = {kept.row_key: kept.value}
        outcomes, changed, expected = _decide(commits, rows, first, unread=True)
        version = first + len(commits) - 1
        if not changed or not await self._io.apply(PartitionChange(place, kept.version, version, changed, expected)):
            return None
        self._kept.keep(place, Kept(version, kept.row_key, rows[kept.row_key]))
        return outcomes

    async def _commit_conditional(
        self, write: Write, place: Place, commits: Sequence[_Commit]
    ) -> "Sequence[int | BaseException] | None":
        """Commit on preconditions, without a read; return None if nothing was written."""
        preconditions = _preconditions(commits)
        if not preconditions:
            return None
        first = self._timestamps.take(len(commits))
        outcomes, changed, _ = _decide(commits, {}, first)
        if len(changed) < len(preconditions):
            return None
        writes = [RowWrite(place, change, preconditions[change.row_key]) for change in changed]
        return outcomes if await write(writes, first) else None


def _preconditions(commits: Sequence[_Commit]) -> Mapping[bytes, Precondition]:
    """Return the precondition of each row, by index key.

    Empty: a commit has none, two commits write one row, or a row must be present, which would take a check of its own.
    """
    found: dict[bytes, Precondition] = {}
    for commit in commits:
        given = commit.decide.preconditions() if isinstance(commit.decide, ConditionalCommit) else None
        if (
            given is None
            or any(each.expects is Expect.PRESENT for each in given)
            or not found.keys().isdisjoint(commit.keys.values())
        ):
            return {}
        found |= zip(commit.keys.values(), given, strict=True)
    return found


def _kept_key(commits: Sequence[_Commit]) -> bytes:
    """Return the index key of the row that all commits want to be kept; empty if they differ, or one wants none."""
    keys = {
        commit.keys[commit.decide.kept] if isinstance(commit.decide, ExpectingCommit) else b"" for commit in commits
    }
    return keys.pop() if len(keys) == 1 else b""


def _next_batch(waiting: Sequence[_Commit]) -> Sequence[_Commit]:
    """Return the first commits, up to the bound of rows."""
    rows = 0
    for index, commit in enumerate(waiting):
        rows += len(commit.rows)
        if index and rows > _ROWS_MAX:
            return waiting[:index]
    return list(waiting)


def _decide(
    commits: Sequence[_Commit], current: dict[bytes, bytes | None], first: int, *, unread: bool = False
) -> "tuple[list[int | BaseException], list[RowChange], list[RowBeginning]]":
    """Decide commits one after the other, each with a timestamp of its own.

    Args:
        commits: in their order.
        current: the values of their rows, which it updates.
        first: the timestamp of the first one.
        unread: whether rows that `current` does not have are as the commits expect.

    Returns:
        The outcomes, the changes of rows, and what rows are taken to begin with.
    """
    outcomes: list[int | BaseException] = []
    changes: dict[bytes, RowChange] = {}
    expected: list[RowBeginning] = []
    for timestamp, commit in enumerate(commits, first):
        keys = commit.keys
        beginnings = commit.beginnings if unread else _NONE
        expected += [RowBeginning(keys[row], each) for row, each in beginnings.items() if keys[row] not in current]
        values = [current.get(keys[row], beginnings.get(row)) for row in commit.rows]
        try:
            decided = [(keys[row], row, value) for row, value in commit.decide(values, timestamp).items()]
        except BaseException as rejection:  # noqa: BLE001 - any rejection at all; only its caller gets it.
            outcomes.append(rejection)
            continue
        for key, row, value in decided:
            current[key] = value
            changes[key] = RowChange(key, long_key(encode_text(row)), timestamp, value)
        outcomes.append(timestamp)
    return outcomes, list(changes.values()), expected
