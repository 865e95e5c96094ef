"""Partition commits: the commits of one partition that must read their rows share one read and one change.

The commits that wait for a partition are decided in their order of arrival, each on the values that the ones before it
leave. The result is written if the partition's version is still the one that was read with the rows. If it is not,
another process has committed meanwhile, and everything is read and decided again. The second attempt locks the version
row first: a process that writes without reading would otherwise always be faster. Where commits are bound late (see
`contention`), the first attempt does so, and takes the commits that wait only then.

Commits are decided without a read if the partition's version and their kept row are known since the last commit,
and their preconditions tell what other rows begin with. The statement that writes checks the version and
these prefixes. So the values on which the commits were decided are those of the moment of the write. If the check
fails, or if nothing would be written, the rows are read.

Where statements go to one partition each, a commit whose rows may be absent, and that does not depend
on their values, is sent with their preconditions. If they are not met, the rows are read.

Kept rows are a hint: each commit that relies on them checks the version. A partition that another process has changed
is forgotten, and kept again after the next commit but one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lazulite.engine.commit import Commit, CompanionWrite, Decision, Expect, Needs, Precondition
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.contention import Contention
from lazulite.engine.postgres.drops import DroppedSpaceCache
from lazulite.engine.postgres.errors import copy_for_waiter
from lazulite.engine.postgres.keys import encode_text, index_key, long_key
from lazulite.engine.postgres.partition_io import PartitionChange, PartitionIo, PartitionRead, PartitionState, Write
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks
from lazulite.engine.postgres.pending_write import RowWrites
from lazulite.engine.postgres.sql_scripts import (
    CompanionChange,
    PartitionAddress,
    RowChange,
    RowPrefix,
    RowWrite,
)

PARTITIONS_MAX = 4096
VALUE_BYTES_MAX = 1024

_ROWS_MAX = 200
"""Rows that are committed together, unless one commit has more."""
T = TypeVar("T")

_Outcome: TypeAlias = Decision[Any] | Needs[Any] | BaseException
"""The outcome of one commit; an exception is its rejection."""
_Expected: TypeAlias = Sequence[Precondition | None]
"""The preconditions of a commit's rows."""


class KeptRow(NamedTuple):
    """The version of a partition, and the row of that moment."""

    version: int
    row_key: bytes
    """Its index key; empty: none."""
    value: bytes | None
    """None: there is no such row."""


class _OptimisticOutcome(NamedTuple):
    """An attempt to commit without a read."""

    outcomes: Sequence[_Outcome] | None
    """None: nothing was written."""
    version: int = 0
    """The newest version of the partition on which it could have succeeded."""
    rows: int = 0
    """The rows that were sent in vain."""


class KeptRowCache:
    """The rows that are kept, at most one of a partition. The oldest ones are forgotten."""

    def __init__(self) -> None:
        self._kept: dict[Partition, KeptRow] = {}

    def take(self, address: PartitionAddress, row_key: bytes) -> KeptRow | None:
        """Forget what is kept of a partition; return it if it is this row."""
        kept = self._kept.pop((address.space, address.partition_key), None)
        return kept if kept is not None and kept.row_key == row_key else None

    def keep(self, address: PartitionAddress, kept: KeptRow) -> None:
        """Keep a row, if there is one and it is not too large."""
        if not kept.row_key or len(kept.value or b"") > VALUE_BYTES_MAX:
            return
        self._kept[address.space, address.partition_key] = kept
        if len(self._kept) > PARTITIONS_MAX:
            del self._kept[next(iter(self._kept))]


@dataclass(slots=True, eq=False)
class _PendingCommit:
    commit: Commit[Any]
    answer: "asyncio.Future[Any]"
    keys: dict[str, bytes] = field(init=False)
    """By row, its index key."""

    def __post_init__(self) -> None:
        self.keys = {row: index_key(encode_text(row)) for row in self.commit.rows}

    @property
    def kept_key(self) -> bytes:
        """The index key of the row that it wants to be kept; empty: none."""
        kept = self.commit.kept
        return b"" if kept is None else self.keys[kept]

    def expected(self) -> _Expected:
        """Return what it expects of its rows without reading them."""
        preconditions = self.commit.preconditions
        return [None] * len(self.commit.rows) if preconditions is None else preconditions(None)

    @property
    def row_keys(self) -> list[bytes]:
        """The index keys of its rows, in their order."""
        return [self.keys[row] for row in self.commit.rows]


