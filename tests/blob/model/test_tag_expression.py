"""Expressions over tags, evaluated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.tag_expression import (
    COMPARISONS_MAX,
    DEPTH_MAX,
    TEXT_MAX,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    TagQuery,
    read_if_tags,
    read_where,
)
from lazulite.protocol.errors import ServiceError
from tests.blob.model.tag_texts import NAMES, VALUES


@pytest.mark.parametrize(
    ("operator", "values"),
    [("=", "b"), ("<>", "ac"), (">", "c"), (">=", "bc"), ("<", "a"), ("<=", "ab")],
)
def test_a_comparison_holds_by_the_order_of_characters(operator: str, values: str) -> None:
    comparison = Comparison("n", operator, "b")
    assert [value for value in "abc" if comparison.matches({"n": value})] == list(values)


@pytest.mark.parametrize("operator", ["=", "<>", ">", ">=", "<", "<="])
def test_a_missing_tag_only_differs(operator: str) -> None:
    assert Comparison("n", operator, "").matches({"N": ""}) is (operator == "<>")


def test_all_any_and_queries() -> None:
    first, second = Comparison("a", "=", "1"), Comparison("b", "=", "2")
    for tags, both, one in [({"a": "1", "b": "2"}, True, True), ({"a": "1"}, False, True), ({}, False, False)]:
        assert AllOf((first, second)).matches(tags) is both
        assert AnyOf((first, second)).matches(tags) is one
        assert TagQuery((first, second), None).matches(tags) is both
    assert TagQuery((first, second), "c").names == {"a", "b"}


COMPARISONS = st.builds(Comparison, NAMES, st.sampled_from(["=", "<>", ">", ">=", "<", "<="]), VALUES)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
        lambda parts: st.sampled_from([AllOf(tuple(parts)), AnyOf(tuple(parts))])
    ),
    max_leaves=12,
)


def written(condition: Condition) -> str:
    if isinstance(condition, Comparison):
        return f"\"{condition.name}\" {condition.operator}'{condition.value}'"
    word = " AND " if isinstance(condition, AllOf) else "or"
    return word.join(f"({written(each)})" for each in condition.conditions)


@given(CONDITIONS)
def test_a_condition_is_read_as_it_was_written(condition: Condition) -> None:
    assert read_if_tags(written(condition)) == condition


@given(st.text() | st.text("ab_@ ()='\"<>andorAND!&"))
def test_any_text_is_read_or_rejected(text: str) -> None:
    for read in (read_if_tags, lambda text: read_where(text, in_account=True)):
        try:
            read(text)
        except ServiceError as error:
            assert error.code in {"InvalidHeaderValue", "InvalidQueryParameterValue"}


def test_and_binds_more_tightly_than_or() -> None:
    a, b, c = (Comparison(name, "=", "1") for name in "abc")
    assert read_if_tags("a='1' or b='1' And c='1'") == AnyOf((a, AllOf((b, c))))
    assert read_if_tags("(a='1' OR b='1')and c='1'") == AllOf((AnyOf((a, b)), c))


def test_a_query_has_comparisons_and_a_container() -> None:
    query = read_where("@container = 'c' AND (\"a b\">='1' and \"a b\" <'2') AND _x1=''", in_account=True)
    assert query.container == "c"
    assert query.comparisons == (
        Comparison("a b", ">=", "1"),
        Comparison("a b", "<", "2"),
        Comparison("_x1", "=", ""),
    )
    assert query.names == {"a b", "_x1"}


AT = "Error parsing query at or near character position "
RANGE = "can't have multiple conditions for a single tag unless they define a range"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", AT + "1: expected an operator"),
        ("a", AT + "1: expected an operator"),
        ("a='1' or b='1'", AT + "6: unexpected or"),
        ("a <> '1'", AT + "2: unexpected <>"),
        ("a=b", AT + "2: expecting tag value"),
        ('a="b"', AT + "2: expecting tag value"),
        ("a='1' and a='2'", AT + "10: " + RANGE),
        ("a>'1' and a>='2'", AT + "10: " + RANGE),
        ("a>'1' and a='2'", AT + "10: " + RANGE),
        ("@x='1'", AT + "0: unsupported parameter '@x'"),
        ("@container>'1'", AT + "0: " + RANGE),
        ("@container='1' and @container='1'", AT + "19: " + RANGE),
        ("a='é'", AT + "2: 'é' not permitted in tag name or value"),
        ("a=''''", AT + "2: ''' not permitted in tag name or value"),
        ("a='" + "v" * 257 + "'", AT + "2: tag value must be between 0 and 256 characters in length"),
        ("a" * 129 + "=''", AT + "0: tag must be between 1 and 128 characters in length"),
        ("\"\"=''", AT + "0: tag must be between 1 and 128 characters in length"),
        ("a='1' b", AT + "6: unexpected b"),
        ("a='1' and", AT + "9: unexpected end of query"),
        ("(a='1'", AT + "6: unexpected end of query"),
        ("a='1')", AT + "5: unexpected )"),
        ("not a='1'", AT + "0: unexpected 'not'"),
        ("a='1' and Year='2'", AT + "10: unexpected 'Year'"),
        ("a='1", AT + "2: unexpected '"),
        (
            " and ".join(f"t{number}='1'" for number in range(11)),
            "Error parsing query: there can be at most 10 unique tags in a query",
        ),
    ],
)
def test_the_texts_of_errors(text: str, message: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        read_where(text, in_account=True)
    error = rejected.value
    assert (error.code, error.message) == ("InvalidQueryParameterValue", message)
    assert error.details == (("QueryParameterName", "where"), ("QueryParameterValue", text[:256]))


def test_only_queries_of_an_account_name_a_container() -> None:
    with pytest.raises(ServiceError, match="unsupported parameter '@container'"):
        read_where("@container='c' and a='1'", in_account=False)
    with pytest.raises(ServiceError, match="InvalidHeaderValue"):
        read_if_tags("@container='c'")


def test_a_rejected_condition_names_its_header() -> None:
    with pytest.raises(ServiceError) as rejected:
        read_if_tags("a", "x-ms-source-if-tags")
    assert rejected.value.details == (("HeaderName", "x-ms-source-if-tags"), ("HeaderValue", "a"))


def test_text_depth_and_comparisons_are_bounded() -> None:
    for read in (read_if_tags, lambda text: read_where(text, in_account=False)):
        assert read("(" * DEPTH_MAX + "a='1'" + ")" * DEPTH_MAX)
        for text in [
            "(" * (DEPTH_MAX + 1) + "a='1'" + ")" * (DEPTH_MAX + 1),
            " " * TEXT_MAX + "a='1'",
            " and ".join(["a<>'1'"] * (COMPARISONS_MAX + 1)),
        ]:
            with pytest.raises(ServiceError):
                read(text)
    assert read_if_tags(" and ".join(["a<>'1'"] * COMPARISONS_MAX))
