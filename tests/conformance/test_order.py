"""Reference §10.4: results ascend by (PartitionKey, RowKey), ordinally."""

import random

import pytest

from .tables import Table, entity

ORDERED = [
    "",
    " ",
    "!",
    "%",
    "0",
    "01",
    "1",
    "10",
    "100",
    "11",
    "2",
    "A",
    "AB",
    "B",
    "Z",
    "_",
    "a",
    "a b",
    "aa",
    "ab",
    "b",
]
ORDERED += [
    "row1",
    "row10",
    "row100",
    "row11",
    "row2",
    "z",
    "{",
    "~",
    "\u00a0",
    "ä",
    "é",
    "ß",
    "Ω",
    "я",
    "א",
    "日",
    "本",
    "가",
]


ORDERED.sort()  # all in the BMP: code point order is UTF-16 order


def shuffled(words: list[str]) -> list[str]:
    """The words in another order, the same each time."""
    return random.Random(7).sample(words, len(words))


def test_row_keys_are_in_ordinal_order(table: Table) -> None:
    table.add(*(entity("p", key) for key in shuffled(ORDERED)))
    assert table.row_keys() == ORDERED
    assert table.row_keys("PartitionKey eq 'p'") == ORDERED


def test_partition_keys_are_in_ordinal_order(table: Table) -> None:
    table.add(*(entity(key, "r") for key in shuffled(ORDERED)))
    assert [row["PartitionKey"] for row in table.page().rows] == ORDERED


def test_the_partition_comes_first(table: Table) -> None:
    pairs = [
        ("", ""),
        ("", "z"),
        ("a", ""),
        ("a", "~"),
        ("a\u00a0", ""),
        ("aa", ""),
        ("aa", "a"),
        ("ab", ""),
        ("b", "0"),
    ]
    expected = sorted(pairs)
    table.add(*(entity(*pair) for pair in reversed(pairs)))
    assert [(row["PartitionKey"], row["RowKey"]) for row in table.page().rows] == expected


def test_ranges_over_non_ascii_keys(table: Table) -> None:
    table.add(*(entity("p", key) for key in shuffled(ORDERED)))
    for bound in ORDERED:
        place = ORDERED.index(bound)
        assert table.row_keys(f"PartitionKey eq 'p' and RowKey ge '{bound}'") == ORDERED[place:]
        assert table.row_keys(f"PartitionKey eq 'p' and RowKey gt '{bound}'") == ORDERED[place + 1 :]
        assert table.row_keys(f"PartitionKey eq 'p' and RowKey lt '{bound}'") == ORDERED[:place]


@pytest.mark.unverified
def test_astral_keys_sort_by_utf16(table: Table) -> None:
    """U+1F600 is D83D DE00 in UTF-16: after U+D7FF, before U+E000 and U+FF5E."""
    expected = ["가", "😀", "😁", "\ue000", "\uff5e"]
    table.add(*(entity("p", key) for key in shuffled(expected)))
    assert table.row_keys() == expected
    assert table.row_keys("PartitionKey eq 'p' and RowKey gt '😀'") == expected[2:]


def test_ordering_cannot_be_asked_for(table: Table) -> None:
    table.add(entity("p", "1"), entity("p", "2"))
    answer = table.query("$orderby=RowKey%20desc")
    assert answer.status in {400, 501}


@pytest.mark.unverified
@pytest.mark.parametrize("query", ["$orderby=RowKey", "$skip=1", "$inlinecount=allpages", "$count=true", "$expand=A"])
def test_options_that_are_not_implemented(table: Table, query: str) -> None:
    answer = table.query(query)
    assert answer.code in {(501, "NotImplemented"), (400, "InvalidInput")}


@pytest.mark.parametrize("query", ["unknown=1", "x=$filter", "api-version=2019-02-02", "_=1", "=", "&&"])
def test_other_parameters_are_ignored(table: Table, query: str) -> None:
    table.add(entity("p", "r"))
    assert len(table.page(query).rows) == 1