class _Batch:
    """Commits of a partition that are made together. Which commits these are is decided when they are taken."""

    def __init__(self, waiting: list[_PendingCommit]) -> None:
        self._waiting = waiting
        self._taken: Sequence[_PendingCommit] = ()

    def take(self) -> Sequence[_PendingCommit]:
        """Return its commits, which wait no more."""
        if not self._taken:
            self._taken = _next_batch(self._waiting)
            del self._waiting[: len(self._taken)]
        return self._taken

    def row_keys(self) -> list[bytes]:
        """Return the index keys of the rows of its commits."""
        return list({key for commit in self.take() for key in commit.keys.values()})


class PartitionCommits:
    """Commits that must read their rows.

    Args:
        io: reads and changes partitions.
        timestamps: commit timestamps of this process.
        conditional: the writes that need no read.
        locks: partitions that a statement is changing; a partition is locked by one of the two kinds of commits.
        contention: the partitions whose commits are bound late.
        drops: the dropped spaces, to which no companion is written.
        seconds_max: how long a commit is attempted while other processes commit in between.
    """

    def __init__(
        self,
        io: PartitionIo,
        timestamps: CommitTimestamps,
        conditional: RowWrites,
        locks: PartitionLocks,
        contention: Contention,
        drops: DroppedSpaceCache,
        seconds_max: float,
    ) -> None:
        self._io = io
        self._timestamps = timestamps
        self._conditional = conditional
        self._locks = locks
        self._contention = contention
        self._drops = drops
        self._seconds_max = seconds_max
        self._waiting: dict[Partition, list[_PendingCommit]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept = KeptRowCache()

    def claims(self, address: PartitionAddress) -> bool:
        """Return whether a partition's commits belong here: others wait or are in flight, or they are bound late."""
        return address[:2] in self._waiting or self._contention.binds_late(address[:2])

    async def finished(self) -> None:
        """Return when no commit is in flight."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._io.finished()

    async def commit(self, address: PartitionAddress, commit: Commit[T]) -> T | Needs[T]:
        """Return the result of a commit, or what it needs; see `Engine.commit`."""
        answer: asyncio.Future[T | Needs[T]] = asyncio.get_running_loop().create_future()
        pending = _PendingCommit(commit, answer)
        partition = address.space, address.partition_key
        waiting = self._waiting.get(partition)
        if waiting is not None:
            waiting.append(pending)
        else:
            self._waiting[partition] = [pending]
            task = asyncio.create_task(self._commit_all(address, partition))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            return await answer
        finally:
            del answer, pending  # An error's traceback has this frame, which would refer to the error.

    async def _commit_all(self, address: PartitionAddress, partition: Partition) -> None:
        """Make the commits that wait for a partition, until none does."""
        waiting = self._waiting[partition]
        await self._locks.wait_and_acquire(partition)
        self._conditional.give_up(partition)
        try:
            while waiting:
                await self._commit_and_answer(address, _Batch(waiting))
        finally:
            del self._waiting[partition]
            self._locks.release([partition])

    async def _commit_and_answer(self, address: PartitionAddress, batch: _Batch) -> None:
        outcomes: Sequence[_Outcome]
        try:
            async with asyncio.timeout(self._seconds_max):
                outcomes = await self._commit(address, batch)
        except TimeoutError:
            outcomes = [EngineUnavailableError("too many other processes write to the partition")] * len(batch.take())
        except Exception as error:  # noqa: BLE001 - whatever it is, each commit must be answered.
            outcomes = [error] * len(batch.take())
        for commit, outcome in zip(batch.take(), outcomes, strict=True):
            if commit.answer.done():  # Its caller was cancelled.
                continue
            if isinstance(outcome, BaseException):
                commit.answer.set_exception(copy_for_waiter(outcome))
            else:
                commit.answer.set_result(outcome if isinstance(outcome, Needs) else outcome.result)

    async def _commit(self, address: PartitionAddress, batch: _Batch) -> Sequence[_Outcome]:
        """Return the outcome of each commit."""
        if self._contention.binds_late(address[:2]):
            return await self._commit_late(address, batch)
        commits = batch.take()
        kept_key = _kept_key(commits)
        kept = self._kept.take(address, kept_key)
        tried = await self._commit_unread(address, commits, kept)
        if tried.outcomes is not None:
            self._contention.note_written([address[:2]])
            return tried.outcomes
        state = await self._io.read(PartitionRead(address, batch.row_keys()))
        if tried.rows and state.version > tried.version:
            self._contention.note_overtaken(address[:2], tried.rows)
        change, outcomes = self._decide_on(address, commits, state)
        if change is None or await self._io.apply(change):
            self._contention.note_written([address[:2]])
            if kept is None:
                version = state.version if change is None else change.after
                self._kept.keep(address, KeptRow(version, kept_key, state.rows.get(kept_key)))
            return outcomes
        self._contention.note_overtaken(address[:2], len(change.rows))
        return await self._commit_late(address, batch)

    async def _commit_late(self, address: PartitionAddress, batch: _Batch) -> Sequence[_Outcome]:
        """Lock the partition, then take the commits, and decide them on what is read."""
        self._kept.take(address, b"")
        outcomes = None
        while outcomes is None:
            outcomes = await self._io.apply_locked(
                address, batch.row_keys, lambda state: self._decide_on(address, batch.take(), state)
            )
        return outcomes

    def _decide_on(
        self, address: PartitionAddress, commits: Sequence[_PendingCommit], state: PartitionState
    ) -> tuple[PartitionChange | None, Sequence[_Outcome]]:
        """Decide commits on what was read; return their change (None: there is none), and their outcomes."""
        first = self._timestamps.take(len(commits), above=state.version)
        outcomes, changed, _, companions = _decide(commits, state.rows, first)
        change = PartitionChange(
            address, state.version, first + len(commits) - 1, changed, companions=self._open(companions)
        )
        return change if changed or companions else None, outcomes

    def _open(self, companions: Sequence[CompanionChange]) -> Sequence[CompanionChange]:
        """Return the changes that are not of a dropped space."""
        return [each for each in companions if each.address.space not in self._drops.closed]

    async def _commit_unread(
        self, address: PartitionAddress, commits: Sequence[_PendingCommit], kept: KeptRow | None
    ) -> _OptimisticOutcome:
        """Commit without a read, if that is possible."""
        if kept is not None:
            return await self._commit_on_kept(address, commits, kept)
        if self._io.write is not None:
            return await self._commit_conditional(self._io.write, address, commits)
        return _OptimisticOutcome(None)

    async def _commit_on_kept(
        self, address: PartitionAddress, commits: Sequence[_PendingCommit], kept: KeptRow
    ) -> _OptimisticOutcome:
        expected = [commit.expected() for commit in commits]
        if not all(map(_names_prefixes, commits, expected)):
            return _OptimisticOutcome(None)
        first = self._timestamps.take(len(commits), above=kept.version)
        rows = {kept.row_key: kept.value}
        outcomes, changed, prefixes, companions = _decide(commits, rows, first, expected)
        version = first + len(commits) - 1
        change = PartitionChange(address, kept.version, version, changed, prefixes, self._open(companions))
        if not changed or not await self._io.apply(change):
            return _OptimisticOutcome(None, kept.version, len(changed))
        self._kept.keep(address, KeptRow(version, kept.row_key, rows[kept.row_key]))
        return _OptimisticOutcome(outcomes)

    async def _commit_conditional(
        self, write: Write, address: PartitionAddress, commits: Sequence[_PendingCommit]
    ) -> _OptimisticOutcome:
        """Commit on preconditions."""
        expected = [commit.expected() for commit in commits]
        preconditions = _preconditions(commits, expected)
        if not preconditions:
            return _OptimisticOutcome(None)
        first = self._timestamps.take(len(commits))
        outcomes, changed, _, companions = _decide(commits, {}, first, expected)
        if companions or len(changed) < len(preconditions):
            return _OptimisticOutcome(None)
        writes = [RowWrite(address, change, preconditions[change.row_key]) for change in changed]
        return (
            _OptimisticOutcome(outcomes)
            if await write(writes, first)
            else _OptimisticOutcome(None, first - 1, len(writes))
        )


def _names_prefixes(commit: _PendingCommit, expected: _Expected) -> bool:
    """Return whether a commit depends on its kept row and on the prefixes of others only."""
    return all(
        key == commit.kept_key
        if each is None
        else each.expects is Expect.ANYTHING or (each.expects is Expect.PRESENT and each.timestamp is None)
        for key, each in zip(commit.row_keys, expected, strict=True)
    )


def _preconditions(commits: Sequence[_PendingCommit], expected: Sequence[_Expected]) -> Mapping[bytes, Precondition]:
    """Return the precondition of each row, by index key.

    Empty: a row has none, two commits write one row, or a row must be present, which would take a check of its own.
    """
    found: dict[bytes, Precondition] = {}
    for commit, given in zip(commits, expected, strict=True):
        known = [each for each in given if each is not None and each.expects is not Expect.PRESENT]
        if len(known) < len(given) or not found.keys().isdisjoint(commit.row_keys):
            return {}
        found |= zip(commit.row_keys, known, strict=True)
    return found


def _kept_key(commits: Sequence[_PendingCommit]) -> bytes:
    """Return the index key of the row that all commits want to be kept; empty if they differ, or one wants none."""
    keys = {commit.kept_key for commit in commits}
    return keys.pop() if len(keys) == 1 else b""


def _next_batch(waiting: Sequence[_PendingCommit]) -> Sequence[_PendingCommit]:
    """Return the first commits, up to the bound of rows."""
    rows = 0
    for index, pending in enumerate(waiting):
        rows += len(pending.commit.rows)
        if index and rows > _ROWS_MAX:
            return waiting[:index]
    return list(waiting)


def _decide(
    commits: Sequence[_PendingCommit],
    current: dict[bytes, bytes | None],
    first: int,
    expected: Sequence[_Expected] | None = None,
) -> tuple[list[_Outcome], list[RowChange], list[RowPrefix], list[CompanionChange]]:
    """Decide commits one after the other, each with a timestamp of its own.

    Args:
        commits: in their order.
        current: the values of their rows, which it updates.
        first: the timestamp of the first one.
        expected: what the rows of each commit are taken to be that `current` does not have; None: absent.

    Returns:
        The outcomes, the changes of rows, what rows are taken to begin with, and the changes of rows elsewhere.
    """
    outcomes: list[_Outcome] = []
    companions: dict[tuple[int, tuple[str, str]], CompanionChange] = {}
    changes: dict[bytes, RowChange] = {}
    prefixes: list[RowPrefix] = []
    for timestamp, pending in enumerate(commits, first):
        keys = pending.keys
        if expected is None:
            values = [current.get(key) for key in pending.row_keys]
        else:
            values = []
            for key, each in zip(pending.row_keys, expected[timestamp - first], strict=True):
                values.append(current[key] if key in current or each is None else each.example)
                if key not in current and each is not None and each.expects is Expect.PRESENT:
                    prefixes.append(RowPrefix(key, each.prefix))
        outcome = _outcome(pending, values, timestamp)
        outcomes.append(outcome)
        if isinstance(outcome, Decision):
            for row, value in outcome.changes.items():
                current[keys[row]] = value
                changes[keys[row]] = RowChange(keys[row], long_key(encode_text(row)), timestamp, value)
            for write in outcome.companions:  # Of several writes to a row, the last one counts.
                companions[write.space, write.key] = _companion_change(write, timestamp)
    return outcomes, list(changes.values()), prefixes, list(companions.values())


def _companion_change(write: CompanionWrite, timestamp: int) -> CompanionChange:
    space, (partition, row), value, _ = write
    partition_key, row_key = encode_text(partition), encode_text(row)
    address = PartitionAddress(space, index_key(partition_key), long_key(partition_key))
    return CompanionChange(address, RowChange(index_key(row_key), long_key(row_key), timestamp, value))


def _outcome(pending: _PendingCommit, values: Sequence[bytes | None], timestamp: int) -> _Outcome:
    try:
        decision = pending.commit.decide(values, timestamp)
    except BaseException as rejection:  # noqa: BLE001 - any rejection at all; only its caller gets it.
        return rejection
    if isinstance(decision, Needs) or decision.changes.keys() <= pending.keys.keys():
        return decision
    return pending.commit.naming(decision.changes)
