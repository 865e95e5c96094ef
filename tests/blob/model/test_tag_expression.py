"""Expressions over tags, evaluated."""

import pytest

from lazulite.blob.model.tag_expression import AllOf, AnyOf, Comparison, TagQuery


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
