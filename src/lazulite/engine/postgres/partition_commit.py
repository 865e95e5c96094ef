"""Partition commits: the commits of one partition that must read their rows share one read and one change.

The commits that wait for a partition are decided in their order of arrival, each on the values that the ones before it
leave. The result is written if the partition's version is still the one that was read with the rows. If it is not,
another process has committed meanwhile, and everything is read and decided anew. The second attempt locks the version
row first: a process that writes without reading would otherwise always be faster.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from lazulite.engine.contract import CommitFunction, EngineUnavailableError
from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.conditional_writes import ConditionalWrites
from lazulite.engine.postgres.errors import copy_for_waiter
from lazulite.engine.postgres.keys import encode_text, index_key, long_key
from lazulite.engine.postgres.partition_io import PartitionChange, PartitionIo, PartitionRead, PartitionState
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks
from lazulite.engine.postgres.sql_scripts import Place, RowChange

_ROWS_MAX = 200
"""Rows that are committed together, unless one commit has more."""


@dataclass(slots=True, eq=False)
class _Commit:
    rows: Sequence[str]
    decide: CommitFunction
    answer: "asyncio.Future[int]"
    keys: dict[str, bytes] = field(init=False)
    """By row, its index key."""

    def __post_init__(self) -> None:
        self.keys = {row: index_key(encode_text(row)) for row in self.rows}


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
        conditional: ConditionalWrites,
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
        read = PartitionRead(place, list({key for commit in commits for key in commit.keys.values()}))
        outcomes: Sequence[int | BaseException] = ()

        def decide(state: PartitionState) -> PartitionChange | None:
            nonlocal outcomes
            first = self._timestamps.take(len(commits), above=state.version)
            outcomes, changed = _decide(commits, state.rows, first)
            return PartitionChange(place, state.version, first + len(commits) - 1, changed) if changed else None

        change = decide(await self._io.read(read))
        done = change is None or await self._io.apply(change)
        while not done:
            done = await self._io.apply_locked(read, decide)
        return outcomes


def _next_batch(waiting: Sequence[_Commit]) -> Sequence[_Commit]:
    """Return the first commits, up to the bound of rows."""
    rows = 0
    for index, commit in enumerate(waiting):
        rows += len(commit.rows)
        if index and rows > _ROWS_MAX:
            return waiting[:index]
    return list(waiting)


def _decide(
    commits: Sequence[_Commit], current: dict[bytes, bytes | None], first: int
) -> "tuple[list[int | BaseException], list[RowChange]]":
    """Decide commits one after the other, each with a timestamp of its own."""
    outcomes: list[int | BaseException] = []
    changes: dict[bytes, RowChange] = {}
    for timestamp, commit in enumerate(commits, first):
        values = [current.get(commit.keys[row]) for row in commit.rows]
        try:
            decided = [(commit.keys[row], row, value) for row, value in commit.decide(values, timestamp).items()]
        except BaseException as rejection:  # noqa: BLE001 - any rejection at all; only its caller gets it.
            outcomes.append(rejection)
            continue
        for key, row, value in decided:
            current[key] = value
            changes[key] = RowChange(key, long_key(encode_text(row)), timestamp, value)
        outcomes.append(timestamp)
    return outcomes, list(changes.values())
