"""What the traffic of a resource says about its keys: hot, append-only, prepend-only, scan-heavy, too fine.

Sources: the study *How to get most out of Windows Azure Tables* (2010), sections on append-only keys and partitions,
and the table design guide. The thresholds are ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.traffic.counters import WRITTEN, cost
from lazulite.traffic.key_sample import KeySample
from lazulite.traffic.meter import ResourceTraffic
from lazulite.traffic.rekeying import (
    buckets_for,
    coarser,
    concatenated,
    hashed,
    reversed_ticks,
    with_prefix,
    with_suffix,
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When there is a finding."""

    partition_target: float = 2_000
    """Entities per second that one partition is good for."""
    hot_share: float = 0.5
    """The share of the resource's traffic above which one partition is hot."""
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
    single_row_share: float = 0.95
    """The share of partitions with one row, above which partitions are too fine."""
    rows_min: float = 10_000
    """The rows below which nothing is said about that."""
    single_write_share: float = 0.95
    """And the share of entities that are written by themselves, above which batches are missed."""


class Finding(NamedTuple):
    """A finding."""

    kind: str
    evidence: str
    """A sentence with its numbers."""
    remedy: str
    """A sentence, with keys made of real ones."""


def findings(
    traffic: ResourceTraffic, sample: KeySample | None = None, thresholds: Thresholds = Thresholds()
) -> Iterator[Finding]:
    """Yield what the traffic of a resource says.

    Args:
        traffic: decoded, so its weights are those of now.
        sample: of the keys of a table, with the first row of its `busiest` partition; None: they are not known.
        thresholds: when there is a finding.
    """
    sample = sample or KeySample()
    yield from _hot(traffic, sample, thresholds)
    yield from _ordered(traffic, thresholds)
    yield from _scans(traffic, thresholds)
    yield from _too_fine(traffic, sample, thresholds)


def busiest(traffic: ResourceTraffic) -> str:
    """Return the partition with the most traffic; "" if none is known."""
    return next((key for key, _ in traffic.hitters.top(1)), "")


def shares_of(service: str, traffic: ResourceTraffic, count: int) -> Sequence[tuple[str, float]]:
    """Return the busiest partitions with their shares of the traffic; for a queue, which is one partition, nothing."""
    load = traffic.load if service != "queue" else 0
    return [(key, each / load) for key, each in traffic.hitters.top(count)] if load else []


def _hot(traffic: ResourceTraffic, sample: KeySample, thresholds: Thresholds) -> Iterator[Finding]:
    hitters, load, target = traffic.hitters, traffic.load, thresholds.partition_target
    for key, count in hitters.top(1):
        peak = _peak(traffic, key)
        if load and count / load > thresholds.hot_share and peak > thresholds.hot_target_share * target:
            buckets = buckets_for(peak, target, 2)
            longer = concatenated(key, sample.row)
            shown = "" if longer is None else f", such as {longer!r}"
            yield Finding(
                "hot",
                f"Partition {key!r} takes {count / load:.0%} of the traffic, {peak:,.0f} entities/s in its busiest "
                f"minute; one partition is good for {target:,.0f}.",
                f"Add the next property to the PartitionKey{shown}. If that is too hot as well, add one of {buckets} "
                f"buckets, by a hash of the RowKey: {with_suffix(key, buckets, sample.row)!r}.",
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
            peak = max(_peak(traffic, key, WRITTEN), 1.0)
            buckets = buckets_for(peak, thresholds.partition_target, 4)
            ticks = reversed_ticks(key) if kind == "append-only" else None
            newest = "" if ticks is None else f" To read the newest first, make reversed ticks the RowKey: {ticks!r}."
            yield Finding(
                kind,
                f"{at_end / order.written:.0%} of the written entities have the {end} PartitionKey so far, and "
                f"{ordered / neighbours:.0%} of the keys {verb}: one range takes all writes, {peak:,.0f} entities/s at "
                "most, and balancing cannot help.",
                f"Put the number of one of {buckets} buckets before the key, by a hash of it: "
                f"{with_prefix(key, buckets)!r}. A query in order then reads {buckets} ranges.{newest}",
            )


def _scans(traffic: ResourceTraffic, thresholds: Thresholds) -> Iterator[Finding]:
    pages = sum(each.pages for each in traffic.queries.values())
    scanned = sum(each.scanned for each in traffic.queries.values())
    returned = sum(each.returned for each in traffic.queries.values())
    if pages < thresholds.pages_min or scanned / max(returned, 1) <= thresholds.scanned_per_returned:
        return
    name, worst = max(traffic.queries.items(), key=lambda item: item[1].scanned)
    key = busiest(traffic) or next((each for part in traffic.ranges.ranges for each in part.samples), "")
    filtered = max(worst.properties, key=lambda each: worst.properties[each], default=None)
    most = f"most by queries of the class {name}"
    if filtered is not None:
        most += f", {worst.properties[filtered] / max(worst.scanned, 1):.0%} of those by {filtered}"
    yield Finding(
        "scan-heavy",
        f"Queries scanned {scanned / max(returned, 1):,.0f} rows for each that they returned, in {pages:,.0f} pages; "
        f"{most}, {worst.scanned / max(worst.pages, 1):,.0f} rows a page.",
        f"Make {filtered or 'the filtered property'} the PartitionKey or the beginning of the RowKey, or store the "
        "entity a second time in the same transaction, under a RowKey of that property: "
        f"{key!r} and '<{filtered or 'property'}>;<RowKey>'.",
    )


def _too_fine(traffic: ResourceTraffic, sample: KeySample, thresholds: Thresholds) -> Iterator[Finding]:
    order = traffic.order
    if sample.rows < thresholds.rows_min or order.written < thresholds.written_min:
        return
    alone, single = sample.single / sample.partitions, order.single / order.written
    if alone <= thresholds.single_row_share or single <= thresholds.single_write_share:
        return
    key = order.highest
    parts = coarser(key, sample)
    if parts is None:
        remedy = f"a hash of the key the PartitionKey, and the key the RowKey: {hashed(key, sample)!r} and {key!r}"
    else:
        remedy = f"the beginning of the key the PartitionKey, and the rest the RowKey: {parts[0]!r} and {parts[1]!r}"
    yield Finding(
        "too-fine",
        f"{alone:.0%} of {sample.partitions:,} partitions have one row, and {single:.0%} of the entities are written "
        "by themselves: no batch is possible, and a range of rows is a range of partitions.",
        f"Make {remedy}. Then up to 100 entities are one batch.",
    )


def _peak(traffic: ResourceTraffic, key: str, counter: int | None = None) -> float:
    """Return the entities per second in the busiest minute of a key's range: all of them, or one counter."""
    ring = traffic.ranges.find(key).history.rings[0]
    values = (cost(counts) if counter is None else counts[counter] for _, counts in ring.cells())
    return max(values, default=0.0) / ring.resolution.seconds
