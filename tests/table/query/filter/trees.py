"""Filters as hypothesis draws them, as text, and what they mean, written a second time, and slowly."""

import math
from collections.abc import Mapping

from hypothesis import strategies as st

from lazulite.table.model import edm
from lazulite.table.query.filter import And, BooleanProperty, Comparison, Constant, Node, Not, Operator, Or
from lazulite.table.query.filter.ast import MIRRORED, conjoin, disjoin

Row = Mapping[str, edm.Value]

KEY_TEXTS = ["", "a", "a\0", "ab", "b", "c", "~", "\uff5e", "😀", "it's"]
"""Few, so that filters and rows meet; around the place where code points and UTF-16 code units disagree."""

guids = st.sampled_from([edm.Guid(f"0000000{n}-0000-0000-0000-00000000000a") for n in range(3)])
datetimes = st.one_of(st.integers(0, 3), st.integers(0, edm.DATETIME_MAX)).map(edm.DateTime)
values: st.SearchStrategy[edm.Value] = st.one_of(
    st.sampled_from(KEY_TEXTS),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.booleans(),
    st.integers(-2, 2),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.sampled_from([0.0, 1.0, 0.5, 2.0**53, math.nan]),
    datetimes,
    guids,
    guids.map(str),
    st.binary(max_size=2),
)
operators: st.SearchStrategy[Operator] = st.sampled_from(list(MIRRORED))
names = st.sampled_from(["A", "B", "Ünï", "eq", "and", "x", "datetime", "PartitionKey", "RowKey"])
key_comparisons = st.builds(
    Comparison, st.sampled_from(["PartitionKey", "RowKey"]), operators, st.sampled_from(KEY_TEXTS)
)
leaves: st.SearchStrategy[Node] = st.one_of(
    st.builds(Comparison, names, operators, values),
    key_comparisons,
    st.builds(BooleanProperty, st.sampled_from(["A", "B", "eq", "and"])),
    st.builds(Constant, st.booleans()),
)


def _grown(terms: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.one_of(st.builds(Not, terms), st.builds(conjoin, terms, terms), st.builds(disjoin, terms, terms))


trees: st.SearchStrategy[Node] = st.recursive(leaves, _grown, max_leaves=10)
key_trees: st.SearchStrategy[Node] = st.recursive(key_comparisons, _grown, max_leaves=8)
rows: st.SearchStrategy[Row] = st.builds(
    lambda partition, row, rest: {**rest, "PartitionKey": partition, "RowKey": row},
    st.sampled_from(KEY_TEXTS),
    st.sampled_from(KEY_TEXTS),
    st.dictionaries(st.sampled_from(["A", "B", "Ünï", "eq", "and"]), values),
)


def literal(value: edm.Value) -> str:
    """Spell a constant."""
    if isinstance(value, edm.DateTime):
        return f"datetime'{edm.format_datetime7(value)}'"
    if isinstance(value, edm.Guid):
        return f"guid'{value.upper()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float):
        return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(repr(value), repr(value))
    return str(value).lower()


def text_of(node: Node, *, binding: int = 0) -> str:
    """Write a tree as a filter, with the parentheses that it needs."""
    match node:
        case Comparison(name, operator, value):
            return f"{name} {operator} {literal(value)}"
        case BooleanProperty(name):
            return name
        case Constant(value):
            return "true" if value else "false"
        case Not(term):
            return "not " + text_of(term, binding=3)
        case And(terms):
            text, own = " and ".join(text_of(term, binding=2) for term in terms), 2
        case Or(terms):
            text, own = " or ".join(text_of(term, binding=1) for term in terms), 1
    return f"({text})" if binding > own else text


def with_types(node: Node) -> object:
    """Return a tree as something whose equality tells types apart and finds NaN equal to itself."""
    match node:
        case Comparison(name, operator, value):
            return name, operator, type(value), repr(value)
        case Not(term):
            return "not", with_types(term)
        case And(terms) | Or(terms):
            return type(node), [with_types(term) for term in terms]
    return repr(node)


def evaluate(node: Node, row: Row) -> bool | None:
    """Work out a filter in three-valued logic, as the reference (§10.3) tells it. None is NULL."""
    match node:
        case Constant(value):
            return value
        case BooleanProperty(name):
            held = row.get(name)
            return held if isinstance(held, bool) else None
        case Comparison(name, operator, constant):
            return _compare(operator, row.get(name), constant)
        case Not(term):
            return evaluate(term, row) is not True
        case And(terms):
            results = [evaluate(term, row) for term in terms]
            return False if False in results else None if None in results else True
        case Or(terms):
            results = [evaluate(term, row) for term in terms]
            return True if True in results else None if None in results else False


def _compare(operator: Operator, value: edm.Value | None, constant: edm.Value) -> bool | None:
    if constant == "" and isinstance(value, float | edm.DateTime):
        return operator in ("lt", "le", "ne")
    if value is None or _family(value) != _family(constant):
        return None
    if value != value or constant != constant:  # noqa: PLR0124 - NaN
        return operator == "ne"
    left, right = _rank(value), _rank(constant)
    equal, less = left == right, left < right
    return {
        "eq": equal,
        "ne": not equal,
        "lt": less,
        "le": less or equal,
        "gt": not less and not equal,
        "ge": not less,
    }[operator]


def _family(value: edm.Value) -> str:
    for kind in (edm.DateTime, edm.Guid, bool, str, bytes):
        if isinstance(value, kind):
            return kind.__name__
    return "number"


def _rank(value: edm.Value) -> list[float]:
    if isinstance(value, str):
        units = value.encode("utf-16-le")
        return [units[at] + 256 * units[at + 1] for at in range(0, len(units), 2)]
    return list(value) if isinstance(value, bytes) else [value]
