"""Tests on bytes against the tests of decoded values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.table.model import edm
from lazulite.table.model.property_reader import property_reader
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties
from lazulite.table.query.filter import (
    And,
    BooleanProperty,
    Comparison,
    Node,
    Not,
    Operator,
    Or,
    compile_predicate,
    parse,
)
from lazulite.table.query.filter.ast import MIRRORED
from lazulite.table.query.row_predicates import row_test
from tests.table.query.filter.trees import operators
from tests.table.query.filter.trees import values as constants
from tests.table.strategies import keys, properties

ticks = st.integers(0, edm.DATETIME_MAX)


def _near(held: edm.Value) -> list[edm.Value]:
    if isinstance(held, edm.DateTime):
        return [held, "", *(edm.DateTime(held + step) for step in (-(10**8), -1, 1, 10, 10**7))]
    if isinstance(held, str):
        return ["", held, held + "a", held[:-1], edm.Guid(held), str(held), held + '"', held + "\\", "\uffff", "~"]
    if isinstance(held, bytes | bool):
        return [held, ""]
    return [held, "", held + 1, held - 1, float(held), str(held)]


@st.composite
def _asked(draw: st.DrawFn) -> tuple[bytes, list[Comparison]]:
    """Draw a row and terms: of properties that it likely has, and constants near to their values or of any kind."""
    values = draw(properties)
    row = assemble(draw(ticks), encode_keys(draw(keys), draw(keys)), encode_properties(values))
    terms = []
    for _ in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from([*values, *values, "PartitionKey", "RowKey", "Timestamp", "Absent", "né"]))
        held = property_reader(name)(row)
        constant = draw(constants if held is None else st.sampled_from(_near(held)) | constants)
        terms.append(Comparison(name, draw(operators), constant))
    return row, terms


@settings(max_examples=200)
@given(_asked())
def test_bytes_tell_what_values_tell(asked: tuple[bytes, list[Comparison]]) -> None:
    row, terms = asked
    single: list[Comparison | BooleanProperty] = [*terms, BooleanProperty(terms[0].property)]
    for term in single:
        test = row_test(term)
        if test is not None:
            assert test(row) is compile_predicate(term, property_reader)(row), term
    for every in (And, Or):
        node: Node = every((Not(every((*terms, terms[0]))), *terms))
        assert compile_predicate(node, property_reader, row_test)(row) is compile_predicate(node, property_reader)(row)


def _row(values: dict[str, Property], ticks: int = 10**17) -> bytes:
    return assemble(ticks, encode_keys("p", "r"), encode_properties(values))


@pytest.mark.parametrize(
    ("text", "literal", "expected"),
    [
        ("A eq 'x'", (edm.STRING, '"x"'), True),
        ("A eq 'x'", (edm.STRING, '"xy"'), False),
        ("A eq 'NaN'", (edm.DOUBLE, '"NaN"'), False),
        ("A ne NaN", (edm.DOUBLE, '"NaN"'), True),
        ("A ne 5", (edm.STRING, '"5"'), False),
        ("A eq 5L", (edm.INT64, '"5"'), True),
        ("A eq '5'", (edm.INT64, '"5"'), False),
        ("A gt 9007199254740992.0", (edm.INT64, '"9007199254740993"'), True),
        ("A eq 0", (edm.DOUBLE, "-0.0"), True),
        ("A lt 1000", (edm.DOUBLE, "1E+15"), False),
        ("A", (edm.STRING, '"true"'), False),
        ("A ne true", (edm.BOOLEAN, "false"), True),
        ("A gt 'a\"'", (edm.STRING, '"a\\"b"'), True),
        ("A gt datetime'2024-01-01T00:00:00Z'", (edm.DATETIME, '"2024-01-01T00:00:00.1Z"'), True),
        ("A gt datetime'2024-01-01T00:00:00.15Z'", (edm.DATETIME, '"2024-01-01T00:00:00.1Z"'), False),
        ("A eq X'0a'", (edm.BINARY, '"Cg=="'), True),
        ("A gt 'aZ'", (edm.STRING, '"a\\"b"'), False),
        ("A ge 0", (edm.BOOLEAN, "true"), False),
        ("A lt true", (edm.BOOLEAN, "false"), True),
        ("A lt 1", (edm.INT32, "0"), True),
        ("A lt 1", (edm.DOUBLE, "0.5"), True),
        ("A lt 1L", (edm.INT64, '"-5"'), True),
        ("A eq '0'", (edm.INT32, "0"), False),
        (
            "A eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
            (edm.STRING, '"c9da6455-213d-42c9-9a79-3e9149a57833"'),
            False,
        ),
        (
            "A eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
            (edm.GUID, '"c9da6455-213d-42c9-9a79-3e9149a57833"'),
            True,
        ),
        (
            "A lt 'd'",
            (edm.GUID, '"c9da6455-213d-42c9-9a79-3e9149a57833"'),
            False,
        ),
        ("A lt ''", (edm.DOUBLE, "0.5"), True),
        ("A le ''", (edm.DOUBLE, "1E+15"), True),
        ("A ne ''", (edm.DOUBLE, '"NaN"'), True),
        ("A ne ''", (edm.DOUBLE, '"-Infinity"'), True),
        ("A lt ''", (edm.DATETIME, '"2024-01-01T00:00:00.1Z"'), True),
        ("A ge ''", (edm.DATETIME, '"2024-01-01T00:00:00.1Z"'), False),
        ("A eq ''", (edm.DOUBLE, "0.0"), False),
        ("A lt ''", (edm.INT32, "0"), False),
        ("A ne ''", (edm.INT64, '"0"'), False),
        ("A ne ''", (edm.BOOLEAN, "true"), False),
        ("A ne ''", (edm.BINARY, '""'), False),
        ("A le ''", (edm.BINARY, '""'), False),
        ("A ne ''", (edm.GUID, '"c9da6455-213d-42c9-9a79-3e9149a57833"'), False),
        ("A le ''", (edm.STRING, '""'), True),
        ("A lt ''", (edm.STRING, '""'), False),
        ("A ne ''", (edm.STRING, '""'), False),
        ("A ne ''", (edm.STRING, '"\\""'), True),
        ("A lt ''", (edm.STRING, '"1.5"'), False),
    ],
)
def test_what_looks_alike_is_distinguished(text: str, literal: tuple[edm.EdmType, str], expected: bool) -> None:
    term = parse(text)
    assert isinstance(term, Comparison | BooleanProperty)
    test = row_test(term)
    assert test is not None
    before, asked, after = Property(edm.STRING, '"Edm.Int64"'), Property(*literal), Property(edm.INT32, "1")
    for row in (_row({"Z": before, "A": asked, "B": after}), _row({"A": asked})):
        assert test(row) is expected
        assert compile_predicate(term, property_reader)(row) is expected


@pytest.mark.parametrize(
    "text",
    [
        "A ge false",
        "A gt true",
        "A lt '\uff5e'",
        "A gt X'0a'",
        "A gt datetime'0001-01-01T00:00:00Z'",
        "Timestamp gt datetime'0001-01-01T00:00:00Z'",
        "Timestamp eq 5",
    ],
)
def test_what_bytes_cannot_tell_is_left_to_others(text: str) -> None:
    term = parse(text)
    assert isinstance(term, Comparison)
    assert row_test(term) is None


@pytest.mark.parametrize("operator", list(MIRRORED))
@pytest.mark.parametrize("step", [-256, -1, 0, 1, 256])
def test_times_are_compared_to_the_tick(operator: Operator, step: int) -> None:
    row = _row({}, 10**17)
    term = Comparison("Timestamp", operator, edm.DateTime(10**17 + step))
    test = row_test(term)
    assert test is not None
    assert test(row) is compile_predicate(term, property_reader)(row)


def test_a_name_that_no_property_has_is_left_to_others() -> None:
    assert row_test(Comparison('A","B', "eq", "x")) is None


@pytest.mark.parametrize("name", ["A", "Absent", "AbsentAsWell"])
@pytest.mark.parametrize("constant", ["odata.etag", "PartitionKey", ""])
def test_what_is_absent_is_not_looked_for_at_the_beginning(name: str, constant: str) -> None:
    for row in (_row({}), _row({}, int.from_bytes(b'"' * 8, "big"))):
        test = row_test(Comparison(name, "eq", constant))
        assert test is not None
        assert not test(row)


def test_a_time_that_spells_a_member_is_none() -> None:
    ticks = int.from_bytes(b'\x01\xdc\x10,"A":', "big")
    term = Comparison("A", "eq", "odata.etag")
    test = row_test(term)
    assert test is not None
    assert not test(_row({}, ticks))
