"""The shape of a filter: what it restricts, without its constants."""

import pytest

from lazulite.table.query.filter import parse
from lazulite.table.query.shape import CONDITIONS_MAX, filtered_properties, shape_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A eq 'x'", "A eq"),
        ("A eq 1 and B eq true", "A eq, B eq"),
        ("B", "B eq"),
        ("A gt 1 and A lt 5", "A range"),
        ("Name ge 'Sports;' and Name lt 'Sports<'", "Name prefix"),
        ("Name ge 'ab' and Name lt 'ad'", "Name range"),
        ("Name ge '' and Name lt 'a'", "Name range"),
        ("A ne 1", "A other"),
        ("A eq 1 or B gt 2", "A other, B other"),
        ("not (A eq 1)", "A other"),
        ("A eq 1 and (A eq 2 or not (C gt 1))", "A eq, C other"),
        ("A ge 1 and A eq 2", "A eq"),
    ],
)
def test_shapes(text: str, expected: str) -> None:
    found = shape_of(parse(text))
    assert ", ".join(f"{each.property} {each.operator}" for each in found.conditions) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PartitionKey eq 'x' and RowKey ge 'a' and RowKey lt 'b'", ["RowKey"]),
        ("City eq 'x' and Paid and not (C eq 1)", ["City", "Paid"]),
        ("A eq 1 or B eq 2", []),
        (" and ".join(f"P{number} eq 1" for number in range(99)), [f"P{number}" for number in range(CONDITIONS_MAX)]),
    ],
)
def test_the_filtered_properties(text: str, expected: list[str]) -> None:
    assert filtered_properties(parse(text)) == expected


def test_no_filter_has_no_conditions() -> None:
    assert shape_of(None) == ((), ())


def test_values_are_those_of_equalities() -> None:
    assert shape_of(parse("A eq 'x' and B gt 5 and C eq 7")).values == (("A", "x"), ("C", 7))


def test_a_shape_is_bounded() -> None:
    text = " and ".join(f"P{number} {'eq' if number % 2 else 'gt'} {number}" for number in range(CONDITIONS_MAX * 2))
    found = shape_of(parse(text))
    assert [each.operator for each in found.conditions] == ["eq"] * CONDITIONS_MAX
    assert len(found.values) == CONDITIONS_MAX
