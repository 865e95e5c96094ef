"""Optimistic commits of one row: written on a precondition, without reading the row or after reading it once.

Invariants: the value that is written is the one that the commit function gives for the row as it is, because the row
must meet the precondition. Of several commits that must read one row, one at a time is optimistic: the others would
find a row that it has changed. No commit is optimistic while `partition_commit` commits to its partition: the write
would wait for that lock, and could wait for ever.

With scripts, commits that must read their row are left to `partition_commit`, which commits them together.
"""

from lazulite.engine.postgres.keys import encode_text, index_key, long_key
from lazulite.engine.postgres.partition_commit import PartitionCommits
from lazulite.engine.postgres.pending_write import PendingWrite, RowWrites
from lazulite.engine.postgres.point_reads import PointReads
from lazulite.engine.postgres.sql_scripts import Place
from lazulite.engine.precondition import ConditionalWrite, Expect, Precondition


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
        self._read_rows: set[tuple[Place, bytes]] = set()
        """The rows whose write depends on a value that was read."""

    async def commit(self, place: Place, row: str, write: ConditionalWrite) -> int | None:
        """Return the commit timestamp; None if nothing was written, and `partition_commit` has to commit it."""
        row_key = encode_text(row)
        precondition = write.precondition()
        if precondition is not None:
            return await self._write(place, row_key, write, precondition)
        key = place, index_key(row_key)
        if self._scripts or key in self._read_rows or self._partitions.has(place):
            return None
        self._read_rows.add(key)
        try:
            current = await self._reads.get(place.space, place.partition_key, key[1])
            conditional = write.conditional_on(current)
            if conditional is None:
                return None
            return await self._write(place, row_key, conditional, conditional.precondition())
        finally:
            self._read_rows.discard(key)

    async def _write(
        self, place: Place, row_key: bytes, write: ConditionalWrite, precondition: Precondition | None
    ) -> int | None:
        if precondition is None or (precondition.deletes and precondition.expects is not Expect.PRESENT):
            return None
        if self._partitions.has(place):
            return None
        pending = PendingWrite(place, index_key(row_key), long_key(row_key), write, precondition)
        return await self._writes.write(pending)
