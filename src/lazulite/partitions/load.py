"""The load of ranges: what each one took since the last round, and a sample of the keys that caused it.

Invariants: the memory for one range is bounded, whatever its partitions, and a range at rest has no samples. Of a
longer key, the first `KEY_CHARACTERS_MAX` characters are kept, at which a range can be split, too. Samples are taken at
equal distances of cost, so the same requests give the same samples. The distance follows the load of the round before:
the samples of a round come from all of it, and a batch of many entities does not fill them alone.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.engine.ordinal import ordinal
from lazulite.partitions.ranges import RangeMap

SAMPLES_MAX = 128
"""The keys that are kept of one range."""
KEY_CHARACTERS_MAX = 64


@dataclass(slots=True)
class RangeLoad:
    """The load of one range."""

    operations: float = 0
    """What it took since the last round: entities, or rows scanned."""
    bytes_written: int = 0
    """The bytes that were written to it, less those that were removed: an estimate of its size."""
    samples: deque[str] = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))
    """PartitionKeys of requests, the latest last; each stands for the same cost."""
    distance: float = 1.0
    """The cost between two samples."""
    refused: int = 0
    """The requests that were refused since the range was made."""
    delayed: int = 0
    """The requests that waited, likewise."""
    _unsampled: float = 0
    """The cost since the last sample."""

    def note(self, partition: str, cost: float, size: int = 0) -> None:
        """Count a request.

        Args:
            partition: its PartitionKey.
            cost: the entities that it read, wrote or scanned.
            size: the bytes by which it made the range larger.
        """
        self.operations += cost
        self.bytes_written += size
        self._unsampled += cost
        if self._unsampled >= self.distance:
            count, self._unsampled = divmod(self._unsampled, self.distance)
            self.samples.extend([partition[:KEY_CHARACTERS_MAX]] * min(int(count), SAMPLES_MAX))

    def add(self, other: "RangeLoad") -> None:
        """Add the load that another process counted."""
        self.operations += other.operations
        self.bytes_written += other.bytes_written
        self.samples.extend(other.samples)

    def next_round(self) -> None:
        """Begin a round; forget the samples if nothing came in the last one."""
        if not self.operations:
            self.samples.clear()
        self.distance = max(1, self.operations / SAMPLES_MAX)
        self.operations = 0


def loads_of(found: RangeMap, loads: Mapping[str, RangeLoad]) -> dict[str, RangeLoad]:
    """Return the loads of a map's ranges by their starts, given those of the map before it.

    Of a range that was split or merged, the samples stay with the ranges that have their keys now, and so does its size
    in proportion. What it took in this round is left out.
    """
    if list(loads) == [each.start for each in found.ranges]:
        return dict(loads)
    distance = max((load.distance for load in loads.values()), default=1)
    after = {each.start: RangeLoad(distance=distance) for each in found.ranges}
    for load in loads.values():
        for key in load.samples:
            part = after[found.find(key).start]
            part.samples.append(key)
            part.bytes_written += load.bytes_written // len(load.samples)
    return after


def median_key(samples: Sequence[str], start: str) -> str | None:
    """Return the key that halves a load: the median of the samples, or the next key if the median is the first one.

    Args:
        samples: PartitionKeys, each for the same cost.
        start: the start of their range, at which it cannot be split.

    Returns:
        None if all samples are of one partition: a range with one partition cannot be split.
    """
    ordered = sorted(samples, key=ordinal)
    if not ordered or ordered[0] == ordered[-1]:
        return None
    lowest = ordinal(ordered[0])
    after = (key for key in ordered[len(ordered) // 2 :] if ordinal(key) > lowest and key != start)
    return next(after, None)
