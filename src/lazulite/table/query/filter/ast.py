"""The tree of a `$filter`, conditions on the properties of a row, and the class of a query by its tree.

Invariants: an `And` or `Or` has at least two terms, none of them of its own kind; in a `Comparison` the property is on
the left. Trees are immutable and hold no text positions.

The class says how much of a table Azure would read for the query. Only conditions on keys that every match must meet
count: the conjuncts of the whole filter that compare a key with a string. What `or` and `not` say about keys narrows
nothing on Azure (here it does, see key_ranges.py; the class is still Azure's). Source: the guidance of Microsoft's
table design guide; reference §10.4.
"""

from dataclasses import dataclass
from typing import Literal

from lazulite.table.model.edm import Value

Operator = Literal["eq", "ne", "gt", "ge", "lt", "le"]

MIRRORED: dict[Operator, Operator] = {"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
"""What an operator becomes when its two sides change places."""

QueryClass = Literal["point", "row range", "partition scan", "partition range", "table scan"]

_ORDERED = frozenset({"gt", "ge", "lt", "le"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """`property operator value`. NULL if the row lacks the property or holds a value of another type, but for `''`."""

    property: str
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class BooleanProperty:
    """A property that stands alone: its value if that is a Boolean, else NULL."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Not:
    """TRUE unless `term` is TRUE: the service says that `not(NULL)` is TRUE."""

    term: "Node"


@dataclass(frozen=True, slots=True)
class And:
    """TRUE if every term is."""

    terms: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """TRUE if some term is."""

    terms: tuple["Node", ...]


Node = Comparison | BooleanProperty | Constant | Not | And | Or


def conjoin(left: Node, right: Node) -> And:
    """Return `left and right`, flat."""
    return And(conjuncts(left) + conjuncts(right))


def disjoin(left: Node, right: Node) -> Or:
    """Return `left or right`, flat."""
    return Or((left.terms if isinstance(left, Or) else (left,)) + (right.terms if isinstance(right, Or) else (right,)))


def conjuncts(node: Node) -> tuple[Node, ...]:
    """Return the terms that a row must all satisfy: those of an `And`, or the node itself."""
    return node.terms if isinstance(node, And) else (node,)


def query_class(node: Node | None) -> QueryClass:
    """Return the class of a query with this filter; None is no filter."""
    compared: dict[str, set[str]] = {"PartitionKey": set(), "RowKey": set()}
    for term in conjuncts(node) if node is not None else ():
        if isinstance(term, Comparison) and term.property in compared and type(term.value) is str:
            compared[term.property].add(term.operator)
    partition, row = compared["PartitionKey"], compared["RowKey"]
    if "eq" in partition:
        return "point" if "eq" in row else "row range" if row & _ORDERED else "partition scan"
    return "partition range" if partition & _ORDERED else "table scan"
