"""Conditional writes of one row: sent with their precondition, in one round trip.

As statements: writes of one kind are coalesced into one statement, which locks the version rows of its partitions in
order. Each write has a commit timestamp of its own, and all of them are above `base`, which the partitions' versions
must be below.

- A row that does not meet its precondition is not written; the result is None, and the caller commits it otherwise.
- A partition whose version is not below `base`, because another process has set it, is not written either. The write is
  sent again with a later timestamp, `_TRIES_MAX` times in all, unless its partition's commits are bound late now.

As scripts, for databases that do not take such statements: writes that wait for one node are sent together, in one
script, of which each statement goes to one shard. A script is a transaction, so one row that does not meet its
precondition undoes it. Its writes are then sent again, in scripts of a quarter of its size; a write that fails alone
has the result None.

An optimistic commit is written on a precondition, without reading the row or after reading it once. Invariants: the
value that is written is the one that the commit gives for the row as it is, because the row must meet the precondition.
Of several commits that must read one row, one at a time is optimistic: the others would find a row that it has changed.
No commit is optimistic while `partition_commit` commits to its partition, or binds its commits late: the write would
wait for that lock, and could wait forever. With scripts, commits that must read their row are left to
`partition_commit`, which commits them together.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import asyncpg

from lazulite.engine.commit import Commit, Decision, Expect, Precondition
from lazulite.engine.postgres.citus.node_batchers import NodeBatchers
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.contention import Contention
from lazulite.engine.postgres.errors import CHECK_FAILED
from lazulite.engine.postgres.keys import encode_text, index_key, long_key
from lazulite.engine.postgres.partition_commit import PartitionCommits
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks
from lazulite.engine.postgres.pending_write import EvaluatedWrite, Outcome, PendingWrite, RowWrites, evaluated
from lazulite.engine.postgres.point_reads import PointReads
from lazulite.engine.postgres.pool import Argument, Pool
from lazulite.engine.postgres.request_batcher import WEIGHT_MAX, RequestBatcher
from lazulite.engine.postgres.sql_scripts import PartitionAddress, RowChange, RowWrite, write_script
from lazulite.engine.postgres.sql_statements import DELETE_PRESENT, INSERT, REPLACE, UPDATE_PRESENT

_STATEMENTS = (INSERT, REPLACE, UPDATE_PRESENT, DELETE_PRESENT)
_TRIES_MAX = 4
"""With a slow clock, a process could find versions above its timestamps forever."""
_LINGER_SECONDS = 0.005
"""A little longer than a statement takes on a fast disk."""
T = TypeVar("T")


class ConditionalWrites:
    """Sends conditional writes: `RowWrites`.

    Args:
        pool: connections to the database.
        timestamps: commit timestamps of this process.
        locks: partitions that a statement is changing.
        contention: is told of rows that were overtaken.
    """

    def __init__(self, pool: Pool, timestamps: CommitTimestamps, locks: PartitionLocks, contention: Contention) -> None:
        self._pool = pool
        self._timestamps = timestamps
        self._contention = contention
        self._batchers: dict[str, RequestBatcher[PendingWrite, Decision[Any] | None]] = {
            statement: RequestBatcher(
                partial(self._send, statement),
                linger_seconds=_LINGER_SECONDS,
                locks=locks,
                row=lambda pending: pending.row,
            )
            for statement in _STATEMENTS
        }

    async def finished(self) -> None:
        """See `RowWrites`."""
        while any(batcher.busy for batcher in self._batchers.values()):
            for batcher in self._batchers.values():
                await batcher.finished()

    async def write(self, pending: PendingWrite) -> Decision[Any] | None:
        """See `RowWrites`."""
        return await self._batchers[_statement(pending.precondition)](pending)

    def give_up(self, partition: Partition) -> None:
        """See `RowWrites`."""
        for batcher in self._batchers.values():
            batcher.withdraw(lambda pending: pending.partition == partition, None)

    async def _send(self, statement: str, batch: Sequence[PendingWrite]) -> Sequence[Outcome]:
        base = self._timestamps.take(len(batch))
        rows, outcomes = evaluated(batch, base)
        if not rows:
            return outcomes
        versions = {row.pending.partition: row.timestamp for row in rows.values()}
        began_s = time.monotonic()
        written = {record[0] for record in await self._pool.fetch(statement, *_arguments(base, versions, rows))}
        overtaken = {partition for partition, version in versions.items() if -version not in written}
        self._contention.note_written(versions.keys() - overtaken)
        sent = Counter(row.pending.partition for row in rows.values() if row.pending.partition in overtaken)
        for partition, count in sent.items():
            self._contention.note_overtaken(partition, count, time.monotonic() - began_s)
        for at, row in rows.items():
            partition = row.pending.partition
            row.pending.tries += 1
            retried = row.pending.tries < _TRIES_MAX and not self._contention.binds_late(partition)
            if partition not in overtaken or not retried:
                outcomes[at] = row.decision if row.timestamp in written else None
        return outcomes


def _statement(precondition: Precondition) -> str:
    if precondition.expects is Expect.PRESENT:
        return DELETE_PRESENT if precondition.deletes else UPDATE_PRESENT
    return INSERT if precondition.expects is Expect.ABSENT else REPLACE


def _arguments(base: int, versions: Mapping[Partition, int], rows: Mapping[int, EvaluatedWrite]) -> Sequence[Argument]:
    locked = sorted(versions)
    writes = [
        (
            *row.pending.address[:2],
            row.pending.row_key,
            row.timestamp,
            row.value,
            row.pending.address[2],
            row.pending.long_row_key,
            row.pending.precondition.timestamp,
        )
        for row in rows.values()
    ]
    return [
        [space for space, _ in locked],
        [partition_key for _, partition_key in locked],
        [versions[partition] for partition in locked],
        base,
        *zip(*writes, strict=True),
    ]


class ScriptedWrites:
    """Sends conditional writes as scripts: `RowWrites`.

    Args:
        pool: connections to the database.
        timestamps: commit timestamps of this process.
        locks: partitions that a statement is changing.
        contention: is told of rows that were overtaken.
        shards: where partitions are.
    """

    def __init__(
        self,
        pool: Pool,
        timestamps: CommitTimestamps,
        locks: PartitionLocks,
        contention: Contention,
        shards: ShardMap,
    ) -> None:
        self._pool = pool
        self._timestamps = timestamps
        self._contention = contention
        self._shards = shards
        self._batchers: NodeBatchers[PendingWrite, Decision[Any] | None] = NodeBatchers(
            shards,
            lambda: RequestBatcher(
                self._send, lambda pending: pending.weight, locks=locks, row=lambda pending: pending.row
            ),
        )

    async def finished(self) -> None:
        """See `RowWrites`."""
        await self._batchers.finished()

    async def write(self, pending: PendingWrite) -> Decision[Any] | None:
        """See `RowWrites`."""
        return await self._batchers.of(pending.address.partition_key)(pending)

    def give_up(self, partition: Partition) -> None:
        """See `RowWrites`."""
        self._batchers.withdraw(lambda pending: pending.partition == partition, None)

    async def _send(self, batch: Sequence[PendingWrite]) -> Sequence[Outcome]:
        base = self._timestamps.take(len(batch))
        rows, outcomes = evaluated(batch, base)
        if not rows:
            return outcomes
        done = await self._done(list(rows.values()), base)
        for at, row in rows.items():
            if done:
                outcomes[at] = row.decision
            elif len(rows) == 1 or self._contention.binds_late(row.pending.partition):
                outcomes[at] = None
            else:
                row.pending.weight = WEIGHT_MAX // max(1, len(rows) // 4)
        return outcomes

    async def _done(self, rows: Sequence[EvaluatedWrite], base: int) -> bool:
        """Send writes; return whether they were made."""
        writes = [
            RowWrite(
                row.pending.address,
                RowChange(row.pending.row_key, row.pending.long_row_key, row.timestamp, row.value),
                row.pending.precondition,
            )
            for row in rows
        ]
        partition = writes[0].address.partition_key
        by_shard: dict[int, list[RowWrite]] = {}
        for write in writes:
            by_shard.setdefault(self._shards.shard(write.address.partition_key), []).append(write)
        try:
            await self._pool.run(write_script([by_shard[shard] for shard in sorted(by_shard)], base), partition)
        except CHECK_FAILED as failure:
            self._note(failure, writes)
            return False
        return True

    def _note(self, failure: Exception, writes: Sequence[RowWrite]) -> None:
        """Note that writes were overtaken, if nothing else can have failed, nor in another partition."""
        [partition, *others] = {write.address[:2] for write in writes}
        by_version = all(write.precondition.expects is not Expect.PRESENT for write in writes)
        if by_version and not others and isinstance(failure, asyncpg.DivisionByZeroError):
            self._contention.note_overtaken(partition, len(writes))


class OptimisticCommits:
    """Commits of one row.

    Args:
        reads: reads the rows.
        writes: sends the conditional writes.
        partitions: makes all other commits.
        scripts: whether writes are sent as scripts.
    """

    def __init__(self, reads: PointReads, writes: RowWrites, partitions: PartitionCommits, *, scripts: bool) -> None:
        self._reads = reads
        self._writes = writes
        self._partitions = partitions
        self._scripts = scripts
        self._read_rows: set[tuple[PartitionAddress, bytes]] = set()
        """The rows whose write depends on a value that was read."""

    async def commit(self, address: PartitionAddress, commit: Commit[T]) -> Decision[T] | None:
        """Return the decision that was written; None if nothing was, and `partition_commit` has to commit."""
        if commit.preconditions is None or len(commit.rows) != 1 or commit.kept is not None:
            return None
        row_key = encode_text(commit.rows[0])
        [precondition] = commit.preconditions(None)
        if precondition is not None:
            return await self._write(address, row_key, commit, precondition)
        key = address, index_key(row_key)
        if self._scripts or key in self._read_rows or self._partitions.claims(address):
            return None
        self._read_rows.add(key)
        try:
            current = await self._reads.get(address.space, address.partition_key, key[1])
            [precondition] = commit.preconditions([current])
            return None if precondition is None else await self._write(address, row_key, commit, precondition)
        finally:
            self._read_rows.discard(key)

    async def _write(
        self, address: PartitionAddress, row_key: bytes, commit: Commit[T], precondition: Precondition
    ) -> Decision[T] | None:
        if precondition.deletes and precondition.expects is not Expect.PRESENT:
            return None
        if self._partitions.claims(address):
            return None
        return await self._writes.write(
            PendingWrite(address, index_key(row_key), long_key(row_key), commit, precondition)
        )
