"""Reference §5.2, §23: property names."""

import json

import pytest

from .tables import Table, entity

INVALID = (400, "PropertyNameInvalid", "The property name is invalid.")
LEGAL = ["A", "a1", "_a", "__", "camelCase", "éclair", "日本語", "Ünïcödé", "ñ1", "Straße", "имя", "שם", "a_b_c"]
LEGAL += ["timestamp", "etag", "ETag", "Etag", "partitionKey", "rowkey", "TIMESTAMP", "class", "null", "true", "eq"]
ILLEGAL = [
    "1a",
    "9",
    "a-b",
    "a b",
    "a.b",
    "a$b",
    "a/b",
    "a:b",
    "a\\b",
    "a+b",
    "a&b",
    "<a>",
    "a'b",
    " a",
    "a\t",
    "a\u0000b",
    "µ",
    "aª",
]


def content(name: str, row: str = "r") -> str:
    """An entity with one property of that name."""
    return json.dumps(entity("p", row) | {name: "x"})


@pytest.mark.parametrize("name", LEGAL)
def test_legal_property_names_are_accepted(table: Table, name: str) -> None:
    table.insert(content(name)).expect(201)
    assert table.get("p", "r").json()[name] == "x"


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_property_names_are_rejected(table: Table, name: str) -> None:
    assert table.insert(content(name)).rejection == INVALID
    for method in ("PUT", "MERGE"):
        assert table.write(method, table.at("p", "r"), content(name)).rejection == INVALID
    assert table.page().rows == []


@pytest.mark.unverified
def test_an_empty_name_is_rejected(table: Table) -> None:
    assert table.insert(content("")).status == 400


def test_case_distinguishes(table: Table) -> None:
    table.add(entity("p", "r", Birthday="1", birthday="2"))
    row = table.get("p", "r").json()
    assert (row["Birthday"], row["birthday"]) == ("1", "2")


def test_the_same_name_twice(table: Table) -> None:
    rejection = (400, "DuplicatePropertiesSpecified", "A property is specified more than one time.")
    assert table.insert('{"PartitionKey":"p","RowKey":"r","A":1,"A":2}').rejection == rejection
    assert table.insert('{"PartitionKey":"p","RowKey":"r","A":1,"B":2,"A":null}').rejection == rejection
    assert table.write("PUT", table.at("p", "r"), '{"A":1,"A":1}').rejection == rejection
    assert table.page().rows == []


def test_properties_named_like_the_tag_are_ordinary(table: Table) -> None:
    table.add(entity("p", "r", timestamp="a", etag="b", ETag="c", Etag="d"))
    row = table.get("p", "r").json()
    assert [row[name] for name in ("timestamp", "etag", "ETag", "Etag")] == ["a", "b", "c", "d"]
    assert table.row_keys("ETag eq 'c' and etag eq 'b' and timestamp eq 'a'") == ["r"]
