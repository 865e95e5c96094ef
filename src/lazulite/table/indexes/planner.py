"""From the tree of a filter to the entries of an index that can name a match.

A filter says which values a property may have: a set of encoded values, as a step function over text in ordinal order
(`query.filter.key_ranges`). Terms about other properties, `ne` and `not` say nothing. So every row for which the filter
is TRUE has a value of the set. An index is used only if the set leaves something out: then the filter is not TRUE for a
row without the property, which has no entry.

Invariant: a plan misses no match. It may name rows that do not match, so each row is tested with the whole filter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from typing import NamedTuple

from lazulite.engine.ordinal import after_prefix, ordinal
from lazulite.table.indexes.definition import Index, Scope, State
from lazulite.table.indexes.encoding import LESS_THAN_EMPTY, encode_value, end_of_values, is_exact
from lazulite.table.query.filter import COMPARED_WITH_EMPTY, And, BooleanProperty, Comparison, Node, Or
from lazulite.table.query.filter.ast import conjuncts
from lazulite.table.query.filter.key_ranges import (
    ALL_ROWS,
    NO_ROWS,
    RowKeySet,
    balanced,
    combine,
    spans,
)

RANGES_MAX = 64
"""The ranges of entries of one plan. A query with more of them is a scan."""
_TERMS_MAX = 256
"""The terms of one `and` or `or` that are looked into."""
_LEVELS_MAX = 8
"""Alternations of `and` and `or` that are looked into."""


class Reason(Enum):
    """Why an index does not serve a query."""

    NOT_READY = "it is not built yet"
    NO_PARTITION = "it has the scope of a partition, and not every match must have one PartitionKey (eq)"
    NO_PROPERTY = "not every match must have its first property (eq, gt, ge, lt or le)"
    RANGES = f"the filter has more than {RANGES_MAX} ranges of its values"
    POINT = "the filter names one entity by its keys"


class ValueRange(NamedTuple):
    """Encoded values `lower <= values < upper`, as text in ordinal order."""

    lower: str
    upper: str
    is_point: bool
    """Whether all entries in it have the same values, so that they are in the order of their entities."""


@dataclass(frozen=True, slots=True)
class Access:
    """The entries of one index that can name a match."""

    index: Index
    ranges: tuple[ValueRange, ...]
    """Ascending and disjoint."""
    depth: int
    """How many of its properties the ranges restrict."""

    @property
    def is_ordered(self) -> bool:
        """Whether the entries of each range are in the order of their entities."""
        return all(each.is_point for each in self.ranges)


class IndexPlan(NamedTuple):
    """How indexes serve a query: by the entries of one, or by what those of two have in common."""

    accesses: tuple[Access, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether the entries of each range are in the order of their entities."""
        return all(access.is_ordered for access in self.accesses)


def plan_indexes(tree: Node, indexes: Sequence[Index]) -> IndexPlan | None:
    """Return how the indexes of a table serve a query; None if they do not, so that it is a scan.

    The best index has entries in order, then more of its properties in the filter, then fewer ranges. A second one is
    intersected with it, if the entries of both are in order.
    """
    found = [access for access in (access_by(tree, index) for index in indexes) if isinstance(access, Access)]
    found.sort(key=lambda access: (not access.is_ordered, -access.depth, len(access.ranges), access.index.name))
    if not found:
        return None
    best = found[0]
    other = [access for access in found[1:] if access.is_ordered and not {*access.index.on} & {*best.index.on}]
    return IndexPlan((best, other[0]) if best.is_ordered and other else (best,))


def access_by(tree: Node, index: Index) -> Access | Reason:
    """Return the entries of an index that can name a match, or why it does not serve the query."""
    if index.state is not State.READY:
        return Reason.NOT_READY
    keys = {term.property for term in conjuncts(tree) if isinstance(term, Comparison) and _is_key_equality(term)}
    if keys == {"PartitionKey", "RowKey"}:
        return Reason.POINT
    if index.scope is Scope.PARTITION and "PartitionKey" not in keys:
        return Reason.NO_PARTITION
    sets = [values_of(tree, name) for name in index.on]
    if sets[0] == ALL_ROWS:
        return Reason.NO_PROPERTY
    ranges = tuple(islice(_ranges(sets), RANGES_MAX + 1))
    if len(ranges) > RANGES_MAX:
        return Reason.RANGES
    restricts_second = len(sets) > 1 and sets[1] != ALL_ROWS and all(_is_point(*each) for each in _inside(sets[0]))
    return Access(index, ranges, 1 + restricts_second)


def values_of(node: Node, name: str, levels: int = _LEVELS_MAX) -> RowKeySet:
    """Return the encoded values of a property, maybe more, with which a filter can be TRUE.

    The set of all texts says that the filter can be TRUE without the property, too.
    """
    if isinstance(node, And | Or) and levels:
        every = isinstance(node, And)
        if not every and len(node.terms) > _TERMS_MAX:
            return ALL_ROWS
        sets = [values_of(term, name, levels - 1) for term in node.terms[:_TERMS_MAX]]
        return balanced(partial(combine, both=every), sets)
    if isinstance(node, BooleanProperty):
        node = Comparison(node.name, "eq", True)
    if isinstance(node, Comparison) and node.property == name and node.operator != "ne":
        return _compared(node)
    return ALL_ROWS


def _is_key_equality(term: Comparison) -> bool:
    return term.property in ("PartitionKey", "RowKey") and term.operator == "eq" and type(term.value) is str


def _compared(term: Comparison) -> RowKeySet:
    """Return the encoded values that stand in a relation to a constant, or have the encoding of one that does."""
    first = encode_value(term.value)
    after, exact, kind = _after(first), is_exact(term.value), first[0]
    lower, upper = {
        "eq": (first, after),
        "ge": (first, _after(kind)),
        "gt": (after if exact else first, _after(kind)),
        "lt": (kind, first if exact else after),
        "le": (kind, after),
    }[term.operator]
    values = _between(lower, upper)
    if term.value == "" and term.operator in COMPARED_WITH_EMPTY:
        for less in LESS_THAN_EMPTY:
            values = combine(values, _between(less, _after(less)), both=False)
    return values


def _after(prefix: str) -> str:
    after = after_prefix(prefix)
    assert after is not None, "encoded values begin with a letter"
    return after


def _between(lower: str, upper: str) -> RowKeySet:
    if lower == upper:
        return NO_ROWS
    return ((b"", False), (ordinal(lower), True), (ordinal(upper), False))


def _ranges(sets: Sequence[RowKeySet]) -> Iterator[ValueRange]:
    """Yield the ranges of entries, given the sets of each property's values."""
    for lower, upper in _inside(sets[0]):
        is_point = _is_point(lower, upper)
        if is_point and len(sets) > 1 and sets[1] != ALL_ROWS:
            for low, high in _inside(sets[1]):
                yield ValueRange(lower + low, lower + high, _is_point(low, high))
        else:
            yield ValueRange(lower, upper, is_point and len(sets) == 1)


def _inside(values: RowKeySet) -> Iterator[tuple[str, str]]:
    for start, end, inside in spans(values):
        if inside:
            assert end is not None, "no letter of a class is the last one"
            yield _text(start), _text(end)


def _text(start: bytes) -> str:
    return start.decode("utf-16-be")


def _is_point(lower: str, upper: str) -> bool:
    """Return whether a range holds one encoded value, and whatever follows it."""
    try:
        return end_of_values(lower, 1) == len(lower) and after_prefix(lower) == upper
    except ValueError:
        return False
