"""Reference §10.5: `$select`."""

import pytest

from .client import FULL, MINIMAL, NONE
from .tables import Entity, Table

ROW = (
    '{"PartitionKey":"p","RowKey":"r","A":1,"B":"b","N@odata.type":"Edm.Int64","N":"9",'
    '"D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00Z","a":2}'
)
PLAIN = {"A": 1, "B": "b", "N": "9", "D": "2020-01-01T00:00:00Z", "a": 2}
KEYS = {"PartitionKey": "p", "RowKey": "r"}
SELECTIONS: list[tuple[str, Entity]] = [
    ("A", {"A": 1}),
    ("A,B", {"A": 1, "B": "b"}),
    ("B,A", {"B": "b", "A": 1}),
    ("A,%20B", {"A": 1, "B": "b"}),
    ("%20A%20,%20B%20", {"A": 1, "B": "b"}),
    ("a", {"a": 2}),
    ("PartitionKey", {"PartitionKey": "p"}),
    ("RowKey,PartitionKey", {"RowKey": "r", "PartitionKey": "p"}),
    ("A,A", {"A": 1}),
    ("N", {"N": "9"}),
    ("N,D", {"N": "9", "D": "2020-01-01T00:00:00Z"}),
    ("xyz", {"xyz": None}),
    ("A,xyz,B", {"A": 1, "xyz": None, "B": "b"}),
    ("partitionkey", {"partitionkey": None}),
]


def members(row: Entity) -> Entity:
    """A row without its annotations."""
    return {name: value for name, value in row.items() if "odata." not in name}


@pytest.mark.parametrize("level", [NONE, MINIMAL, FULL])
@pytest.mark.parametrize(("text", "expected"), SELECTIONS)
def test_select_returns_the_named_properties(shared_table: Table, level: str, text: str, expected: Entity) -> None:
    shared_table.write("PUT", shared_table.at("p", "r"), ROW).expect(204)
    point = shared_table.get("p", "r", f"$select={text}", accept=level).expect(200)
    listed = shared_table.query(f"$select={text}", accept=level).expect(200).json()["value"][0]
    for row in (point.json(), listed):
        assert members(row) == expected
        assert ("odata.etag" in row) is (level != NONE)
    assert point.etag


@pytest.mark.parametrize(("text", "expected"), [case for case in SELECTIONS if "xyz" not in case[0]])
def test_members_follow_the_selection(table: Table, text: str, expected: Entity) -> None:
    table.insert(ROW).expect(201)
    assert list(table.get("p", "r", f"$select={text}", accept=NONE).json()) == list(expected)


@pytest.mark.parametrize("query", ["$select=", "$select=*", "$select=&$filter=", "$filter=&$select="])
def test_select_of_everything(table: Table, query: str) -> None:
    table.insert(ROW).expect(201)
    rows = table.page(query).rows
    assert set(members(rows[0])) == {*KEYS, "Timestamp", *PLAIN}
    assert rows[0]["N@odata.type"] == "Edm.Int64"


def test_annotations_stay_with_what_is_selected(table: Table) -> None:
    table.insert(ROW).expect(201)
    row = table.page("$select=N,B").rows[0]
    assert row["N@odata.type"] == "Edm.Int64"
    assert "D@odata.type" not in row
    full = table.get("p", "r", "$select=Timestamp", accept=FULL).json()
    assert full["Timestamp@odata.type"] == "Edm.DateTime"


def test_an_absent_property_has_no_annotation(table: Table) -> None:
    table.insert(ROW).expect(201)
    for level in (NONE, MINIMAL, FULL):
        body = table.get("p", "r", "$select=xyz", accept=level).body
        assert b'"xyz":null' in body
        assert b"xyz@" not in body


def test_does_not_disturb_the_filter(table: Table) -> None:
    table.insert(ROW).expect(201)
    assert [members(row) for row in table.page("$select=B&$filter=A%20eq%201").rows] == [{"B": "b"}]
    assert table.page("$select=B&$filter=A%20eq%202").rows == []


def test_select_of_255_names(table: Table) -> None:
    table.insert(ROW).expect(201)
    names = ",".join(f"P{number}" for number in range(254)) + ",A"
    row = table.page(f"$select={names}").rows[0]
    assert (row["A"], row["P0"], len(members(row))) == (1, None, 255)
