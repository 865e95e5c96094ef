"""Commits of one row that are sent with their precondition, and what sends them.

Each has a commit timestamp of its own, and is decided on the example of its precondition. A row that does not meet its
precondition is not written; the result is None, and the caller commits it otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from lazulite.engine.commit import Commit, Decision, Needs, Precondition
from lazulite.engine.postgres.partition_locks import Partition
from lazulite.engine.postgres.request_batcher import RETRY, Rejected, Retry, Row
from lazulite.engine.postgres.sql_scripts import PartitionAddress

_VALUES_BYTES = 4 << 20
"""A statement takes no more values from this size on, so that sending it never holds the event loop for long."""

Outcome: TypeAlias = Decision[Any] | Retry | Rejected | None


@dataclass(slots=True, eq=False)
class PendingWrite:
    """A commit of one row that waits for its statement."""

    address: PartitionAddress
    row_key: bytes
    long_row_key: bytes | None
    commit: Commit[Any]
    precondition: Precondition
    tries: int = 0
    weight: int = 0
    """Its share of a script, see `RequestBatcher`."""

    @property
    def partition(self) -> Partition:
        """The partition of the row."""
        return self.address[0], self.address[1]

    @property
    def row(self) -> Row:
        """The row."""
        return self.partition, self.row_key


class EvaluatedWrite(NamedTuple):
    """A write of a batch with its timestamp, its decision and the row's new value."""

    pending: PendingWrite
    timestamp: int
    decision: Decision[Any]
    value: bytes | None


class RowWrites(Protocol):
    """Sends conditional writes."""

    async def write(self, pending: PendingWrite) -> Decision[Any] | None:
        """Return the decision, written; None if the row did not meet its precondition, or retries did not help."""
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
        The writes to send, and an outcome for each write: `RETRY` unless it has rejected itself, or writes nothing.
    """
    outcomes: list[Outcome] = [RETRY] * len(batch)
    rows: dict[int, EvaluatedWrite] = {}
    size = 0
    for at, pending in enumerate(batch):
        if size >= _VALUES_BYTES:
            break
        try:
            decision = pending.commit.decide([pending.precondition.example], base + at)
        except BaseException as rejection:  # noqa: BLE001 - any rejection of this write; only its caller gets it.
            outcomes[at] = Rejected(rejection)
            continue
        if isinstance(decision, Needs) or [*decision.changes] != [*pending.commit.rows] or decision.companions:
            outcomes[at] = None
            continue
        [value] = decision.changes.values()
        rows[at] = EvaluatedWrite(pending, base + at, decision, value)
        size += len(value or b"")
    return rows, outcomes
