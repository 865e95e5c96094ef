"""Property types and keys through the Python SDK: what is written is what is read, in value and in type."""

from typing import Any

import pytest
from azure.data.tables import EdmType, EntityProperty, TableClient, TableTransactionError, UpdateMode

from .samples import KEYS, SAMPLES, Sample, same


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_value_round_trips_exactly(table: TableClient, sample: Sample) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Value": sample.sent})
    value = table.get_entity("p", "r")["Value"]
    assert same(value, sample.read), f"{value!r:.200} was read instead of {sample.read!r:.200}"
    (listed,) = table.list_entities()
    assert same(listed["Value"], sample.read)


@pytest.mark.parametrize("mode", list(UpdateMode))
def test_all_types_survive_being_read_and_written_back(table: TableClient, mode: UpdateMode) -> None:
    sent = {sample.name: sample.sent for sample in SAMPLES}
    table.create_entity({"PartitionKey": "p", "RowKey": "r"} | sent)
    table.update_entity(table.get_entity("p", "r"), mode=mode)
    table.submit_transaction([("upsert", table.get_entity("p", "r"), {"mode": mode})])
    entity = table.get_entity("p", "r")
    assert [sample.name for sample in SAMPLES if not same(entity[sample.name], sample.read)] == []
    assert len(entity) == len(SAMPLES) + 2


def test_seven_digits_of_a_second_survive(table: TableClient) -> None:
    spelled = "2024-02-29T23:59:59.1234567Z"
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "At": EntityProperty(spelled, EdmType.DATETIME)})
    entity: Any = table.get_entity("p", "r")
    assert entity["At"].tables_service_value == spelled
    assert entity["At"].microsecond == 123456
    # The SDK's own datetime keeps the digit that Python's cannot hold.
    table.update_entity(entity, mode=UpdateMode.REPLACE)
    again: Any = table.get_entity("p", "r")
    assert again["At"].tables_service_value == spelled
    found = table.query_entities(f"At eq datetime'{spelled}'")
    assert [e["RowKey"] for e in found] == ["r"]
    assert list(table.query_entities("At eq datetime'2024-02-29T23:59:59.1234568Z'")) == []


def test_none_is_absence(table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": 1, "B": None})
    assert dict(table.get_entity("p", "r")) == {"PartitionKey": "p", "RowKey": "r", "A": 1}


def test_a_merge_may_change_a_type(table: TableClient) -> None:
    keys = {"PartitionKey": "p", "RowKey": "r"}
    table.create_entity(keys | {"A": 1})
    for value in ("text", 2.0, EntityProperty(2**40, EdmType.INT64), b"bytes", True, 3):
        table.update_entity(keys | {"A": value}, mode=UpdateMode.MERGE)
        assert same(table.get_entity("p", "r")["A"], value)


def test_property_names(table: TableClient) -> None:
    names = ["Birthday", "birthday", "_leading", "with_underscore", "Zażółć", "名前", "x" * 255, "ETag", "etag"]
    sent = {"PartitionKey": "p", "RowKey": "r"} | {name: index for index, name in enumerate(names)}
    table.create_entity(sent)
    assert dict(table.get_entity("p", "r")) == sent


def test_as_many_properties_as_allowed(table: TableClient) -> None:
    sent = {"PartitionKey": "p", "RowKey": "r"} | {f"P{number:03}": number for number in range(252)}
    table.create_entity(sent)
    assert dict(table.get_entity("p", "r")) == sent


@pytest.mark.parametrize("key", KEYS, ids=ascii)
def test_a_key_works_in_every_operation(table: TableClient, key: str) -> None:
    keys = {"PartitionKey": key, "RowKey": key}
    table.create_entity(keys | {"N": 0})
    assert dict(table.get_entity(key, key)) == keys | {"N": 0}
    table.update_entity(keys | {"N": 1}, mode=UpdateMode.MERGE)
    table.update_entity(keys | {"N": 2}, mode=UpdateMode.REPLACE)
    table.upsert_entity(keys | {"M": 3})
    parameters = {"key": key}
    query = "PartitionKey eq @key and RowKey eq @key"
    assert [dict(e) for e in table.query_entities(query, parameters=parameters)] == [keys | {"N": 2, "M": 3}]
    table.submit_transaction([("update", keys | {"N": 4}), ("create", keys | {"RowKey": key + "2"})])
    with pytest.raises(TableTransactionError):
        table.submit_transaction([("create", keys)])
    assert table.get_entity(key, key)["N"] == 4
    table.delete_entity(key, key)
    table.submit_transaction([("delete", {"PartitionKey": key, "RowKey": key + "2"})])
    assert list(table.list_entities()) == []


def test_keys_page_one_by_one(table: TableClient) -> None:
    for key in KEYS:
        table.create_entity({"PartitionKey": key, "RowKey": key})
    found: list[str] = []
    token: Any = None
    for _ in KEYS:
        pages: Any = table.list_entities(results_per_page=1).by_page(token)
        found += [entity["PartitionKey"] for entity in next(pages)]
        token = pages.continuation_token
    # The service compares keys as .NET does, by UTF-16 code unit.
    assert found == sorted(KEYS, key=lambda key: key.encode("utf-16-be"))
    assert token is None
