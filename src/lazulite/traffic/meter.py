"""The meter of a process: counts the traffic of all resources, in bounded memory.

A request costs an entry of a list. At most a second later, or when `PENDING_MAX` requests have been noted, the list is
counted: per partition by `HeavyHitters`, and per key range by `KeyRanges`. Of a list that is too long to count, a
sample is counted. The samples divide the cost of the list into equal parts, one at a random place of each, and stand
for that part. So the cost of the list is exact, and a request of many entities is not left out.

Older traffic counts less where ranges and partitions are compared: half after `HALF_LIFE_SECONDS`. To that end newer
traffic is given a weight that doubles in this time. The cells of the histories have plain sums.

Invariants: there are at most `RESOURCES_MAX` resources, `RANGES_MAX` key ranges, `PARTITIONS_MAX` partitions (twice
that between purges) and `CELLS_MAX` cells, over all resources together, as of the latest `balance`. Hot ranges are
divided, cold ones merged, and the coldest resources are forgotten first. So the memory does not depend on the numbers
of accounts, tables and partitions.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from math import exp2
from random import random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from lazulite.engine.ordinal import ordinal
from lazulite.traffic.counters import COUNTERS, MINUTES, REQUESTS, WIDTH, WRITTEN, Counts, cost
from lazulite.traffic.heavy_hitters import HeavyHitters
from lazulite.traffic.key_ranges import KEY_CHARACTERS_MAX, KeyRange, KeyRanges

if TYPE_CHECKING:
    from lazulite.traffic.recording import Recording

RESOURCES_MAX: Final = 1_000
RANGES_MAX: Final = 1_000
PARTITIONS_MAX: Final = 10_000
PARTITIONS_OF_RESOURCE_MAX: Final = 1_000
PARTITIONS_OF_RESOURCE_MIN: Final = 8
CELLS_MAX: Final = 240_000
PENDING_MAX: Final = 256
SAMPLES_PER_SECOND: Final = 1_000
"""The requests a second up to which each is counted, and the requests of a burst. Of more, so many samples are counted.
A count of N then has a standard deviation of about the root of N times the cost that a sample stands for."""
SAMPLES_MIN: Final = 4
"""The least samples of a list: one of 64 requests of single entities."""
FLUSH_SECONDS: Final = 1.0
BALANCE_SECONDS: Final = 10.0
COUNTED_MAX: Final = 16_384
"""The requests that are counted between two balances: what these add is the most by which the bounds are exceeded."""
HALF_LIFE_SECONDS: Final = 900.0
SPLIT_COST_MIN: Final = 16.0
"""The load below which no range is divided."""
PROPERTIES_MAX: Final = 16
"""The filtered properties that are counted separately, of a class of queries: the first ones."""
CELLS_DIVIDED_MAX: Final = 4_096
"""The cells of the ranges that one balance divides: it holds up requests by some milliseconds."""
_MERGED_MIN = 8
_EXPONENT_MAX = 200.0


class Resource(NamedTuple):
    """A table, queue or container of an account."""

    account: str
    service: str
    name: str


Keys: TypeAlias = "str | tuple[str, str]"
"""PartitionKey of a table, name of a blob, or "" of a queue; or the first and the last one that a scan covered."""
Noted: TypeAlias = tuple[Resource, Keys, Counts]
"""A request: its resource, its partition or partitions, and what it took."""


WEIGHTED: Final = ("written", "single", "above", "below", "rises", "falls")
"""The weighted numbers of a `WriteOrder`."""


class WriteOrder:
    """In which order the partitions of a resource are written."""

    __slots__ = ("_last", "highest", "lowest", *WEIGHTED)

    def __init__(self) -> None:
        self.written = self.single = self.above = self.below = self.rises = self.falls = 0.0
        """Entities written; those of them by requests of one entity, at or above the highest key before, or at or below
        the lowest; neighbours that rise and fall. All of them are weighted."""
        self.highest = self.lowest = self._last = ""

    def add(self, key: str, counts: Counts, weight: float) -> None:
        """Count entities of one partition, written after those before."""
        key, written = key[:KEY_CHARACTERS_MAX], counts[WRITTEN]
        here = ordinal(key)
        if not self.written:
            self.highest = self.lowest = self._last = key
        self.written += written * weight
        if written <= counts[REQUESTS]:
            self.single += written * weight
        if here >= ordinal(self.highest):
            self.above += written * weight
            self.highest = key
        if here <= ordinal(self.lowest):
            self.below += written * weight
            self.lowest = key
        if key != self._last:
            if here > ordinal(self._last):
                self.rises += weight
            else:
                self.falls += weight
            self._last = key

    def join(self, other: "WriteOrder") -> None:
        """Add the order that another process saw, of the same weights."""
        if other.written:
            self.highest = max(self.highest, other.highest, key=ordinal)
            self.lowest = min(self.lowest, other.lowest, key=ordinal) if self.written else other.lowest
        for name in WEIGHTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def scale(self, share: float) -> None:
        """Multiply all weights."""
        for name in WEIGHTED:
            setattr(self, name, getattr(self, name) * share)


class QueryCount:
    """The pages of queries of one class, weighted."""

    __slots__ = ("pages", "properties", "returned", "scanned")

    def __init__(self) -> None:
        self.pages = self.scanned = self.returned = 0.0
        self.properties: dict[str, float] = {}
        """By a property that the queries filter by, the rows scanned for them; at most `PROPERTIES_MAX`."""

    def add(self, pages: float, scanned: float, returned: float, properties: Iterable[str] = ()) -> None:
        """Count pages of queries that filter by some properties."""
        self.pages += pages
        self.scanned += scanned
        self.returned += returned
        for name in properties:
            self._add_property(name, scanned)

    def join(self, other: "QueryCount", weight: float = 1.0) -> None:
        """Add what another one counted, times a weight."""
        self.add(other.pages * weight, other.scanned * weight, other.returned * weight)
        for name, scanned in other.properties.items():
            self._add_property(name, scanned * weight)

    def scaled(self, share: float) -> "QueryCount":
        """Return the same counts, times a share."""
        found = QueryCount()
        found.join(self, share)
        return found

    def _add_property(self, name: str, scanned: float) -> None:
        if name in self.properties or len(self.properties) < PROPERTIES_MAX:
            self.properties[name] = self.properties.get(name, 0.0) + scanned


class ResourceTraffic:
    """The traffic of one resource."""

    __slots__ = ("hitters", "order", "queries", "ranges", "totals")

    def __init__(self) -> None:
        self.totals = [0.0] * WIDTH
        """Since the resource was first noted."""
        self.ranges = KeyRanges()
        self.hitters = HeavyHitters(PARTITIONS_OF_RESOURCE_MAX)
        self.order = WriteOrder()
        self.queries: dict[str, QueryCount] = {}
        """By class."""

    def add(self, keys: Keys, counts: Counts, minute: int, weight: float) -> None:
        """Count a request.

        Args:
            keys: the partition, or those that a scan covered.
            counts: what it took.
            minute: since the epoch.
            weight: of its cost, against that of older traffic.
        """
        totals = self.totals
        for index, count in enumerate(counts):
            if count:
                totals[index] += count
        load, distance = cost(counts) * weight, SPLIT_COST_MIN / 8 * weight
        if isinstance(keys, str):
            self.hitters.add(shortened(keys), load)
            self.ranges.find(keys).add(keys, minute, counts, load, distance)
        else:
            self._spread(keys, minute, counts, load, distance)
        if counts[WRITTEN]:
            self.order.add(keys if isinstance(keys, str) else keys[0], counts, weight)

    def _spread(self, keys: tuple[str, str], minute: int, counts: Counts, load: float, distance: float) -> None:
        """Count a scan, whose keys are taken to be spread evenly over their ranges."""
        first, last = keys
        parts = self.ranges.between(first, last)
        share = [count / len(parts) for count in counts]
        for part in parts:
            part.add(max(part.start, first, key=ordinal), minute, share, load / len(parts), distance)

    @property
    def load(self) -> float:
        """Its cost, of which older parts count less."""
        return sum(each.load for each in self.ranges.ranges)

    def scale(self, share: float) -> None:
        """Multiply all weights."""
        self.hitters.scale(share)
        self.order.scale(share)
        for each in self.ranges.ranges:
            each.load *= share
        self.queries = {name: query.scaled(share) for name, query in self.queries.items()}


class Meter:
    """See above. For one thread.

    Args:
        clock: returns the Unix time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pending: list[Noted] = []
        self._counted = 0
        """The requests that were counted since the latest balance."""
        self._samples = float(SAMPLES_PER_SECOND)
        """The requests that may be counted now; a second brings `SAMPLES_PER_SECOND`, and no more are kept."""
        self._queries: dict[tuple[Resource, str], QueryCount] = {}
        self._resources: dict[Resource, ResourceTraffic] = {}
        self._noted = self._balanced = self._zero = clock()
        self.forgotten = [0.0] * WIDTH
        """The traffic of resources that were forgotten."""
        self.recording: Recording | None = None
        """Takes the shapes of requests, too, while there is one; see `traffic.recording`."""

    @property
    def now(self) -> float:
        """The Unix time in seconds."""
        return self._clock()

    def note(self, resource: Resource, keys: Keys, counts: Counts) -> None:
        """Count a request.

        Args:
            resource: what it was about.
            keys: the partition, or those that a scan covered.
            counts: what it took.
        """
        if not 0 <= self._clock() - self._noted < FLUSH_SECONDS or len(self._pending) >= PENDING_MAX:
            self.flush()
        self._pending.append((resource, keys, counts))

    def note_query(
        self, resource: Resource, name: str, scanned: int, returned: int, properties: Iterable[str] = ()
    ) -> None:
        """Count a page of a query, beside `note`, by the name of its class and the properties that it filters by."""
        query = self._queries.get((resource, name))
        if query is None:
            query = self._queries[resource, name] = QueryCount()
        query.add(1, scanned, returned, properties)

    def resources(self) -> list[Resource]:
        """Return the resources that are known, the busiest first."""
        self.flush()
        return sorted(self._resources, key=lambda each: -self._resources[each].load)

    def traffic(self, resource: Resource) -> ResourceTraffic | None:
        """Return the traffic of a resource until now; None if it is not known."""
        self.flush()
        return self._resources.get(resource)

    def totals(self) -> Mapping[str, float]:
        """Return the counters of all resources together, since the start."""
        self.flush()
        rows = zip(self.forgotten, *(each.totals for each in self._resources.values()), strict=True)
        return dict(zip(COUNTERS, map(sum, rows), strict=True))

    def weight(self) -> float:
        """Return what a cost of 1 now weighs in loads and counters."""
        return exp2((self._clock() - self._zero) / HALF_LIFE_SECONDS)

    def flush(self) -> None:
        """Count what was noted, as of the time when the first of it was noted."""
        now = self._clock()
        self._samples = min(self._samples + max(now - self._noted, 0) * SAMPLES_PER_SECOND, SAMPLES_PER_SECOND)
        pending, self._pending = self._pending, []
        queries, self._queries = self._queries, {}
        minute, weight = int(self._noted // MINUTES.seconds), exp2((self._noted - self._zero) / HALF_LIFE_SECONDS)
        count = min(len(pending), max(int(self._samples), SAMPLES_MIN))
        self._samples = max(self._samples - count, 0)
        if count < len(pending):
            pending = samples_of(pending, count)
        for resource, keys, counts in pending:
            self._traffic(resource).add(keys, counts, minute, weight)
        for (resource, name), query in queries.items():
            self._traffic(resource).queries.setdefault(name, QueryCount()).join(query, weight)
        self._noted = now
        self._counted += len(pending)
        if not 0 <= now - self._balanced < BALANCE_SECONDS or self._counted >= COUNTED_MAX:
            self.balance(now)

    def _traffic(self, resource: Resource) -> ResourceTraffic:
        found = self._resources.get(resource)
        if found is None:
            if len(self._resources) >= RESOURCES_MAX:
                self._forget(RESOURCES_MAX * 9 // 10)
            found = self._resources[resource] = ResourceTraffic()
        return found

    def balance(self, now: float) -> None:
        """Divide hot ranges, merge cold ones, and keep to the bounds; see above."""
        self._balanced, self._counted = now, 0
        if (now - self._zero) / HALF_LIFE_SECONDS > _EXPONENT_MAX:
            share = exp2(-(now - self._zero) / HALF_LIFE_SECONDS)
            for traffic in self._resources.values():
                traffic.scale(share)
            self._zero = now
        weight = exp2((now - self._zero) / HALF_LIFE_SECONDS)
        loads = {resource: traffic.load for resource, traffic in self._resources.items()}
        total = sum(loads.values())
        hot = max(SPLIT_COST_MIN * weight, 2 * total / RANGES_MAX)
        self._divide_hot(hot)
        self._merge_cold(now)
        self._share_partitions(loads, total)

    def _divide_hot(self, hot: float) -> None:
        """Divide the ranges whose load is above a bound, the hottest first, in bounded time."""
        ranges = [
            (each.load, traffic.ranges, each)
            for traffic in self._resources.values()
            for each in traffic.ranges.ranges
            if each.load > hot
        ]
        ranges.sort(key=lambda found: -found[0])
        cells = 0
        for _, parts, each in ranges:
            cells += len(each.history) + 1
            if cells > CELLS_DIVIDED_MAX:
                return
            median = each.median()
            if median is not None:
                parts.divide(median)

    def _merge_cold(self, now: float) -> None:
        """Merge the coldest neighbours until ranges and cells are within their bounds."""
        for traffic in self._resources.values():
            for each in traffic.ranges.ranges:
                each.history.expire(now)
        while True:
            ranges = sum(len(each.ranges) for each in self._resources.values())
            cells = sum(len(part.history) for each in self._resources.values() for part in each.ranges.ranges)
            if ranges <= RANGES_MAX and cells <= CELLS_MAX:
                return
            if not self._merge_pairs(max(ranges - RANGES_MAX, _MERGED_MIN)):
                self._forget(max(len(self._resources) * 9 // 10, 0))

    def _merge_pairs(self, count: int) -> bool:
        """Merge the coldest pairs of neighbours, each range at most once; return whether there was one."""
        pairs = [
            (lower.load + upper.load, traffic.ranges, lower)
            for traffic in self._resources.values()
            for lower, upper in zip(traffic.ranges.ranges, traffic.ranges.ranges[1:], strict=False)
        ]
        pairs.sort(key=lambda pair: pair[0])
        merged: set[KeyRange] = set()
        for _, ranges, lower in pairs:
            if len(merged) >= 2 * count:
                break
            index = ranges.ranges.index(lower) if lower not in merged else -1
            if index >= 0 and ranges.ranges[index + 1] not in merged:
                merged |= {lower, ranges.ranges[index + 1]}
                ranges.merge(index)
        return bool(merged)

    def _share_partitions(self, loads: dict[Resource, float], total: float) -> None:
        """Give each resource its share of the partitions that are kept, by load."""
        for resource, traffic in self._resources.items():
            share = loads[resource] / total if total and resource in loads else 0
            size = int(PARTITIONS_MAX * share * 0.2) if len(self._resources) > 10 else PARTITIONS_OF_RESOURCE_MAX
            even = PARTITIONS_MAX * 8 // 10 // max(len(self._resources), 1)
            traffic.hitters.resize(min(PARTITIONS_OF_RESOURCE_MAX, max(PARTITIONS_OF_RESOURCE_MIN, size + even)))

    def _forget(self, count: int) -> None:
        """Forget all but the busiest resources."""
        busiest = sorted(self._resources, key=lambda each: -self._resources[each].load)
        for resource in busiest[count:]:
            totals = self._resources.pop(resource).totals
            self.forgotten = [total + other for total, other in zip(self.forgotten, totals, strict=True)]


def samples_of(noted: Sequence[Noted], count: int) -> list[Noted]:
    """Return some of the requests, in their order, each with the counts of the part that it stands for; see above.

    Args:
        noted: the requests.
        count: the samples; a request that is several of them is returned once.
    """
    ends = list(accumulate(cost(counts) or 1.0 for _, _, counts in noted))
    part, found = ends[-1] / count, Counter[int]()
    for index in range(count):
        found[min(bisect_right(ends, (index + random()) * part), len(ends) - 1)] += 1  # noqa: S311 - no secret
    samples: list[Noted] = []
    for index, times in found.items():
        resource, keys, counts = noted[index]
        share = times * part / (cost(counts) or 1.0)
        samples.append((resource, keys, [each * share for each in counts]))
    return samples


def shortened(key: str) -> str:
    """Return a key that is no longer than `KEY_CHARACTERS_MAX`, and differs from the others."""
    if len(key) <= KEY_CHARACTERS_MAX:
        return key
    return f"{key[:47]}…{blake2b(ordinal(key), digest_size=8).hexdigest()}"
