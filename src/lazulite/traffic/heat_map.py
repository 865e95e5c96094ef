"""The heat map of a resource: its key ranges by time, reads and writes apart, as Bigtable's Key Visualizer has it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lazulite.control.command import Json
from lazulite.traffic.counters import READ, RESOLUTIONS, SCANNED, WRITTEN
from lazulite.traffic.key_ranges import KeyRange
from lazulite.traffic.meter import ResourceTraffic


@dataclass(frozen=True, slots=True)
class HotRange:
    """A key range with its rates, in entities per second over the whole time."""

    first: str
    after: str | None
    """The first key behind it; None: it is the last range."""
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The rates of a resource, in entities per second."""

    name: str
    begin: int
    """The Unix time of the first column."""
    seconds: int
    """The time of a column."""
    starts: Sequence[str]
    """The first key of each range."""
    reads: Sequence[Sequence[float]]
    """Entities read and rows scanned, by range and column."""
    writes: Sequence[Sequence[float]]

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.reads[0])

    def hottest(self, count: int) -> list[HotRange]:
        """Return the ranges with most traffic, the hottest first."""
        ends = [*self.starts[1:], None]
        ranges = [
            HotRange(start, after, sum(reads) / self.columns, sum(writes) / self.columns)
            for start, after, reads, writes in zip(self.starts, ends, self.reads, self.writes, strict=True)
        ]
        ranges.sort(key=lambda each: -(each.reads + each.writes))
        return [each for each in ranges[:count] if each.reads + each.writes]

    def as_json(self) -> Mapping[str, Json]:
        """Return it as a JSON object: what the pictures show."""
        return {
            "name": self.name,
            "begin": self.begin,
            "seconds": self.seconds,
            "starts": self.starts,
            "reads": self.reads,
            "writes": self.writes,
        }


def heat_map(name: str, traffic: ResourceTraffic, now: float, last_seconds: float) -> HeatMap:
    """Return the heat map of a resource's latest time, in columns as narrow as are kept of all of it.

    Args:
        name: of the resource.
        traffic: of the resource.
        now: the Unix time at which the map ends.
        last_seconds: how much time it shows.
    """
    index = next(
        (index for index, each in enumerate(RESOLUTIONS) if each.seconds * each.length >= last_seconds),
        len(RESOLUTIONS) - 1,
    )
    seconds, length = RESOLUTIONS[index]
    columns = max(1, min(length, math.ceil(last_seconds / seconds)))
    first = int(now // seconds) - columns + 1
    reads, writes = [], []
    for each in traffic.ranges.ranges:
        row_reads, row_writes = _row(each, index, first, columns, seconds)
        reads.append(row_reads)
        writes.append(row_writes)
    return HeatMap(name, first * seconds, seconds, traffic.ranges.starts, reads, writes)


def _row(found: KeyRange, index: int, first: int, columns: int, seconds: int) -> tuple[list[float], list[float]]:
    reads, writes = [0.0] * columns, [0.0] * columns
    for column, counts in found.history.rings[index].cells():
        if 0 <= column - first < columns:
            reads[column - first] = (counts[READ] + counts[SCANNED]) / seconds
            writes[column - first] = counts[WRITTEN] / seconds
    return reads, writes
