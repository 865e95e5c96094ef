"""Rows gathered into commits: each of one partition, of bounded length, and idempotent."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from lazulite.engine.precondition import Expect, Foreseeing, Foreseen
from lazulite.migration.endpoint import TransferError
from lazulite.migration.parts import Row

ROWS_MAX = 100
BYTES_MAX = 256 << 10
"""A batch takes no more rows from here on."""


@dataclass(slots=True)
class Batch(Foreseeing):
    """Successive rows of one partition. As a `Decide`, it puts them where nothing or the same is."""

    partition: str
    rows: list[str] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    """Of the values."""

    def add(self, row: Row) -> None:
        """Take a row more."""
        self.rows.append(row.row)
        self.values.append(row.value)
        self.size_bytes += len(row.value)

    def takes(self, row: Row) -> bool:
        """Say whether the row may go into this batch."""
        return row.partition == self.partition and len(self.rows) < ROWS_MAX and self.size_bytes < BYTES_MAX

    def foresee(self) -> Foreseen | None:
        """See `Foreseeing`."""
        return Foreseen(Expect.ABSENT) if len(self.rows) == 1 else None

    def value(self, stamp: int) -> bytes:  # noqa: ARG002 - what is copied has its own
        """See `Foreseeing`."""
        return self.values[0]

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """See `Decide`."""
        changes: dict[str, bytes | None] = {}
        for row, before, after in zip(self.rows, current, self.values, strict=True):
            if before is None:
                changes[row] = after
            elif before != after:
                raise TransferError(
                    f"the target has another row than the source at {(self.partition, row)!r}: "
                    "one of the two was written meanwhile; empty the target and begin again"
                )
        return changes


async def batches_of(runs: AsyncGenerator[list[Row], None]) -> AsyncGenerator[Batch, None]:
    """Yield all rows of `runs`, which this closes, in batches, in their order."""
    batch: Batch | None = None
    async with aclosing(runs):
        async for run in runs:
            for row in run:
                if batch is None or not batch.takes(row):
                    if batch is not None:
                        yield batch
                    batch = Batch(row.partition)
                batch.add(row)
    if batch is not None:
        yield batch
