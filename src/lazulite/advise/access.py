"""What a query reads with given keys: its class, the rows scanned, and whether they come in the wanted order.

The class is that of one request, as the design guide has them. A query that does not know the bucket asks for each of
them: in one request over all buckets, or in parallel, in one request for each.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lazulite.advise.layout import Form, Layout, Part, Parts
from lazulite.advise.workload import RANGE_SHARE, Operator, Query, Workload
from lazulite.table.query.filter import QueryClass

RANK: dict[QueryClass, int] = {
    "point": 1,
    "row range": 1,
    "partition scan": 1,
    "partition range": 2,
    "table scan": 4,
}
"""How much a row costs that a query of a class reads: several servers and continuation tokens for the last two."""
_RANK_OF_ONE: dict[QueryClass, int] = {"point": 1, "row range": 2, "partition scan": 4}
"""The same with one partition for all, where a range of rows is a range of the table."""
_INSIDE: frozenset[QueryClass] = frozenset({"point", "row range", "partition scan"})
_STOPS = (Operator.PREFIX, Operator.RANGE)


class Access(NamedTuple):
    """How a query is served."""

    kind: QueryClass
    """The class of one request."""
    scanned: float
    """The rows read, over all requests."""
    returned: float
    is_ordered: bool
    """Whether the rows come in the wanted order, each request by itself."""
    requests: int = 1
    """The buckets that are asked in parallel."""
    each: QueryClass = "point"
    """The class of each of these."""
    row: int = 0
    """The RowKey that serves it: 0 is the first one."""
    rank: int = 1
    """How much a row costs."""

    @property
    def is_sorted(self) -> bool:
        """Whether no one has to merge or sort the rows."""
        return self.is_ordered and self.requests == 1

    @property
    def is_inside(self) -> bool:
        """Whether each request reads one partition."""
        return (self.each if self.requests > 1 else self.kind) in _INSIDE

    @property
    def cost(self) -> float:
        """Rows, weighted by class, and requests."""
        return self.rank * max(self.scanned, 1) + self.requests - 1


class _Matched(NamedTuple):
    """How far a query restricts a key from its beginning."""

    equal: tuple[str, ...]
    """The properties with one value."""
    next: int
    """The place of the first part without one."""
    is_range: bool
    """Whether the part there has a range of values."""


def access(workload: Workload, layout: Layout, query: Query) -> Access:
    """Return how a query is served by the best of an entity's RowKeys."""
    bucket = layout.bucket
    if bucket is not None and query.restricts(bucket.name) is not Operator.EQUAL:
        return _access_by_buckets(workload, layout, query, bucket)
    found = [_access_by(workload, layout.partition, parts, query, row) for row, parts in enumerate(layout.rows)]
    return min(found, key=lambda each: (not each.is_ordered, each.cost, each.row) if query.order else (0, each.cost, 0))


def _access_by_buckets(workload: Workload, layout: Layout, query: Query, bucket: Part) -> Access:
    """Return how a query is served that does not know its bucket."""
    plain = Layout(tuple(each for each in layout.partition if each is not bucket), layout.row, layout.copies)
    inner = access(workload, plain, query)
    first = layout.partition[0] is bucket
    if first:
        kind: QueryClass = "table scan"
    else:
        kind = "table scan" if inner.kind == "table scan" else "partition range"
    return inner._replace(kind=kind, requests=bucket.count, each=inner.kind, rank=RANK[kind])


def _access_by(workload: Workload, partition: Parts, row: Parts, query: Query, number: int) -> Access:
    values = tuple(each for each in partition if each.form is not Form.BUCKET)
    in_partition = _matched(values, query)
    kind: QueryClass
    if in_partition.next < len(values):
        is_narrowed = bool(in_partition.equal) or in_partition.is_range
        kind = "partition range" if is_narrowed else "table scan"
        matched, at = in_partition, values
        equal = in_partition.equal
    else:
        row = tuple(each for each in row if _is_of(workload, each, query))
        matched, at = _matched(row, query), row
        equal = in_partition.equal + matched.equal
        if matched.next == len(row):
            kind = "point"
        else:
            kind = "row range" if matched.equal or matched.is_range else "partition scan"
    is_ordered = _is_ordered(at, matched, query)
    scanned, returned = _rows(workload, query, equal, matched, at)
    if query.top and is_ordered and returned:
        scanned = min(scanned, query.top * max(scanned / returned, 1))
    if query.top:
        returned = min(returned, query.top)
    rank = RANK[kind] if values else _RANK_OF_ONE[kind]
    return Access(kind, 1 if kind == "point" else scanned, returned, is_ordered, row=number, rank=rank)


def _is_of(workload: Workload, part: Part, query: Query) -> bool:
    """Return whether the RowKey of the entities that a query finds has a part."""
    own = workload.kinds.get(query.kind)
    return own is None or not part.is_value or part.name in own


def _matched(parts: Sequence[Part], query: Query) -> _Matched:
    """Return how far a query restricts a key."""
    equal: list[str] = []
    for place, part in enumerate(parts):
        if part.form is Form.KIND and query.kind:
            equal.append(part.name)
            continue
        how = query.restricts(part.name) if part.is_value else None
        if how is Operator.EQUAL:
            equal.append(part.name)
            continue
        is_range = how is Operator.RANGE or (how is Operator.PREFIX and part.form is Form.PLAIN)
        return _Matched(tuple(equal), place, is_range)
    return _Matched(tuple(equal), len(parts), False)


def _is_ordered(parts: Sequence[Part], matched: _Matched, query: Query) -> bool:
    """Return whether the rows behind what is matched come in the wanted order."""
    if not query.order or query.order in query.equal:
        return True
    if matched.next == len(parts):
        return True  # One row.
    wanted = Form.REVERSED if query.descending else Form.PLAIN
    return parts[matched.next] == Part(wanted, query.order)


def _rows(
    workload: Workload, query: Query, equal: Sequence[str], matched: _Matched, parts: Sequence[Part]
) -> tuple[float, float]:
    """Return how many rows are read, and how many match."""
    spread = workload.spread(equal)
    scanned = workload.rows / spread.distinct
    used = set(equal)
    if matched.is_range:
        scanned *= RANGE_SHARE
        used.add(parts[matched.next].name)
    every = query.equal
    ranges = sum(each.operator in _STOPS for each in query.conditions)
    estimated = workload.rows / workload.spread(every).distinct * RANGE_SHARE**ranges
    returned = estimated if query.returned is None else query.returned
    usable = {each.name for each in query.conditions if each.operator is not Operator.OTHER}
    is_exact = usable <= used | workload.implied(used) and len(usable) == len(query.conditions)
    return (returned if is_exact and query.returned is not None else max(scanned, returned)), returned
