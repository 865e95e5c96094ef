"""Filters: the builder writes what it reads, and conditions that only the page tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.table.query.filter.parser import parse
from lazulite.ui.tables.filters import (
    LOCAL_OPERATORS,
    Condition,
    LocalCondition,
    built,
    error_position,
    read,
    without_comments,
)
from lazulite.ui.tables.values import Entity, Value, ValueFormatError

CONDITIONS = [
    Condition("PartitionKey", "=", "String", "o'b"),
    Condition("A", "≥", "Int32", "-5"),
    Condition("A", "<", "Int64", "9007199254740993"),
    Condition("B", "≠", "Double", "1.5"),
    Condition("C", "=", "Boolean", "true"),
    Condition("Timestamp", ">", "DateTime", "2026-11-28T09:30:00.1234567Z"),
    Condition("D", "=", "Guid", "01234567-89ab-cdef-0123-456789abcdef"),
    Condition("E", "≤", "Binary", "YWI="),
    Condition("RowKey", "starts with", "String", "ab"),
]


@pytest.mark.parametrize("joined_by", ["and", "or"])
def test_the_builder_reads_what_it_has_written(joined_by: str) -> None:
    conditions = CONDITIONS if joined_by == "and" else CONDITIONS[:-1]
    found = read(built(conditions, joined_by))
    assert (list(found.conditions), found.joined_by, found.is_readable) == (conditions, joined_by, True)


def test_a_prefix_is_a_range() -> None:
    assert built([Condition("RowKey", "starts with", "String", "ab")], "and") == "RowKey ge 'ab' and RowKey lt 'ac'"
    assert (
        built([CONDITIONS[-1], CONDITIONS[0]], "or") == "(RowKey ge 'ab' and RowKey lt 'ac') or PartitionKey eq 'o''b'"
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5), st.text(max_size=5))
def test_a_range_has_what_starts_with_the_prefix(prefix: str, rest: str) -> None:
    text = built([Condition("A", "starts with", "String", prefix)], "and")
    parse(text)
    bounds = (
        [part.split("'", 1)[1][:-1].replace("''", "'") for part in text.split(" and A lt ")]
        if " and A lt " in text
        else []
    )
    if bounds:
        last = text.split(" and A lt ")[1][1:-1].replace("''", "'")
        assert prefix <= prefix + rest < last


@pytest.mark.parametrize("text", ["A eq 1 and (B eq 2 or C eq 3)", "not (A eq 1)", "A eq", "f(x)"])
def test_a_deeper_filter_is_edited_as_text(text: str) -> None:
    assert not read(text).is_readable


def test_no_filter_has_no_rows() -> None:
    assert read("") == ((), "and", True)
    assert built([Condition("", "=", "String", "")], "and") == ""


@pytest.mark.parametrize(
    "condition",
    [Condition("A", "=", "Int32", "x"), Condition("A", "~", "String", ""), Condition("A", "starts with", "String", "")],
)
def test_a_row_that_says_nothing_is_told(condition: Condition) -> None:
    with pytest.raises(ValueFormatError):
        built([condition], "and")


def test_lines_are_commented_out() -> None:
    assert without_comments("A eq 1\n// and B eq 2\n  and C eq 3\n") == "A eq 1 and C eq 3"


ENTITY = Entity("p1", "r1", "2026", "e", {"Name": Value("String", "Ada"), "Empty": Value("String", "")})


@pytest.mark.parametrize(
    ("name", "operator", "text", "holds"),
    [
        ("", "contains", "da", True),
        ("", "contains", "p1", True),
        ("Name", "contains", "p1", False),
        ("", "does not contain", "da", False),
        ("Other", "does not contain", "da", True),
        ("Name", "ends with", "da", True),
        ("Name", "ends with", "Ad", False),
        ("Other", "is missing", "", True),
        ("Empty", "is missing", "", False),
        ("Empty", "is there", "", True),
        ("", "", "", True),
        ("", "contains", "", True),
    ],
)
def test_the_page_tests_what_the_service_cannot(name: str, operator: str, text: str, holds: bool) -> None:
    assert operator in (*LOCAL_OPERATORS, "")
    assert LocalCondition(name, operator, text).holds(ENTITY) is holds


@pytest.mark.parametrize(
    ("text", "part", "position"),
    [
        ("A eq", "", 4),
        ("aaa bbb ccc", "bbb", 4),
        ("A eq 5 and (B gt )", ")", 17),
        ("(A eq 5 and B eq 6", "", 18),
        ("A eq 'it", "", 8),
        ("A # 5", "#", 2),
        ("A gt datetime'tomorrow' or B", "datetime'tomorrow'", 5),
        ("A eq 5x", "5", 5),
    ],
)
def test_the_place_of_a_syntax_error_is_marked(text: str, part: str, position: int) -> None:
    with pytest.raises(ServiceError) as raised:
        parse(text)
    found = error_position(raised.value.message, text)
    assert found is not None
    assert (found.part, found.position) == (part, position)
    assert found.before + found.part + found.after == text


@pytest.mark.parametrize(
    ("text", "part"), [("City eq Oslo", "Oslo"), ("A eq 5 and Total gt gt 5", "gt"), ("eq eq eq", "eq")]
)
def test_a_text_without_quotes_is_marked(text: str, part: str) -> None:
    with pytest.raises(ServiceError) as raised:
        parse(text)
    found = error_position(raised.value.message, text)
    assert found is not None
    assert (found.part, found.is_unquoted, found.before + found.part + found.after) == (part, True, text)


def test_an_error_without_a_place_marks_nothing_and_a_long_filter_is_cut() -> None:
    assert error_position("The $filter expression must evaluate to a single boolean value.", "5") is None
    assert error_position("One of the request inputs is not valid.", "A eq true and B eq 5 or 'x' # y") is None
    assert error_position("Expression expected at position 999999 in 'A'.", "A") is None
    assert error_position("Syntax error at position 0 in ''.", "") == (0, "", "", "", False)
    long = "A eq 1 and " * 100 + "bbb ccc" + " " * 900
    found = error_position("Syntax error at position 1107", long)
    assert found is not None
    assert (found.part, len(found.before), len(found.after)) == ("ccc", 201, 201)
