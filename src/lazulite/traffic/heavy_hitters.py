"""The heaviest keys of a stream, in bounded memory.

A counter is kept for up to twice `size` keys. When there are more, the counter of the key at place `size` + 1 is taken
from all of them, and the keys without a rest are dropped. This is the Misra-Gries summary in its form for weights. Its
counters are those of Space-Saving less a constant, and both have the same bound.

Invariants, with N the sum of all weights: the weight of a key is at least `lower(key)`, and at most that and `error`.
`error` is at most N / (`size` + 1). That holds after merging, too, and with the sum of both streams as N.

Sources: Agarwal et al., *Mergeable Summaries* (2012); Anderson et al., *A High-Performance Algorithm for Identifying
Frequent Items in Data Streams* (2017).
"""

from collections.abc import Iterable, Mapping
from heapq import nlargest
from operator import itemgetter


class HeavyHitters:
    """See above.

    Args:
        size: of the summary.
    """

    __slots__ = ("_counts", "_size", "error", "total")

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: dict[str, float] = {}
        self.error = 0.0
        """The most that a key's weight is above its counter."""
        self.total = 0.0
        """The sum of all weights."""

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def counts(self) -> Mapping[str, float]:
        """The counter of each key that is kept."""
        return self._counts

    def add(self, key: str, weight: float) -> None:
        """Count a key."""
        self.total += weight
        self._counts[key] = self._counts.get(key, 0.0) + weight
        if len(self._counts) > 2 * self._size:
            self._purge()

    def lower(self, key: str) -> float:
        """Return a weight that a key has at least."""
        return self._counts.get(key, 0.0)

    def top(self, count: int) -> list[tuple[str, float]]:
        """Return the heaviest keys with their counters, the heaviest first."""
        return nlargest(count, self._counts.items(), key=itemgetter(1))

    def merge(self, counts: Iterable[tuple[str, float]], total: float, error: float) -> None:
        """Add another summary, as its counters, `total` and `error`."""
        for key, count in counts:
            self._counts[key] = self._counts.get(key, 0.0) + count
        self.total += total
        self.error += error
        if len(self._counts) > 2 * self._size:
            self._purge()

    def resize(self, size: int) -> None:
        """Keep no more than `size` keys from now on; `error` is bounded by the least size that it had."""
        self._size = size
        if len(self._counts) > 2 * size:
            self._purge()

    def scale(self, share: float) -> None:
        """Multiply all weights, as if the stream had had that share of each."""
        self._counts = {key: count * share for key, count in self._counts.items()}
        self.total *= share
        self.error *= share

    def _purge(self) -> None:
        taken = sorted(self._counts.values(), reverse=True)[self._size]
        self._counts = {key: count - taken for key, count in self._counts.items() if count > taken}
        self.error += taken
