"""The tree of a `$filter`: conditions on the properties of a row.

Invariants: an `And` or `Or` has at least two terms, none of them of its own kind; in a `Comparison` the property is on
the left. Trees are immutable and hold no text positions.
"""

from dataclasses import dataclass
from typing import Literal

from lazulite.table.model.edm import Value

Operator = Literal["eq", "ne", "gt", "ge", "lt", "le"]

MIRRORED: dict[Operator, Operator] = {"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
"""What an operator becomes when its two sides change places."""


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
