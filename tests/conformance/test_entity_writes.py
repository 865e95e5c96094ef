"""Reference §9: what each write leaves behind."""

import pytest

from .client import NONE
from .tables import Table, entity

SYSTEM = {"PartitionKey", "RowKey", "Timestamp"}
GIVEN = entity("p", "r", Keep="old", Change=1, Count=2)


def custom(table: Table, partition: str = "p", row: str = "r") -> dict[str, object]:
    """An entity's own properties."""
    row_read = table.get(partition, row, accept=NONE).expect(200).json()
    return {name: value for name, value in row_read.items() if name not in SYSTEM}


@pytest.mark.parametrize("condition", [None, "*"])
def test_replace_keeps_nothing(table: Table, condition: str | None) -> None:
    table.add(GIVEN)
    table.write("PUT", table.at("p", "r"), {"Change": "text", "New": True}, If_Match=condition).expect(204)
    assert custom(table) == {"Change": "text", "New": True}


@pytest.mark.parametrize("condition", [None, "*"])
@pytest.mark.parametrize("method", ["MERGE", "PATCH"])
def test_merge_keeps_what_is_not_named(table: Table, method: str, condition: str | None) -> None:
    table.add(GIVEN)
    table.write(method, table.at("p", "r"), {"Change": "text", "New": True, "Count": None}, If_Match=condition).expect(
        204
    )
    assert custom(table) == {"Keep": "old", "Change": "text", "Count": 2, "New": True}


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
def test_without_condition_a_missing_entity_is_inserted(table: Table, method: str) -> None:
    answer = table.write(method, table.at("p", "r"), {"A": 1, "B": None}).expect(204)
    assert custom(table) == {"A": 1}
    assert answer.etag == table.get("p", "r").etag


def test_a_merge_can_change_the_type_of_a_property(table: Table) -> None:
    table.insert('{"PartitionKey":"p","RowKey":"r","V@odata.type":"Edm.Int64","V":"5"}').expect(201)
    table.write("MERGE", table.at("p", "r"), {"V": "text"}).expect(204)
    row = table.get("p", "r").json()
    assert row["V"] == "text"
    assert "V@odata.type" not in row


def test_an_empty_merge_changes_the_timestamp_only(table: Table) -> None:
    tag = table.insert(GIVEN).expect(201).etag
    assert table.write("MERGE", table.at("p", "r"), "{}").expect(204).etag != tag
    assert custom(table) == {"Keep": "old", "Change": 1, "Count": 2}


def test_delete_leaves_the_neighbours(table: Table) -> None:
    table.add(*(entity("p", row) for row in ("a", "b", "c")))
    table.write("DELETE", table.at("p", "b"), If_Match="*").expect(204)
    assert table.row_keys() == ["a", "c"]
    assert table.get("p", "b").rejection == (404, "ResourceNotFound", "The specified resource does not exist.")
    table.insert(entity("p", "b", New=1)).expect(201)
    assert table.row_keys() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "query", ["timeout=30", "$format=application%2Fjson%3Bodata%3Dminimalmetadata", "api-version=2019-02-02"]
)
def test_location_carries_no_query(table: Table, query: str) -> None:
    answer = table.insert(GIVEN, query, Prefer="return-no-content").expect(204)
    location = f"{table.client.endpoint.base}{table.name}(PartitionKey='p',RowKey='r')"
    assert (answer.header("Location"), answer.header("DataServiceId")) == (location, location)


def test_a_rejected_write_changes_nothing(table: Table) -> None:
    table.add(GIVEN)
    before = table.get("p", "r").body
    for method in ("PUT", "MERGE", "PATCH"):
        for text in ("{", '{"A":{}}', '{"A":1,"A":2}', '{"bad-name":1}', '{"X@odata.type":"Edm.Guid","X":"no"}'):
            table.write(method, table.at("p", "r"), text).expect(400)
    assert table.get("p", "r").body == before
