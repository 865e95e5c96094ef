"""Conditional writes of one row as scripts, for databases that do not take the statements of `conditional_writes`.

Writes that wait for one node are sent together, in one script: each statement of it goes to one shard.

A script is a transaction, so one row that does not meet its precondition undoes it. Its writes are then sent again, in
scripts of a quarter of its size; a write that fails alone has the result None.
"""

from collections.abc import Sequence

from lazulite.engine.postgres.citus.node_batchers import NodeBatchers
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.errors import CHECK_FAILED
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks
from lazulite.engine.postgres.pending_write import EvaluatedWrite, Outcome, PendingWrite, evaluated
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.request_batcher import WEIGHT_MAX, RequestBatcher
from lazulite.engine.postgres.sql_scripts import RowChange, RowWrite, write_script


class ScriptedWrites:
    """Sends conditional writes as scripts: `RowWrites`.

    Args:
        pool: connections to the database.
        timestamps: commit timestamps of this process.
        locks: partitions that a statement is changing.
        shards: where partitions are.
    """

    def __init__(self, pool: Pool, timestamps: CommitTimestamps, locks: PartitionLocks, shards: ShardMap) -> None:
        self._pool = pool
        self._timestamps = timestamps
        self._shards = shards
        self._batchers: NodeBatchers[PendingWrite, int | None] = NodeBatchers(
            shards,
            lambda: RequestBatcher(
                self._send, lambda pending: pending.weight, locks=locks, row=lambda pending: pending.row
            ),
        )

    async def finished(self) -> None:
        """See `RowWrites`."""
        await self._batchers.finished()

    async def write(self, pending: PendingWrite) -> int | None:
        """See `RowWrites`."""
        return await self._batchers.of(pending.place.partition_key)(pending)

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
                outcomes[at] = row.timestamp
            elif len(rows) == 1:
                outcomes[at] = None
            else:
                row.pending.weight = WEIGHT_MAX // max(1, len(rows) // 4)
        return outcomes

    async def _done(self, rows: Sequence[EvaluatedWrite], base: int) -> bool:
        """Send writes; return whether they were made."""
        writes = [
            RowWrite(
                row.pending.place,
                RowChange(row.pending.row_key, row.pending.long_row_key, row.timestamp, row.value),
                row.pending.precondition,
            )
            for row in rows
        ]
        partition = writes[0].place.partition_key
        by_shard: dict[int, list[RowWrite]] = {}
        for write in writes:
            by_shard.setdefault(self._shards.shard(write.place.partition_key), []).append(write)
        try:
            await self._pool.run(write_script([by_shard[shard] for shard in sorted(by_shard)], base), partition)
        except CHECK_FAILED:
            return False
        return True
