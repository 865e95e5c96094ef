"""Reference §5.2: what belongs to the server, and what of a body is never stored."""

import pytest

from .client import FULL, MINIMAL, NONE
from .tables import Table, entity

SYSTEM = {"PartitionKey", "RowKey", "Timestamp"}


@pytest.mark.parametrize("value", ['"2001-01-01T00:00:00Z"', "null", '"nonsense"', "5"])
def test_timestamp_is_the_servers(table: Table, value: str) -> None:
    table.insert(f'{{"PartitionKey":"p","RowKey":"r","Timestamp":{value}}}').expect(201)
    assert table.get("p", "r").json()["Timestamp"] > "2024"
    table.write("PUT", table.at("p", "r"), f'{{"Timestamp":{value},"A":1}}').expect(204)
    assert table.get("p", "r").json()["Timestamp"] > "2024"


ANNOTATIONS = [
    '"odata.etag":"W/\\"x\\""',
    '"odata.metadata":"http://h/$metadata#t/@Element"',
    '"odata.id":"http://h/t(1)"',
    '"odata.type":"acct.t"',
    '"odata.editLink":"t(1)"',
    '"Timestamp@odata.type":"Edm.DateTime"',
    '"Timestamp@odata.type":"Edm.DateTime","Timestamp":"2001-01-01T00:00:00Z"',
    '"PartitionKey@odata.type":"Edm.String"',
    '"RowKey@odata.type":"Edm.String"',
    '"A@odata.type@odata.type":"Edm.String"',
]


@pytest.mark.parametrize("member", ANNOTATIONS)
@pytest.mark.parametrize("method", ["POST", "PUT", "MERGE"])
def test_annotations_are_not_stored(table: Table, method: str, member: str) -> None:
    text = f'{{"PartitionKey":"p","RowKey":"r","A":"x",{member}}}'
    path = table.path if method == "POST" else table.at("p", "r")
    assert table.write(method, path, text).status in {201, 204}
    assert set(table.get("p", "r", accept=NONE).json()) == SYSTEM | {"A"}
    assert set(table.get("p", "r", accept=MINIMAL).json()) == SYSTEM | {"A", "odata.metadata", "odata.etag"}
    assert table.get("p", "r", accept=FULL).json()["odata.type"] == f"{table.client.endpoint.account}.{table.name}"


def test_what_was_read_may_be_written_back(table: Table) -> None:
    table.insert('{"PartitionKey":"p","RowKey":"r","N@odata.type":"Edm.Int64","N":"9","S":"s"}').expect(201)
    for level in (NONE, MINIMAL, FULL):
        row = table.get("p", "r", accept=level)
        table.write("PUT", table.at("p", "r"), row.body.decode(), If_Match=row.etag).expect(204)
    row = table.get("p", "r")
    assert set(row.json()) - {"odata.metadata", "odata.etag", "N@odata.type"} == SYSTEM | {"N", "S"}


def test_an_entity_of_keys_alone(table: Table) -> None:
    table.add(entity("p", "r"))
    assert set(table.get("p", "r", accept=NONE).json()) == SYSTEM


def test_properties_come_back_in_insert_order_after_the_system_ones(table: Table) -> None:
    echo = table.insert('{"Z":1,"RowKey":"r","A":2,"PartitionKey":"p","M":3}', Accept=NONE).expect(201)
    expected = ["PartitionKey", "RowKey", "Timestamp", "Z", "A", "M"]
    assert list(echo.json()) == expected
    assert list(table.get("p", "r", accept=NONE).json()) == expected


@pytest.mark.parametrize(("method", "kept"), [("PUT", []), ("MERGE", ["M", "Z"]), ("PATCH", ["M", "Z"])])
@pytest.mark.parametrize("condition", [None, "*"])
def test_properties_stand_by_name_once_an_entity_was_updated(
    table: Table, method: str, kept: list[str], condition: str | None
) -> None:
    table.insert('{"PartitionKey":"p","RowKey":"r","Z":1,"M":3}').expect(201)
    table.write(method, table.at("p", "r"), '{"z":1,"A":2,"_":3,"É":5,"B":4}', If_Match=condition).expect(204)
    names = list(table.get("p", "r", accept=NONE).json())
    assert names == ["PartitionKey", "RowKey", "Timestamp", *sorted(["z", "A", "_", "É", "B", *kept])]


@pytest.mark.parametrize("method", ["PUT", "MERGE"])
def test_properties_stand_by_name_after_an_upsert(table: Table, method: str) -> None:
    table.write(method, table.at("p", "r"), '{"Z":1,"A":2,"M":3}').expect(204)
    assert list(table.get("p", "r", accept=NONE).json()) == ["PartitionKey", "RowKey", "Timestamp", "A", "M", "Z"]
