"""From the tree of a filter to the ranges of keys that can hold a match, and to what is left to test inside them.

`plan` never misses a row: a condition that says nothing about keys covers everything. Keys are strings and always
there, so comparing one with a string is never NULL and its negation is its complement; comparing one with anything else
is always NULL. What a region (interval_sets.py) says exactly, ranges say exactly too, but for conditions on RowKey over
a stretch of many partitions: those partitions are covered whole.
"""

from collections.abc import Callable, Sequence

from lazulite.engine.contract import KeyRange
from lazulite.protocol.steps import Steps
from lazulite.table.query.filter.ast import And, Comparison, Constant, Node, Not, Or, conjuncts
from lazulite.table.query.filter.interval_sets import (
    EVERYWHERE,
    NOWHERE,
    Region,
    complement,
    in_partitions,
    in_rows,
    join,
    meet,
    spans,
    texts,
    widened,
)

_WITHIN = {"PartitionKey": in_partitions, "RowKey": in_rows}
_SINGLY_MAX = 16
"""Conjuncts that are tried one by one; more are dropped together or not at all, to bound the work."""
_LEVELS_MAX = 16
"""Alternations of `and`, `or` and `not` that are looked into for keys; what is nested deeper may be anywhere."""


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
        return _balanced(meet if isinstance(node, And) is wanted else join, regions)
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


def _balanced(combine: Callable[[Region, Region], Region], regions: Sequence[Region]) -> Region:
    """Combine many regions in pairs, then the results in pairs, and so on: n log n, where one after the other is n²."""
    while len(regions) > 1:
        pairs = [combine(one, other) for one, other in zip(regions[::2], regions[1::2], strict=False)]
        regions = [*pairs, regions[-1]] if len(regions) % 2 else pairs
    return regions[0]


def _text(start: bytes) -> str:
    return start.decode("utf-16-be", "surrogatepass")
