"""What a choice of keys does: to each query, to the busiest partition, to batches, and to the order of writes.

A demand is broken if the keys cannot keep it: `scale` (a partition or the end of the table gets more than the target),
`order` (rows of the whole table in an order that the keys do not have) or `atomic` (entities that must change together
are in several partitions).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log

from lazulite.advise.access import Access, access
from lazulite.advise.layout import Form, Layout, Part
from lazulite.advise.workload import Query, Workload, Write
from lazulite.partitions.targets import Targets

_COST_STEP = 1.15
"""Costs that differ by less are taken to be equal."""


@dataclass(frozen=True)
class Candidate:
    """A choice of keys for a workload."""

    workload: Workload
    layout: Layout
    targets: Targets
    origin: str = ""
    """Where it comes from: "" for one of many."""

    @cached_property
    def accesses(self) -> Sequence[Access]:
        """How each query is served, in their order."""
        return [access(self.workload, self.layout, query) for query in self.workload.queries]

    @cached_property
    def partition_share(self) -> float:
        """The share of the entities in the busiest partition."""
        return self.workload.spread(self.layout.partition_properties).busiest / self.layout.buckets

    @cached_property
    def partitions(self) -> float:
        """The number of partitions."""
        found = self.workload.spread(self.layout.partition_properties).distinct * self.layout.buckets
        return min(found, max(self.workload.rows, 1))

    @property
    def rows_per_partition(self) -> float:
        """The rows of a partition, on average."""
        return self._copies * self.workload.rows / self.partitions

    @property
    def rows_of_busiest(self) -> float:
        """The rows of the largest partition."""
        return max(self._copies * self.workload.rows * self.partition_share, 1)

    @property
    def _copies(self) -> int:
        return len(self.layout.rows)

    @cached_property
    def writes_to_busiest(self) -> float:
        """The entities per second that are written to the busiest partition."""
        return self.workload.written * self._copies * self.partition_share

    @cached_property
    def reads_of_busiest(self) -> float:
        """The rows per second that queries of one partition read in the busiest one.

        Queries over several partitions do not count here: they go from one to the next, and finer keys do not make
        them read less. They count in `total`.
        """
        pairs = zip(self.workload.queries, self.accesses, strict=True)
        return self.partition_share * sum(query.rate * max(each.scanned, 1) for query, each in pairs if each.is_inside)

    @cached_property
    def total(self) -> float:
        """The entities per second of the whole table, read and written."""
        pairs = zip(self.workload.queries, self.accesses, strict=True)
        read = sum(query.rate * max(each.scanned, 1) for query, each in pairs)
        return read + self.workload.written * self._copies

    @property
    def load(self) -> float:
        """The entities per second of the busiest partition, read and written."""
        return self.writes_to_busiest + self.reads_of_busiest

    @property
    def of_target(self) -> float:
        """The load of the busiest partition, or of the busiest end, as a share of what one partition is good for."""
        return max(self.load, self.end_load) / self.targets.partition.target

    @cached_property
    def appended(self) -> Part | None:
        """The part of the PartitionKey that rises, so that writes go to the end of the keys before it; None: none."""
        if not self.workload.written:
            return None
        parts = (each for each in self.layout.partition if each.is_value and self.workload.about(each.name).rises)
        return next(parts, None)

    @cached_property
    def before_appended(self) -> Sequence[Part]:
        """The parts of the PartitionKey before the one that rises."""
        partition = self.layout.partition
        return partition[: partition.index(self.appended)] if self.appended is not None else ()

    @cached_property
    def end_load(self) -> float:
        """The entities per second that are written to the busiest end: one server takes them, however many partitions.

        Of keys without a part that rises, it is 0.
        """
        if self.appended is None:
            return 0.0
        before = self.before_appended
        share = self.workload.spread(each.name for each in before if each.is_value).busiest
        buckets = max((each.count for each in before), default=0) or 1
        return self.workload.written * self._copies * share / buckets

    def keeps_together(self, write: Write) -> bool:
        """Return whether the entities of a write are in one partition, so that they can be a batch."""
        known = {*write.same} | self.workload.implied(write.same)
        bucket = self.layout.bucket
        if bucket is not None and (bucket.name not in known if bucket.name else write.atomic):
            return False
        return self.layout.partition_properties <= known

    @cached_property
    def lost_batches(self) -> Sequence[Write]:
        """The writes of several entities that can be no batch."""
        return [each for each in self.workload.writes if each.entities > 1 and not self.keeps_together(each)]

    @cached_property
    def unordered(self) -> Sequence[Query]:
        """The queries over the whole table whose order these keys do not have."""
        pairs = zip(self.workload.queries, self.accesses, strict=True)
        return [query for query, each in pairs if query.order and not query.equal and not each.is_sorted]

    @cached_property
    def broken(self) -> frozenset[str]:
        """The demands that these keys cannot keep."""
        found = {
            "scale": self.of_target > 1,
            "order": bool(self.unordered),
            "atomic": any(each.atomic for each in self.lost_batches),
        }
        return frozenset(name for name, is_broken in found.items() if is_broken)

    @cached_property
    def cost(self) -> float:
        """The rows read in a second, weighted by class and importance."""
        pairs = zip(self.workload.queries, self.accesses, strict=True)
        return sum(query.weight * each.cost for query, each in pairs)

    @cached_property
    def rank(self) -> tuple[float, ...]:
        """The order of candidates, the best first."""
        layout = self.layout
        partition, row = len(layout.partition), len(layout.row)
        is_extreme = not layout.partition or self.rows_per_partition <= self._copies
        return (
            len(self.broken),
            ceil(log(max(self.of_target, 1), 2)),
            ceil(log(max(self.cost, 1e-9), _COST_STEP)),
            len(self.lost_batches),
            is_extreme,
            self.appended is not None and not self.before_appended,
            layout.buckets,
            partition + row + sum(map(len, layout.copies)),
            partition,
            self.cost,
        )


def has_bucket_first(layout: Layout) -> bool:
    """Return whether a PartitionKey begins with a bucket."""
    return bool(layout.partition) and layout.partition[0].form is Form.BUCKET
