"""The keys at the beginning of a table, as the store has them: how fine its partitions are, and real keys for remedies.

Invariants: `partitions_by(length)` is the number of PartitionKeys that differ in their first `length` characters. A
sample holds counts, and the first row of one partition: its size does not depend on the rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from lazulite.control.command import Json

ROWS_MAX = 20_000
"""The rows of a sample."""
_LENGTH_MAX = 64


@dataclass(slots=True)
class KeySample:
    """See above."""

    rows: int = 0
    partitions: int = 0
    single: int = 0
    """Partitions with one row."""
    row: str | None = None
    """The first RowKey of the partition that was asked about."""
    common: list[int] = field(default_factory=lambda: [0] * (_LENGTH_MAX + 1))
    """How many PartitionKeys have the first so many characters, and no more, of the key before."""
    _last: str | None = None
    _in_last: int = 0

    def add(self, partition: str) -> None:
        """Count a row, in the order of the table."""
        self.rows += 1
        if partition == self._last:
            self.single -= self._in_last == 1
            self._in_last += 1
            return
        pairs = zip(self._last or "", partition[:_LENGTH_MAX], strict=False)
        self.common[sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))] += 1
        self.partitions += 1
        self.single += 1
        self._last, self._in_last = partition, 1

    def partitions_by(self, length: int) -> int:
        """Return how many partitions there were if only so many characters of each PartitionKey counted."""
        return sum(self.common[:length]) if length else min(self.partitions, 1)

    def as_json(self) -> Mapping[str, Json]:
        """Return it as a JSON object."""
        return {
            "rows": self.rows,
            "partitions": self.partitions,
            "single": self.single,
            "row": self.row,
            "common": self.common,
        }

    @classmethod
    def of(cls, item: Any) -> "KeySample":
        """Return the sample of a JSON object."""
        return cls(**item)
