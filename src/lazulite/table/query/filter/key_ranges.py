"""From the tree of a filter to the ranges of keys that can hold a match, and to what is left to test inside them.

`plan` never misses a row: a condition that says nothing about keys covers everything. Keys are strings and always
there, so comparing one with a string is never NULL and its negation is its complement; comparing one with anything else
is always NULL. What a region says exactly, ranges say exactly too, but for conditions on RowKey over a stretch of many
partitions: those partitions are covered whole.

Sets of keys are step functions over ordinal text. A step function is a tuple of pieces `(start, value)`: its value from
`start` up to the start of the next piece. Starts are sort keys (`engine.ordinal`), ascend, and begin with the empty
string; neighbours differ in value. So equal functions are equal tuples. A `RowKeySet` is a step function to bool: a set
of row keys. A `Region` is a step function to `RowKeySet`: a set of keys, which has for each partition key the set of
its row keys. Every combination of comparisons of keys is exactly such a region.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from lazulite.engine.contract import KeyRange
from lazulite.engine.ordinal import ordinal
from lazulite.protocol.steps import Steps
from lazulite.table.query.filter.ast import And, Comparison, Constant, Node, Not, Operator, Or, conjuncts

Value = TypeVar("Value")
StepFunction = tuple[tuple[bytes, Value], ...]
RowKeySet = StepFunction[bool]
Region = StepFunction[RowKeySet]

PIECES_MAX = 2_048
"""Pieces of row sets that combining two regions may visit or make: no filter is expensive to plan. Beyond it, the rows
of each partition are widened to the one range around them."""

NO_ROWS: RowKeySet = ((b"", False),)
ALL_ROWS: RowKeySet = ((b"", True),)
NOWHERE: Region = ((b"", NO_ROWS),)
EVERYWHERE: Region = ((b"", ALL_ROWS),)

_SIDES: dict[Operator, tuple[bool, bool, bool]] = {
    "eq": (False, True, False),
    "ne": (True, False, True),
    "lt": (True, False, False),
    "le": (True, True, False),
    "gt": (False, False, True),
    "ge": (False, True, True),
}
"""Whether the strings before, at and after a constant satisfy a comparison with it."""

_SINGLY_MAX = 16
"""Conjuncts that are tried one by one; more are dropped together or not at all, to bound the work."""
_LEVELS_MAX = 16
"""Alternations of `and`, `or` and `not` that are looked into for keys; what is nested deeper may be anywhere."""


def successor(start: bytes) -> bytes:
    """Return the sort key of the next string in order: `text + "\\0"`."""
    return start + b"\0\0"


def texts(operator: Operator, constant: str) -> RowKeySet:
    """Return the strings that stand in a relation to a constant."""
    before, same, after = _SIDES[operator]
    start = ordinal(constant)
    return _normal([(b"", before), (start, same), (successor(start), after)])


def in_rows(rows: RowKeySet) -> Region:
    """Return the keys whose row key is in a set."""
    return ((b"", rows),)


def in_partitions(partitions: RowKeySet) -> Region:
    """Return the keys whose partition key is in a set."""
    return tuple((start, ALL_ROWS if inside else NO_ROWS) for start, inside in partitions)


def complement(strings: RowKeySet) -> RowKeySet:
    """Return the strings that are not in a set."""
    return tuple((start, not inside) for start, inside in strings)


def spans(steps: StepFunction[Value]) -> Iterator[tuple[bytes, bytes | None, Value]]:
    """Yield the pieces as (start, end, value); the last has no end."""
    for index, (start, value) in enumerate(steps):
        yield start, steps[index + 1][0] if index + 1 < len(steps) else None, value


def meet(left: Region, right: Region) -> Region:
    """Return the keys in both regions (or some more, if that would be too fine)."""
    return _combine_regions(left, right, both=True)


def join(left: Region, right: Region) -> Region:
    """Return the keys in either region (or some more, if that would be too fine)."""
    return _combine_regions(left, right, both=False)


def widened(region: Region) -> Region:
    """Return the keys that ranges of keys must cover: a stretch of many partitions can only be covered whole."""
    return _normal(
        (start, rows if rows == NO_ROWS or end == successor(start) else ALL_ROWS) for start, end, rows in spans(region)
    )


def _normal(pieces: Iterable[tuple[bytes, Value]]) -> StepFunction[Value]:
    """Drop empty pieces (of two at one place the later counts) and repetitions."""
    steps: list[tuple[bytes, Value]] = []
    for piece in pieces:
        if steps and steps[-1][0] == piece[0]:
            steps.pop()
        if not steps or steps[-1][1] != piece[1]:
            steps.append(piece)
    return tuple(steps)


def _overlay(left: StepFunction[Value], right: StepFunction[Value]) -> Iterator[tuple[bytes, Value, Value]]:
    """Yield the pieces of two functions at once, cut wherever either has a step."""
    one = other = 0
    start = b""
    while True:
        yield start, left[one][1], right[other][1]
        next_left = left[one + 1][0] if one + 1 < len(left) else None
        next_right = right[other + 1][0] if other + 1 < len(right) else None
        if next_left is None and next_right is None:
            return
        if next_right is None or (next_left is not None and next_left <= next_right):
            one += 1
        if next_left is None or (next_right is not None and next_right <= next_left):
            other += 1
        start = max(left[one][0], right[other][0])


def combine(left: RowKeySet, right: RowKeySet, *, both: bool) -> RowKeySet:
    """Return the strings in both sets, or in either."""
    if len(left) == 1:
        return right if left[0][1] is both else left
    if len(right) == 1:
        return left if right[0][1] is both else right
    return _normal((start, (one and other) if both else (one or other)) for start, one, other in _overlay(left, right))


def _combine_regions(left: Region, right: Region, *, both: bool) -> Region:
    pieces: list[tuple[bytes, RowKeySet]] = []
    cost = 0
    for start, one, other in _overlay(left, right):
        rows = combine(one, other, both=both)
        cost += len(rows) if len(one) == 1 or len(other) == 1 else len(one) + len(other)
        if cost > PIECES_MAX:
            return _normal((start, combine(_cover(a), _cover(b), both=both)) for start, a, b in _overlay(left, right))
        pieces.append((start, rows))
    return _normal(pieces)


def _cover(rows: RowKeySet) -> RowKeySet:
    """Return the one range that spans a set."""
    if len(rows) <= 3:
        return rows
    first = next(start for start, inside in rows if inside)
    return _normal([(b"", False), (first, True), rows[-1]])


_WITHIN = {"PartitionKey": in_partitions, "RowKey": in_rows}


def plan(node: Node) -> Steps[tuple[tuple[KeyRange, ...], Node | None]]:
    """Return what to scan and what to test of the rows there, in steps.

    The ranges are ascending and disjoint and hold every row for which `node` is TRUE. The test is what is left of
    `node`: conjuncts that hold for every row in the ranges are dropped; None if nothing is left.
    """
    yield
    scanned = widened(_region(node, wanted=True))
    yield
    rest = _residual(node, scanned)
    yield
    return _ranges(scanned), rest


def _ranges(scanned: Region) -> tuple[KeyRange, ...]:
    ranges: list[KeyRange] = []
    for start, end, rows in spans(scanned):
        partition = _text(start)
        for first, last, inside in spans(rows):
            if not inside:
                continue
            lower = (partition, _text(first))
            upper = (partition, _text(last)) if last is not None else (_text(end), "") if end is not None else None
            if ranges and ranges[-1].upper == lower:
                lower = ranges.pop().lower
            ranges.append(KeyRange(lower, upper))
    return tuple(ranges)


def _residual(node: Node, scanned: Region) -> Node | None:
    terms = conjuncts(node)
    if len(terms) > _SINGLY_MAX:
        return None if _implied(scanned, node) else node
    left = tuple(term for term in terms if not _implied(scanned, term))
    if len(left) > 1:
        return And(left)
    return left[0] if left else None


def _implied(scanned: Region, node: Node) -> bool:
    """Tell whether `node` is surely TRUE for every row of a region."""
    return meet(scanned, _region(node, wanted=False)) == NOWHERE


def _region(node: Node, *, wanted: bool, levels: int = _LEVELS_MAX) -> Region:
    """Return the keys of all rows (and maybe more) for which `node` is TRUE, or, if not `wanted`, is not TRUE."""
    if isinstance(node, Not | And | Or) and not levels:
        return EVERYWHERE
    if isinstance(node, Not):
        return _region(node.term, wanted=not wanted, levels=levels - 1)
    if isinstance(node, And | Or):
        regions = [_region(term, wanted=wanted, levels=levels - 1) for term in node.terms]
        return balanced(meet if isinstance(node, And) is wanted else join, regions)
    if isinstance(node, Constant):
        return EVERYWHERE if node.value is wanted else NOWHERE
    if isinstance(node, Comparison) and node.property in _WITHIN:
        return _compared(node, wanted=wanted)
    return EVERYWHERE


def _compared(node: Comparison, *, wanted: bool) -> Region:
    if type(node.value) is not str:
        return NOWHERE if wanted else EVERYWHERE
    strings = texts(node.operator, node.value)
    return _WITHIN[node.property](strings if wanted else complement(strings))


def balanced(join_two: Callable[[Value, Value], Value], sets: Sequence[Value]) -> Value:
    """Combine many sets in pairs, then the results in pairs, and so on: n log n, where one after the other is n²."""
    while len(sets) > 1:
        pairs = [join_two(one, other) for one, other in zip(sets[::2], sets[1::2], strict=False)]
        sets = [*pairs, sets[-1]] if len(sets) % 2 else pairs
    return sets[0]


def _text(start: bytes) -> str:
    return start.decode("utf-16-be", "surrogatepass")
