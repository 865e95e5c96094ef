"""The shape of a filter: which properties it restricts, and how, without its constants.

Invariant: a shape has nothing of a client's data but the names of properties. The constants are apart, in `values`.

A prefix is what clients write for it: `Name ge 'ab' and Name lt 'ac'`, whose upper bound is the text with its last
character counted up.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from lazulite.table.model.edm import Value
from lazulite.table.query.filter import And, BooleanProperty, Comparison, Node, Not, Or
from lazulite.table.query.filter.ast import conjuncts

Restriction: TypeAlias = Literal["eq", "prefix", "range", "other"]
CONDITIONS_MAX: Final = 16
"""The conditions of a shape; the others of a filter are left out."""
_STRENGTH: Final[dict[Restriction, int]] = {"eq": 0, "prefix": 1, "range": 2, "other": 3}
_ORDERED: Final = frozenset({"gt", "ge", "lt", "le"})


class ShapeCondition(NamedTuple):
    """How a filter restricts one property."""

    property: str
    operator: Restriction
    """`other`: by `ne`, `or` or `not`, which no key serves."""


POINT_CONDITIONS: Final = (ShapeCondition("PartitionKey", "eq"), ShapeCondition("RowKey", "eq"))
"""The conditions of a query of one entity."""


class Shape(NamedTuple):
    """See above."""

    conditions: tuple[ShapeCondition, ...]
    """In the order of the names, one for each property."""
    values: tuple[tuple[str, Value], ...] = ()
    """The properties with one value, and that value."""


def shape_of(tree: Node | None) -> Shape:
    """Return the shape of a filter; None is no filter."""
    compared: dict[str, list[Comparison]] = {}
    found: dict[str, Restriction] = {}
    for term in conjuncts(tree) if tree is not None else ():
        if isinstance(term, BooleanProperty):
            compared.setdefault(term.name, []).append(Comparison(term.name, "eq", True))
        elif isinstance(term, Comparison) and term.operator != "ne":
            compared.setdefault(term.property, []).append(term)
        else:
            found.update(dict.fromkeys(_names(term), "other"))
    found.update((name, _restriction(terms)) for name, terms in compared.items())
    conditions = sorted(ShapeCondition(name, how) for name, how in found.items())
    kept = sorted(conditions, key=lambda each: _STRENGTH[each.operator])[:CONDITIONS_MAX]
    names = {each.property for each in kept if each.operator == "eq"}
    values = ((term.property, term.value) for terms in compared.values() for term in terms if term.operator == "eq")
    return Shape(tuple(sorted(kept)), tuple(each for each in values if each[0] in names))


def filtered_properties(tree: Node | None) -> Sequence[str]:
    """Return the properties that a filter restricts beside the PartitionKey, of at most `CONDITIONS_MAX` terms."""
    found = dict.fromkeys(
        term.name if isinstance(term, BooleanProperty) else term.property
        for term in islice(conjuncts(tree) if tree is not None else (), CONDITIONS_MAX)
        if isinstance(term, (BooleanProperty, Comparison))
    )
    found.pop("PartitionKey", None)
    return list(found)


def _restriction(terms: Sequence[Comparison]) -> Restriction:
    if any(term.operator == "eq" for term in terms):
        return "eq"
    bounds = {term.operator: term.value for term in terms if term.operator in _ORDERED}
    return "prefix" if _is_prefix(bounds.get("ge"), bounds.get("lt")) else "range"


def _is_prefix(lower: object, upper: object) -> bool:
    if not isinstance(lower, str) or not isinstance(upper, str) or not lower or len(upper) > len(lower):
        return False
    start, last = upper[:-1], upper[-1:]
    return lower.startswith(start) and len(lower) == len(upper) and ord(lower[-1]) + 1 == ord(last)


def _names(node: Node) -> Iterator[str]:
    """Yield the properties of a term, those of each level but the deepest ones of a long filter."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Comparison):
            yield each.property
        elif isinstance(each, BooleanProperty):
            yield each.name
        elif isinstance(each, Not):
            waiting.append(each.term)
        elif isinstance(each, (And, Or)):
            waiting.extend(each.terms)
