"""Combine rows into commits. Each commit has rows of one partition, a bounded size, and is idempotent."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from lazulite.engine.precondition import ConditionalWrite, Expect, Precondition
from lazulite.migration.endpoint import MigrationError
from lazulite.migration.parts import StoredRow

ROWS_MAX = 100
BYTES_MAX = 256 << 10
"""A batch of this many bytes accepts no more rows."""


@dataclass(slots=True)
class CommitBatch(ConditionalWrite):
    """Hold successive rows of one partition. As a `CommitFunction`, write each row that the target lacks."""

    partition: str
    rows: list[str] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    """Of the values."""

    def add(self, row: StoredRow) -> None:
        """Add a row."""
        self.rows.append(row.row)
        self.values.append(row.value)
        self.size_bytes += len(row.value)

    def accepts(self, row: StoredRow) -> bool:
        """Return whether this batch accepts the row."""
        return row.partition == self.partition and len(self.rows) < ROWS_MAX and self.size_bytes < BYTES_MAX

    def precondition(self) -> Precondition | None:
        """See `ConditionalWrite`."""
        return Precondition(Expect.ABSENT) if len(self.rows) == 1 else None

    def value(self, timestamp: int) -> bytes:  # noqa: ARG002 - what is copied has its own
        """See `ConditionalWrite`."""
        return self.values[0]

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """See `CommitFunction`."""
        changes: dict[str, bytes | None] = {}
        for row, before, after in zip(self.rows, current, self.values, strict=True):
            if before is None:
                changes[row] = after
            elif before != after:
                raise MigrationError(
                    f"the target has another row than the source at {(self.partition, row)!r}: "
                    "one of the two was written to meanwhile; empty the target and copy again"
                )
        return changes


async def batches_of(runs: AsyncGenerator[list[StoredRow], None]) -> AsyncGenerator[CommitBatch, None]:
    """Yield the rows of `runs` in batches, in their order. Close `runs` at the end."""
    batch: CommitBatch | None = None
    async with aclosing(runs):
        async for run in runs:
            for row in run:
                if batch is None or not batch.accepts(row):
                    if batch is not None:
                        yield batch
                    batch = CommitBatch(row.partition)
                batch.add(row)
    if batch is not None:
        yield batch
