"""The meter of a process: counts the traffic of all resources, in bounded memory.

What is noted is counted at most a second later, or when `PENDING_MAX` keys have been noted: per partition by
`HeavyHitters`, and per key range by `KeyRanges`. Of many requests of single entities, a sample is noted.

Older traffic counts less where ranges and partitions are compared: half after `HALF_LIFE_SECONDS`. To that end newer
traffic is given a weight that doubles in this time. The cells of the histories have plain sums.

Invariants: there are at most `RESOURCES_MAX` resources, `RANGES_MAX` key ranges, `PARTITIONS_MAX` partitions (twice
that between purges) and `CELLS_MAX` cells, over all resources together, as of the latest `balance`. Hot ranges are
divided, cold ones merged, and the coldest resources are forgotten first. So the memory does not depend on the numbers
of accounts, tables and partitions.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from math import exp2
from random import random
from typing import Final, NamedTuple, TypeAlias

from lazulite.engine.ordinal import ordinal
from lazulite.traffic.counters import MINUTES, WIDTH, WRITTEN, Counts, cost
from lazulite.traffic.heavy_hitters import HeavyHitters
from lazulite.traffic.key_ranges import KEY_CHARACTERS_MAX, KeyRange, KeyRanges

RESOURCES_MAX: Final = 1_000
RANGES_MAX: Final = 1_000
PARTITIONS_MAX: Final = 10_000
PARTITIONS_OF_RESOURCE_MAX: Final = 1_000
PARTITIONS_OF_RESOURCE_MIN: Final = 8
CELLS_MAX: Final = 240_000
PENDING_MAX: Final = 1_024
SAMPLES_PER_SECOND: Final = 1_000
"""The requests of single entities a second up to which each is counted. Beyond, one of `period` is, chosen at random,
and counts for them all: a count of N then has a standard deviation of about the root of N times `period`."""
PERIOD_MAX: Final = 64
FLUSH_SECONDS: Final = 1.0
BALANCE_SECONDS: Final = 10.0
FLUSHES_MAX: Final = 16
"""The flushes between two balances: what these add is the most by which the bounds are exceeded meanwhile."""
HALF_LIFE_SECONDS: Final = 900.0
SPLIT_COST_MIN: Final = 16.0
"""The load below which no range is divided."""
_EXPONENT_MAX = 200.0


class Resource(NamedTuple):
    """A table, queue or container of an account."""

    account: str
    service: str
    name: str


Keys: TypeAlias = "str | tuple[str, str]"
"""PartitionKey of a table, name of a blob, or "" of a queue; or the first and the last one that a scan covered."""


class WriteOrder:
    """In which order the partitions of a resource are written."""

    __slots__ = ("_last", "above", "below", "falls", "highest", "lowest", "rises", "written")

    def __init__(self) -> None:
        self.written = self.above = self.below = self.rises = self.falls = 0.0
        """Entities written; those at or above the highest key before, or at or below the lowest; neighbours that rise
        and fall. All of them are weighted."""
        self.highest = self.lowest = self._last = ""

    def add(self, key: str, written: float, weight: float) -> None:
        """Count entities of one partition, written after those before."""
        key = key[:KEY_CHARACTERS_MAX]
        here = ordinal(key)
        if not self.written:
            self.highest = self.lowest = self._last = key
        self.written += written * weight
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
        for name in ("written", "above", "below", "rises", "falls"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def scale(self, share: float) -> None:
        """Multiply all weights."""
        for name in ("written", "above", "below", "rises", "falls"):
            setattr(self, name, getattr(self, name) * share)


class QueryCount:
    """The pages of queries of one class, weighted."""

    __slots__ = ("pages", "returned", "scanned")

    def __init__(self) -> None:
        self.pages = self.scanned = self.returned = 0.0

    def add(self, pages: float, scanned: float, returned: float) -> None:
        """Count pages."""
        self.pages += pages
        self.scanned += scanned
        self.returned += returned


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

    def add(self, noted: Mapping[Keys, Counts], minute: int, weight: float) -> None:
        """Count requests.

        Args:
            noted: what each partition or scan took, in the order of the requests.
            minute: since the epoch.
            weight: of their cost, against that of older traffic.
        """
        for index, column in enumerate(zip(*noted.values(), strict=True)):
            self.totals[index] += sum(column)
        distance = SPLIT_COST_MIN / 8 * weight
        for keys, counts in noted.items():
            load = cost(counts) * weight
            if isinstance(keys, str):
                self.hitters.add(shortened(keys), load)
                self.ranges.find(keys).add(keys, minute, counts, load, distance)
            else:
                self._spread(keys, minute, counts, load, distance)
            if counts[WRITTEN]:
                self.order.add(keys if isinstance(keys, str) else keys[0], counts[WRITTEN], weight)

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
        for query in self.queries.values():
            query.pages, query.scanned, query.returned = (
                query.pages * share,
                query.scanned * share,
                query.returned * share,
            )


class Meter:
    """See above. For one thread.

    Args:
        clock: returns the Unix time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pending: dict[Resource, dict[Keys, list[float]]] = {}
        self._pending_count = self._flushes = 0
        self._period, self._skip, self._sampled = 1, 0, 0
        """One request of how many is counted, how many are passed over first, and how many there were."""
        self._queries: dict[tuple[Resource, str], QueryCount] = {}
        self._resources: dict[Resource, ResourceTraffic] = {}
        self._noted = self._balanced = self._zero = clock()
        self.forgotten = [0.0] * WIDTH
        """The traffic of resources that were forgotten."""

    def sample(self, resource: Resource, key: str, counts: Counts) -> None:
        """Count a request of one entity, or not: see `SAMPLES_PER_SECOND`.

        Args:
            resource: what it was about.
            key: of its partition.
            counts: what it took.
        """
        if self._skip:
            self._skip -= 1
            return
        period = self._period
        if period > 1:
            self._skip = int(random() * (2 * period - 1))  # noqa: S311 - a sample is no secret
            counts = [count * period for count in counts]
        self._sampled += period
        self.note(resource, key, counts)

    def note(self, resource: Resource, keys: Keys, counts: Counts) -> None:
        """Count a request.

        Args:
            resource: what it was about.
            keys: the partition, or those that a scan covered.
            counts: what it took.
        """
        elapsed = self._clock() - self._noted
        if not 0 <= elapsed < FLUSH_SECONDS or self._pending_count >= PENDING_MAX:
            rate = self._sampled / max(elapsed, 1e-3)
            self._period = max(1, min(PERIOD_MAX, round(rate / SAMPLES_PER_SECOND)))
            self._sampled = 0
            self.flush()
        pending = self._pending.get(resource)
        if pending is None:
            pending = self._pending[resource] = {}
        found = pending.get(keys)
        if found is None:
            pending[keys] = list(counts)
            self._pending_count += 1
        else:
            for index, count in enumerate(counts):
                if count:
                    found[index] += count

    def note_query(self, resource: Resource, name: str, scanned: int, returned: int) -> None:
        """Count a page of a query, beside `note`, by the name of its class."""
        query = self._queries.get((resource, name))
        if query is None:
            query = self._queries[resource, name] = QueryCount()
        query.add(1, scanned, returned)

    def resources(self) -> list[Resource]:
        """Return the resources that are known, the busiest first."""
        self.flush()
        return sorted(self._resources, key=lambda each: -self._resources[each].load)

    def traffic(self, resource: Resource) -> ResourceTraffic | None:
        """Return the traffic of a resource until now; None if it is not known."""
        self.flush()
        return self._resources.get(resource)

    def weight(self) -> float:
        """Return what a cost of 1 now weighs in loads and counters."""
        return exp2((self._clock() - self._zero) / HALF_LIFE_SECONDS)

    def flush(self) -> None:
        """Count what was noted, as of the time when the first of it was noted."""
        pending, self._pending, self._pending_count = self._pending, {}, 0
        queries, self._queries = self._queries, {}
        weight = exp2((self._noted - self._zero) / HALF_LIFE_SECONDS)
        for resource, found in pending.items():
            self._traffic(resource).add(found, int(self._noted // MINUTES.seconds), weight)
        for (resource, name), query in queries.items():
            known = self._traffic(resource).queries.setdefault(name, QueryCount())
            known.add(query.pages * weight, query.scanned * weight, query.returned * weight)
        self._noted = now = self._clock()
        self._flushes += 1
        if not 0 <= now - self._balanced < BALANCE_SECONDS or self._flushes >= FLUSHES_MAX:
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
        self._balanced, self._flushes = now, 0
        if (now - self._zero) / HALF_LIFE_SECONDS > _EXPONENT_MAX:
            share = exp2(-(now - self._zero) / HALF_LIFE_SECONDS)
            for traffic in self._resources.values():
                traffic.scale(share)
            self._zero = now
        weight = exp2((now - self._zero) / HALF_LIFE_SECONDS)
        loads = {resource: traffic.load for resource, traffic in self._resources.items()}
        total = sum(loads.values())
        hot = max(SPLIT_COST_MIN * weight, 2 * total / RANGES_MAX)
        for traffic in self._resources.values():
            for each in [each for each in traffic.ranges.ranges if each.load > hot]:
                median = each.median()
                if median is not None:
                    traffic.ranges.divide(median)
        self._merge_cold(now)
        self._share_partitions(loads, total)

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
            if not self._merge_pairs(max(ranges - RANGES_MAX, ranges // 10, 1)):
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


def shortened(key: str) -> str:
    """Return a key that is no longer than `KEY_CHARACTERS_MAX`, and differs from the others."""
    if len(key) <= KEY_CHARACTERS_MAX:
        return key
    return f"{key[:47]}…{blake2b(ordinal(key), digest_size=8).hexdigest()}"
