"""From the tree of a filter to a function that tests a row.

The service's logic has three values, but a row is returned only if the filter is TRUE, and `not(NULL)` is TRUE. So for
every node "is it TRUE?" follows from the same question about its terms: `and` if all are, `or` if one is, `not` if its
term is not. NULL and FALSE never need telling apart, and the compiled functions return plain Booleans.

Speed: these functions run for every row that a query scans. A comparison is one closure over its constant, or
the `row_test` of the caller if there is one. Otherwise, and for many terms about one property, the terms of one `and`
or `or` share one reading of the property. A property in several places of the tree is read once a row.

Source: reference §10.3.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from lazulite.engine.ordinal import ordinal
from lazulite.table.model.edm import DateTime, Value
from lazulite.table.query.filter.ast import And, BooleanProperty, Comparison, Constant, Node, Not, Operator, Or

Row = TypeVar("Row")
_Input = TypeVar("_Input")
_Test = Callable[[_Input], bool]
_Reader = Callable[[str], Callable[[Row], Value | None]]
_Term = Comparison | BooleanProperty
_RowTests = Callable[[_Term], _Test[Row] | None]

_ORDINAL_FROM = "\ud800"
"""Below this character, the order of code points and that of UTF-16 code units are one."""

_TESTED_SINGLY_MAX = 2
"""Terms about one property that are cheaper tested one by one than on one reading."""

LESS_THAN_EMPTY = (float, DateTime)
"""The types whose values are all less than the empty string (reference §10.3)."""
COMPARED_WITH_EMPTY: frozenset[Operator] = frozenset({"lt", "le", "ne"})
"""The operators that such values satisfy with it."""

COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}


def compile_predicate(
    node: Node, reader: _Reader[Row], row_test: _RowTests[Row] = lambda _: None
) -> Callable[[Row], bool]:
    """Return a function that tells whether `node` is TRUE for a row.

    Args:
        node: a filter.
        reader: for the name of a property, a function that reads it out of a row: its value, or None if it has none.
        row_test: for a term, a function that tells the same of a row in less time; None if there is none.
    """
    groups = readings_of(node)
    shared = {name: _read_once(reader(name)) for name, count in groups.items() if count > 1}
    return _compile(node, lambda name: shared.get(name) or reader(name), row_test)


def readings_of(node: Node) -> Counter[str]:
    """Return the names of the properties that a filter asks about, and in how many places."""
    return Counter(_groups(node))


def _groups(node: Node) -> Iterator[str]:
    """Yield the name of a property for each place of the tree that reads it."""
    if isinstance(node, And | Or):
        for term in _others(node.terms):
            yield from _groups(term)
        yield from _by_property(node.terms)
    elif isinstance(node, Not):
        yield from _groups(node.term)
    elif not isinstance(node, Constant):
        yield _name(node)


def _read_once(read: Callable[[Row], Value | None]) -> Callable[[Row], Value | None]:
    """Return a reader that caches the value of the row it was last asked about."""
    last: Row | None = None
    value: Value | None = None

    def caching(row: Row) -> Value | None:
        nonlocal last, value
        if row is not last:
            last, value = row, read(row)
        return value

    return caching


def _compile(node: Node, reader: _Reader[Row], row_test: _RowTests[Row]) -> Callable[[Row], bool]:
    if isinstance(node, And | Or):
        every = isinstance(node, And)
        tests = [_compile(term, reader, row_test) for term in _others(node.terms)]
        for name, terms in _by_property(node.terms).items():
            quick = [test for test in map(row_test, terms[:_TESTED_SINGLY_MAX]) if test is not None]
            if len(quick) == len(terms):
                tests += quick
            else:
                tests.append(_on_property(reader(name), _joined(list(map(_value_test, terms)), every)))
        return _joined(tests, every)
    if isinstance(node, Not):
        term = _compile(node.term, reader, row_test)
        return lambda row: not term(row)
    if isinstance(node, Constant):
        value = node.value
        return lambda _: value
    return row_test(node) or _on_property(reader(_name(node)), _value_test(node))


def _name(term: _Term) -> str:
    return term.property if isinstance(term, Comparison) else term.name


def _others(terms: Iterable[Node]) -> list[Node]:
    return [term for term in terms if not isinstance(term, Comparison | BooleanProperty)]


def _by_property(terms: Iterable[Node]) -> dict[str, list[_Term]]:
    groups: dict[str, list[_Term]] = {}
    for term in terms:
        if isinstance(term, Comparison | BooleanProperty):
            groups.setdefault(_name(term), []).append(term)
    return groups


def _on_property(read: Callable[[Row], Value | None], test: _Test[Value | None]) -> _Test[Row]:
    return lambda row: test(read(row))


def _joined(tests: list[_Test[_Input]], every: bool) -> _Test[_Input]:
    """Return the test that every one, or any one, of `tests` passes."""
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        if every:
            return lambda given: first(given) and second(given)
        return lambda given: first(given) or second(given)

    def joined(given: _Input) -> bool:
        for test in tests:  # a loop: `all` over a generator takes twice the time
            if test(given) is not every:
                return not every
        return every

    return joined


def _value_test(term: _Term) -> _Test[Value | None]:
    """Return the test of a property's value. A value of another type than the constant's is NULL, so no match.

    Every Double and every DateTime, however, is less than the empty string.

    Int32, Int64 and Double are one type of exact numbers (*unverified* for Int64; reference §10.3); as in IEEE 754, NaN
    equals nothing, is in no order, and is unequal to everything. A Guid is no String, a Boolean no number.
    """
    if isinstance(term, BooleanProperty):
        return lambda value: value is True
    compare, constant = COMPARE[term.operator], term.value
    kind = type(constant)
    if constant == "" and kind is str and term.operator in COMPARED_WITH_EMPTY:
        return lambda value: compare(value, "") if type(value) is str else type(value) in LESS_THAN_EMPTY
    if kind is int or kind is float:
        return lambda value: (type(value) is int or type(value) is float) and compare(value, constant)
    if kind is str and term.operator not in ("eq", "ne") and max(str(constant), default="") >= _ORDINAL_FROM:
        sort_key = ordinal(str(constant))
        return lambda value: type(value) is str and compare(ordinal(value), sort_key)
    return lambda value: type(value) is kind and compare(value, constant)
