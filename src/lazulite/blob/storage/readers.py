"""The partitions whose contents are being read, and for which garbage therefore has to wait."""

from collections import Counter
from collections.abc import Callable

Partition = tuple[int, str]
"""The space of a container, and the name of a blob."""


class Readers:
    """Counts the readers of each partition.

    Args:
        ended: called when the last reader of a partition has ended.
    """

    def __init__(self, ended: Callable[[Partition], None]) -> None:
        self._ended = ended
        self._counts: Counter[Partition] = Counter()

    def begin(self, partition: Partition) -> None:
        """Count a reader."""
        self._counts[partition] += 1

    def end(self, partition: Partition) -> None:
        """Discount a reader."""
        self._counts[partition] -= 1
        if not self._counts[partition]:
            del self._counts[partition]
            self._ended(partition)

    def has(self, partition: Partition) -> bool:
        """Tell whether a partition has a reader."""
        return partition in self._counts
