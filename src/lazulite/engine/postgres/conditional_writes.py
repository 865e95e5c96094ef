"""Conditional writes of one row: sent with their precondition, in one round trip.

Writes of one kind are coalesced into one statement, which locks the version rows of its partitions in order. Each write
has a commit timestamp of its own, and all of them are above `base`, which the partitions' versions must be below.

- A row that does not meet its precondition is not written; the result is None, and the caller commits it otherwise.
- A partition whose version is not below `base`, because another process has set it, is not written either. The write is
  sent again with a later timestamp, `_TRIES_MAX` times in all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.errors import CHECK_FAILED
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks
from lazulite.engine.postgres.pool import Argument, Pool
from lazulite.engine.postgres.request_batcher import RETRY, Rejected, RequestBatcher, Retry, Row
from lazulite.engine.postgres.sql_scripts import Place, RowChange, write_script
from lazulite.engine.postgres.sql_statements import DELETE_PRESENT, INSERT, REPLACE, UPDATE_PRESENT
from lazulite.engine.precondition import ConditionalWrite, Expect, Precondition

_STATEMENTS = (INSERT, REPLACE, UPDATE_PRESENT, DELETE_PRESENT)
_LINGER_SECONDS = 0.005
"""A little longer than a statement takes on a fast disk."""
_VALUES_BYTES = 4 << 20
"""A statement takes no more values from this size on, so that sending it never holds the event loop for long."""
_TRIES_MAX = 4
"""With a slow clock, a process could find versions above its timestamps for ever."""

_Outcome = int | None | Retry | Rejected


@dataclass(slots=True, eq=False)
class PendingWrite:
    """A conditional write that waits for its statement."""

    place: Place
    row_key: bytes
    long_row_key: bytes | None
    write: ConditionalWrite
    precondition: Precondition
    tries: int = 0

    @property
    def partition(self) -> Partition:
        """The partition of the row."""
        return self.place[0], self.place[1]


class _Row(NamedTuple):
    """A write of a batch with its timestamp and new value."""

    pending: PendingWrite
    timestamp: int
    value: bytes | None


class ConditionalWrites:
    """Sends conditional writes.

    Args:
        pool: connections to the database.
        timestamps: commit timestamps of this process.
        locks: partitions that a statement is changing.
        scripts: whether to send each write by itself, as a script.
    """

    def __init__(self, pool: Pool, timestamps: CommitTimestamps, locks: PartitionLocks, *, scripts: bool) -> None:
        self._pool = pool
        self._timestamps = timestamps
        self._scripts = scripts
        self._batchers: dict[str, RequestBatcher[PendingWrite, int | None]] = {
            statement: RequestBatcher(
                partial(self._send, statement), linger_seconds=_LINGER_SECONDS, locks=locks, row=_row_of
            )
            for statement in _STATEMENTS
        }

    async def finished(self) -> None:
        """Return when no write is in flight."""
        while any(batcher.busy for batcher in self._batchers.values()):
            for batcher in self._batchers.values():
                await batcher.finished()

    async def write(self, pending: PendingWrite) -> int | None:
        """Return the commit timestamp; None if the row did not meet its precondition, or retries did not help."""
        if self._scripts:
            return await self._write_script(pending)
        return await self._batchers[_statement(pending.precondition)](pending)

    def give_up(self, partition: Partition) -> None:
        """Answer the writes that wait for a partition with None, because another commit keeps it locked."""
        for batcher in self._batchers.values():
            batcher.withdraw(lambda pending: pending.partition == partition, None)

    async def _send(self, statement: str, batch: Sequence[PendingWrite]) -> Sequence[_Outcome]:
        base = self._timestamps.take(len(batch))
        outcomes: list[_Outcome] = [RETRY] * len(batch)
        rows: dict[int, _Row] = {}
        size = 0
        for at, pending in enumerate(batch):
            if size >= _VALUES_BYTES:
                break
            try:
                value = pending.write.value(base + at)
            except BaseException as rejection:  # noqa: BLE001 - any rejection of this write; only its caller gets it.
                outcomes[at] = Rejected(rejection)
            else:
                rows[at] = _Row(pending, base + at, value)
                size += len(value or b"")
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

    async def _write_script(self, pending: PendingWrite) -> int | None:
        timestamp = self._timestamps.take()
        expects, _, expected = pending.precondition
        change = RowChange(pending.row_key, pending.long_row_key, timestamp, pending.write.value(timestamp))
        absent, present = expects is Expect.ABSENT, expects is Expect.PRESENT
        try:
            await self._pool.run(write_script(pending.place, change, expected, absent=absent, present=present))
        except CHECK_FAILED:
            return None
        return timestamp


def _row_of(pending: PendingWrite) -> Row:
    return (pending.place[0], pending.place[1]), pending.row_key


def _statement(precondition: Precondition) -> str:
    if precondition.expects is Expect.PRESENT:
        return DELETE_PRESENT if precondition.deletes else UPDATE_PRESENT
    return INSERT if precondition.expects is Expect.ABSENT else REPLACE


def _arguments(base: int, versions: Mapping[Partition, int], rows: Mapping[int, _Row]) -> Sequence[Argument]:
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
