"""Tests of one property on rows as they are stored, for filters, without decoding the rows.

Invariants: a test gives the result that `property_reader` and the comparison of its value (query/filter/predicate.py)
give; a term that cannot be tested so has no test here. Beside what reading relies on (table/model/row.py), two facts
of canonical literals (table/model/edm.py) carry this: values of String, Guid, DateTime and Binary are equal exactly
when their literals are; and without their `Z`, instants are in the order of their text, as are strings of ASCII that
need no escape.
"""

from base64 import b64encode
from collections.abc import Callable
from json.encoder import encode_basestring_ascii as quote

from lazulite.table.model.edm import (
    BINARY,
    DATETIME,
    DATETIME_MAX,
    DOUBLE,
    GUID,
    INT64,
    TYPES,
    DateTime,
    EdmType,
    Guid,
    Value,
    format_datetime,
)
from lazulite.table.model.property_reader import finder, property_reader
from lazulite.table.model.row import HEAD_BYTES, member_prefix, type_prefix
from lazulite.table.query.filter import COMPARE, COMPARED_WITH_EMPTY, BooleanProperty, Comparison

_Test = Callable[[bytes], bool]

_SOMETIMES_ANNOTATED = [edm for edm in TYPES.values() if edm.annotated or edm is DOUBLE]
_QUOTE = ord('"')
_NUMERIC = b"-0123456789"


def row_test(term: Comparison | BooleanProperty) -> _Test | None:
    """Return the test of a term, if it can be made on a row's bytes."""
    if isinstance(term, BooleanProperty):
        term = Comparison(term.name, "eq", True)
    if not term.property.isidentifier():
        return None
    return _timestamp_test(term) if term.property == "Timestamp" else _TESTS[type(term.value)](term)


def _annotation(name: str, edm: EdmType) -> str:
    """Return what stands before a member if its type is written."""
    return f'{type_prefix(name)}{edm.name}"'


def _timestamp_test(term: Comparison) -> _Test | None:
    compare, constant = COMPARE[term.operator], term.value
    if type(constant) is not DateTime or not 0 <= constant <= DATETIME_MAX:
        return None
    ticks = constant.to_bytes(8, "big")
    return lambda row: compare(row[1:HEAD_BYTES], ticks)


def _boolean_test(term: Comparison) -> _Test | None:
    accepted = [value for value in (True, False) if COMPARE[term.operator](value, term.value)]
    if len(accepted) != 1:
        return None
    member = (member_prefix(term.property, "") + ("true" if accepted[0] else "false")).encode()
    return lambda row: row.rfind(member, HEAD_BYTES) > 0


def _number_test(term: Comparison) -> _Test:
    """Return the test of a number: an Int32 or a Double as a Double, which holds either exactly; an Int64 as it is."""
    compare, constant = COMPARE[term.operator], term.value
    opening = member_prefix(term.property, "").encode()
    to_value = len(opening)
    int64, double = (_annotation(term.property, edm).encode() for edm in (INT64, DOUBLE))

    def test(row: bytes) -> bool:
        at = row.rfind(opening, HEAD_BYTES)
        if at < 0:
            return False
        start = at + to_value
        if row[start] in _NUMERIC:
            end = row.find(b",", start)
            return compare(float(row[start:] if end < 0 else row[start:end]), constant)
        if row[start] != _QUOTE:
            return False
        text = row[start + 1 : row.index(b'"', start + 1)]
        if row.endswith(int64, HEAD_BYTES, at):
            return compare(int(text), constant)
        return row.endswith(double, HEAD_BYTES, at) and compare(float(text), constant)

    return test


def _instant_test(term: Comparison) -> _Test | None:
    assert type(term.value) is DateTime
    if not 0 <= term.value <= DATETIME_MAX:
        return None
    return _annotated_test(term, DATETIME, format_datetime(term.value)[:-1], b'Z"')


def _guid_test(term: Comparison) -> _Test:
    return _annotated_test(term, GUID, str(term.value), b'"')


def _binary_test(term: Comparison) -> _Test | None:
    if term.operator not in ("eq", "ne"):
        return None
    assert type(term.value) is bytes
    return _annotated_test(term, BINARY, b64encode(term.value).decode(), b'"')


def _annotated_test(term: Comparison, edm: EdmType, constant: str, closing: bytes) -> _Test:
    """Return the test of a value whose text up to `closing` compares as it does itself."""
    compare, text = COMPARE[term.operator], constant.encode()
    opening = f'{member_prefix(term.property, edm.name)}"'.encode()
    to_text = len(opening)

    def test(row: bytes) -> bool:
        at = row.rfind(opening, HEAD_BYTES)
        return at > 0 and compare(row[at + to_text : row.index(closing, at + to_text)], text)

    return test


def _string_test(term: Comparison) -> _Test | None:
    name, compare, constant = term.property, COMPARE[term.operator], str(term.value)
    annotations = tuple(_annotation(name, edm).encode() for edm in _SOMETIMES_ANNOTATED)
    opening, literal = member_prefix(name, "").encode(), quote(constant).encode()
    to_value = len(opening)
    find = finder(name)
    if term.operator == "eq":

        def equal(row: bytes) -> bool:
            at = find(row, opening, HEAD_BYTES)
            return at > 0 and row.startswith(literal, at + to_value) and not row.endswith(annotations, HEAD_BYTES, at)

        return equal
    if not constant and term.operator in COMPARED_WITH_EMPTY:
        return _empty_test(term)
    if not constant.isascii():
        return None
    text = constant.encode()
    read = property_reader(name)

    def test(row: bytes) -> bool:
        at = find(row, opening, HEAD_BYTES)
        start = at + to_value
        if at < 0 or row[start] != _QUOTE or row.endswith(annotations, HEAD_BYTES, at):
            return False
        found = row[start + 1 : row.index(b'"', start + 1)]
        return compare(found, text) if b"\\" not in found else compare(read(row), constant)

    return test


def _empty_test(term: Comparison) -> _Test:
    """Return the test whether a property is less than the empty string, or unequal to it: DateTimes and Doubles are."""
    accepted = term.operator == "le", term.operator == "ne"  # of an empty and of another string
    opening, find = member_prefix(term.property, "").encode(), finder(term.property)
    to_value = len(opening)
    less = tuple(_annotation(term.property, edm).encode() for edm in (DATETIME, DOUBLE))
    others = tuple(_annotation(term.property, edm).encode() for edm in _SOMETIMES_ANNOTATED)

    def test(row: bytes) -> bool:
        at = find(row, opening, HEAD_BYTES)
        if at < 0:
            return False
        start = at + to_value
        if row[start] != _QUOTE:
            end = row.find(b",", start)
            literal = row[start:] if end < 0 else row[start:end]
            return row[start] in _NUMERIC and (b"." in literal or b"E" in literal)
        if row.endswith(less, HEAD_BYTES, at):
            return True
        return accepted[row[start + 1] != _QUOTE] and not row.endswith(others, HEAD_BYTES, at)

    return test


_TESTS: dict[type[Value], Callable[[Comparison], _Test | None]] = {
    str: _string_test,
    bool: _boolean_test,
    int: _number_test,
    float: _number_test,
    DateTime: _instant_test,
    Guid: _guid_test,
    bytes: _binary_test,
}
