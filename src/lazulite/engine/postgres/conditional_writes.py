"""Conditional writes of one row by statements: sent with their precondition, in one round trip.

Writes of one kind are coalesced into one statement, which locks the version rows of its partitions in order. Each write
has a commit timestamp of its own, and all of them are above `base`, which the partitions' versions must be below.

- A row that does not meet its precondition is not written; the result is None, and the caller commits it otherwise.
- A partition whose version is not below `base`, because another process has set it, is not written either. The write is
  sent again with a later timestamp, `_TRIES_MAX` times in all.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks
from lazulite.engine.postgres.pending_write import EvaluatedWrite, Outcome, PendingWrite, evaluated
from lazulite.engine.postgres.pool import Argument, Pool
from lazulite.engine.postgres.request_batcher import RequestBatcher
from lazulite.engine.postgres.sql_statements import DELETE_PRESENT, INSERT, REPLACE, UPDATE_PRESENT
from lazulite.engine.precondition import Expect, Precondition

_STATEMENTS = (INSERT, REPLACE, UPDATE_PRESENT, DELETE_PRESENT)
_LINGER_SECONDS = 0.005
"""A little longer than a statement takes on a fast disk."""
_TRIES_MAX = 4
"""With a slow clock, a process could find versions above its timestamps for ever."""


class ConditionalWrites:
    """Sends conditional writes: `RowWrites`.

    Args:
        pool: connections to the database.
        timestamps: commit timestamps of this process.
        locks: partitions that a statement is changing.
    """

    def __init__(self, pool: Pool, timestamps: CommitTimestamps, locks: PartitionLocks) -> None:
        self._pool = pool
        self._timestamps = timestamps
        self._batchers: dict[str, RequestBatcher[PendingWrite, int | None]] = {
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

    async def write(self, pending: PendingWrite) -> int | None:
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
        written = {record[0] for record in await self._pool.fetch(statement, *_arguments(base, versions, rows))}
        for at, row in rows.items():
            row.pending.tries += 1
            advanced = -versions[row.pending.partition] in written
            if advanced or row.pending.tries >= _TRIES_MAX:
                outcomes[at] = row.timestamp if row.timestamp in written else None
        return outcomes


def _statement(precondition: Precondition) -> str:
    if precondition.expects is Expect.PRESENT:
        return DELETE_PRESENT if precondition.deletes else UPDATE_PRESENT
    return INSERT if precondition.expects is Expect.ABSENT else REPLACE


def _arguments(base: int, versions: Mapping[Partition, int], rows: Mapping[int, EvaluatedWrite]) -> Sequence[Argument]:
    locked = sorted(versions)
    writes = [
        (
            *row.pending.place[:2],
            row.pending.row_key,
            row.timestamp,
            row.value,
            row.pending.place[2],
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
