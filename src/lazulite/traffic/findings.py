"""What the traffic of a resource says about its keys: hot, append-only, prepend-only, scan-heavy.

Sources: the study *How to get most out of Windows Azure Tables* (2010), sections on append-only keys and partitions,
and the table design guide. The thresholds are ours.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from lazulite.traffic.counters import WRITTEN, cost
from lazulite.traffic.meter import ResourceTraffic


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When there is a finding."""

    partition_target: float = 2_000
    """Entities per second that one partition is good for."""
    hot_share: float = 0.5
    """Of the resource's traffic, the share of one partition above which it is hot."""
    hot_target_share: float = 0.25
    """And of the target, the share that its busiest minute takes."""
    end_share: float = 0.9
    """The share of written entities at the end of the keys, from which writes are append-only."""
    order_share: float = 0.95
    """And the share of neighbours that rise."""
    written_min: float = 100
    """The entities written, below which nothing is said about their order."""
    scanned_per_returned: float = 100
    """The rows scanned for each that is returned, above which queries are scan-heavy."""
    pages_min: float = 1_000
    """The pages below which nothing is said about scans."""


class Finding(NamedTuple):
    """A finding."""

    kind: str
    evidence: str
    """A sentence with its numbers."""
    remedy: str
    """A sentence, with keys made of real ones."""


def findings(traffic: ResourceTraffic, thresholds: Thresholds = Thresholds()) -> Iterator[Finding]:
    """Yield what the traffic of a resource says. It was decoded, so its weights are those of now."""
    yield from _hot(traffic, thresholds)
    yield from _ordered(traffic, thresholds)
    yield from _scans(traffic, thresholds)


def _hot(traffic: ResourceTraffic, thresholds: Thresholds) -> Iterator[Finding]:
    hitters, load = traffic.hitters, traffic.load
    for key, count in hitters.top(1):
        peak = _peak(traffic, key)
        if (
            load
            and count / load > thresholds.hot_share
            and peak > thresholds.hot_target_share * thresholds.partition_target
        ):
            buckets = max(2, math.ceil(2 * peak / thresholds.partition_target))
            yield Finding(
                "hot",
                f"Partition {key!r} takes {count / load:.0%} of the traffic, {peak:,.0f} entities/s in its busiest "
                f"minute; one partition is good for {thresholds.partition_target:,.0f}.",
                f"Add the next property to the PartitionKey, or one of {buckets} buckets: "
                f"{_bucketed(key, buckets, prefix=False)!r}.",
            )


def _ordered(traffic: ResourceTraffic, thresholds: Thresholds) -> Iterator[Finding]:
    order = traffic.order
    neighbours = order.rises + order.falls
    if order.written < thresholds.written_min or not neighbours:
        return
    kinds = (
        ("append-only", order.above, order.rises, order.highest, "rise", "highest"),
        ("prepend-only", order.below, order.falls, order.lowest, "fall", "lowest"),
    )
    for kind, at_end, ordered, key, verb, end in kinds:
        if at_end / order.written >= thresholds.end_share and ordered / neighbours >= thresholds.order_share:
            peak = max((_peak(traffic, key, WRITTEN), 1.0))
            buckets = max(4, math.ceil(2 * peak / thresholds.partition_target))
            yield Finding(
                kind,
                f"{at_end / order.written:.0%} of the written entities have the {end} PartitionKey so far, and "
                f"{ordered / neighbours:.0%} of the keys {verb}: one range takes all writes, {peak:,.0f} entities/s at "
                "most, and balancing cannot help.",
                f"Put the number of one of {buckets} buckets before the key, by a hash of it: "
                f"{_bucketed(key, buckets, prefix=True)!r}. A query in order then reads {buckets} ranges.",
            )


def _scans(traffic: ResourceTraffic, thresholds: Thresholds) -> Iterator[Finding]:
    pages = sum(each.pages for each in traffic.queries.values())
    scanned = sum(each.scanned for each in traffic.queries.values())
    returned = sum(each.returned for each in traffic.queries.values())
    if pages < thresholds.pages_min or scanned / max(returned, 1) <= thresholds.scanned_per_returned:
        return
    name, worst = max(traffic.queries.items(), key=lambda item: item[1].scanned)
    yield Finding(
        "scan-heavy",
        f"Queries scanned {scanned / max(returned, 1):,.0f} rows for each that they returned, in {pages:,.0f} pages; "
        f"most by queries of the class {name}, {worst.scanned / max(worst.pages, 1):,.0f} rows a page.",
        "Make the filtered property the PartitionKey or the beginning of the RowKey, or store the entity a second time "
        "under such a key in the same transaction.",
    )


def _peak(traffic: ResourceTraffic, key: str, counter: int | None = None) -> float:
    """Return the entities per second in the busiest minute of a key's range: all of them, or one counter."""
    ring = traffic.ranges.find(key).history.rings[0]
    values = (cost(counts) if counter is None else counts[counter] for _, counts in ring.cells())
    return max(values, default=0.0) / ring.resolution.seconds


def _bucketed(key: str, buckets: int, *, prefix: bool) -> str:
    bucket = f"{crc32(key.encode('utf-8', 'surrogatepass')) % buckets:0{len(str(buckets - 1))}d}"
    return f"{bucket};{key}" if prefix else f"{key};{bucket}"
