"""Conditional writes of one row that wait to be sent, and what sends them.

Each write has a commit timestamp of its own. A row that does not meet its precondition is not written; the result is
None, and the caller commits it otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lazulite.engine.postgres.partition_locks import Partition
from lazulite.engine.postgres.request_batcher import RETRY, Rejected, Retry, Row
from lazulite.engine.postgres.sql_scripts import Place
from lazulite.engine.precondition import ConditionalWrite, Precondition

_VALUES_BYTES = 4 << 20
"""A statement takes no more values from this size on, so that sending it never holds the event loop for long."""

Outcome = int | None | Retry | Rejected


@dataclass(slots=True, eq=False)
class PendingWrite:
    """A conditional write that waits for its statement."""

    place: Place
    row_key: bytes
    long_row_key: bytes | None
    write: ConditionalWrite
    precondition: Precondition
    tries: int = 0
    weight: int = 0
    """Its share of a script, see `RequestBatcher`."""

    @property
    def partition(self) -> Partition:
        """The partition of the row."""
        return self.place[0], self.place[1]

    @property
    def row(self) -> Row:
        """The row."""
        return self.partition, self.row_key


class EvaluatedWrite(NamedTuple):
    """A write of a batch with its timestamp and new value."""

    pending: PendingWrite
    timestamp: int
    value: bytes | None


class RowWrites(Protocol):
    """Sends conditional writes."""

    async def write(self, pending: PendingWrite) -> int | None:
        """Return the commit timestamp; None if the row did not meet its precondition, or retries did not help."""
        ...

    def give_up(self, partition: Partition) -> None:
        """Answer the writes that wait for a partition with None, because another commit keeps it locked."""
        ...

    async def finished(self) -> None:
        """Return when no write is in flight."""
        ...


def evaluated(batch: Sequence[PendingWrite], base: int) -> tuple[dict[int, EvaluatedWrite], list[Outcome]]:
    """Return the writes of a batch by their places in it, and the outcomes of all as far as they are known.

    Args:
        batch: the writes, of which the last ones are left out if the values are large.
        base: the timestamp of the first one.

    Returns:
        The writes to send, and an outcome for each write: `RETRY` unless it has rejected itself.
    """
    outcomes: list[Outcome] = [RETRY] * len(batch)
    rows: dict[int, EvaluatedWrite] = {}
    size = 0
    for at, pending in enumerate(batch):
        if size >= _VALUES_BYTES:
            break
        try:
            value = pending.write.value(base + at)
        except BaseException as rejection:  # noqa: BLE001 - any rejection of this write; only its caller gets it.
            outcomes[at] = Rejected(rejection)
        else:
            rows[at] = EvaluatedWrite(pending, base + at, value)
            size += len(value or b"")
    return rows, outcomes
