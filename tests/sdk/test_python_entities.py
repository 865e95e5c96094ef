"""The table client of the Python SDK: one entity at a time, with every mode and match condition."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import TableClient, UpdateMode

from .etags import instant
from .failures import rejected

ENTITY = {"PartitionKey": "p", "RowKey": "r", "A": 1, "B": "two"}
IF_NOT_MODIFIED = MatchConditions.IfNotModified


def read(table: TableClient) -> dict[str, Any]:
    return dict(table.get_entity("p", "r"))


def test_an_entity_is_created_and_read(table: TableClient) -> None:
    made = table.create_entity(ENTITY)
    entity = table.get_entity("p", "r")
    assert dict(entity) == ENTITY
    assert entity.metadata["etag"] == made["etag"]
    timestamp = entity.metadata["timestamp"]
    assert timestamp is not None
    assert abs((datetime.now(UTC) - timestamp).total_seconds()) < 600


def test_the_etag_spells_the_timestamp(table: TableClient) -> None:
    table.create_entity(ENTITY)
    metadata: Any = table.get_entity("p", "r").metadata
    spelled = metadata["timestamp"].tables_service_value.replace(":", "%3A")
    assert metadata["etag"] == f"W/\"datetime'{spelled}'\""


@pytest.mark.parametrize("preference", ["return-content", "return-no-content"])
def test_the_answer_to_an_insert_is_as_preferred(table: TableClient, preference: str) -> None:
    made = table.create_entity(ENTITY, response_preference=preference)
    assert made["preference_applied"] == preference
    content = made["content"]
    assert (content is not None and content["B"] == "two") == (preference == "return-content")


def test_full_metadata_names_the_entity(table: TableClient) -> None:
    table.create_entity(ENTITY)
    headers = {"Accept": "application/json;odata=fullmetadata"}
    metadata = table.get_entity("p", "r", headers=headers).metadata
    assert metadata["id"].endswith(f"/{table.table_name}(PartitionKey='p',RowKey='r')")
    assert metadata["editLink"] == f"{table.table_name}(PartitionKey='p',RowKey='r')"
    assert metadata["type"].endswith(f".{table.table_name}")


def test_no_metadata_still_yields_the_same_etag(table: TableClient) -> None:
    made = table.create_entity(ENTITY)
    entity = table.get_entity("p", "r", headers={"Accept": "application/json;odata=nometadata"})
    assert dict(entity) == ENTITY
    assert entity.metadata["etag"] == made["etag"]


def test_an_existing_entity_is_not_created_again(table: TableClient) -> None:
    table.create_entity(ENTITY)
    with rejected(ResourceExistsError):
        table.create_entity(ENTITY | {"A": 2})
    assert read(table) == ENTITY


def test_reading_selected_properties(table: TableClient) -> None:
    table.create_entity(ENTITY)
    entity = table.get_entity("p", "r", select=["A", "Absent"])
    assert dict(entity) == {"A": 1, "Absent": None}
    assert dict(table.get_entity("p", "r", select="PartitionKey")) == {"PartitionKey": "p"}


@pytest.mark.parametrize("write", ["update", "upsert"])
def test_merging_keeps_and_replacing_drops_what_is_not_named(table: TableClient, write: str) -> None:
    change = {"PartitionKey": "p", "RowKey": "r", "A": "changed type", "C": None}
    act = table.update_entity if write == "update" else table.upsert_entity
    table.create_entity(ENTITY)
    merged = act(change, mode=UpdateMode.MERGE)
    assert read(table) == ENTITY | {"A": "changed type"}
    replaced = act(change, mode=UpdateMode.REPLACE)
    assert read(table) == {"PartitionKey": "p", "RowKey": "r", "A": "changed type"}
    assert table.get_entity("p", "r").metadata["etag"] == replaced["etag"]
    assert instant(replaced["etag"]) > instant(merged["etag"])


@pytest.mark.parametrize("mode", list(UpdateMode))
def test_upserting_creates(table: TableClient, mode: UpdateMode) -> None:
    made = table.upsert_entity(ENTITY, mode=mode)
    assert read(table) == ENTITY
    assert table.get_entity("p", "r").metadata["etag"] == made["etag"]


@pytest.mark.parametrize("mode", list(UpdateMode))
def test_updating_needs_an_entity(table: TableClient, mode: UpdateMode) -> None:
    with rejected(ResourceNotFoundError):
        table.update_entity(ENTITY, mode=mode)


@pytest.mark.parametrize("mode", list(UpdateMode))
def test_updating_if_not_modified(table: TableClient, mode: UpdateMode) -> None:
    first = table.create_entity(ENTITY)["etag"]
    second = table.update_entity(ENTITY | {"A": 2}, mode=mode, etag=first, match_condition=IF_NOT_MODIFIED)["etag"]
    assert instant(second) > instant(first)
    with rejected(ResourceModifiedError):
        table.update_entity(ENTITY | {"A": 3}, mode=mode, etag=first, match_condition=IF_NOT_MODIFIED)
    assert read(table)["A"] == 2


def test_an_entity_as_read_carries_its_own_etag(table: TableClient) -> None:
    table.create_entity(ENTITY)
    entity = table.get_entity("p", "r")
    table.update_entity(entity, match_condition=IF_NOT_MODIFIED)
    with rejected(ResourceModifiedError):
        table.update_entity(entity, match_condition=IF_NOT_MODIFIED)
    with rejected(ResourceModifiedError):
        table.delete_entity(entity, match_condition=IF_NOT_MODIFIED)
    table.delete_entity(table.get_entity("p", "r"), match_condition=IF_NOT_MODIFIED)
    assert list(table.list_entities()) == []


def test_unconditional_writes(table: TableClient) -> None:
    table.create_entity(ENTITY)
    table.update_entity(ENTITY | {"A": 2}, match_condition=MatchConditions.Unconditionally)
    assert read(table)["A"] == 2
    table.delete_entity("p", "r", match_condition=MatchConditions.Unconditionally)
    with rejected(ResourceNotFoundError):
        table.get_entity("p", "r")


def test_deleting_by_key_by_entity_and_twice(table: TableClient) -> None:
    deletes: list[Callable[[], None]] = [
        lambda: table.delete_entity("p", "r"),
        lambda: table.delete_entity(partition_key="p", row_key="r"),
        lambda: table.delete_entity(ENTITY),
        lambda: table.delete_entity(entity=ENTITY),
    ]
    for delete in deletes:
        table.create_entity(ENTITY)
        delete()
        delete()
        assert list(table.list_entities()) == []


def test_deleting_if_not_modified(table: TableClient) -> None:
    first = table.create_entity(ENTITY)["etag"]
    second = table.update_entity(ENTITY)["etag"]
    with rejected(ResourceModifiedError):
        table.delete_entity("p", "r", etag=first, match_condition=IF_NOT_MODIFIED)
    table.delete_entity("p", "r", etag=second, match_condition=IF_NOT_MODIFIED)
    # An entity written again is another version, whatever it holds.
    table.create_entity(ENTITY)
    with rejected(ResourceModifiedError):
        table.delete_entity("p", "r", etag=second, match_condition=IF_NOT_MODIFIED)


def test_a_malformed_etag_is_rejected(table: TableClient) -> None:
    table.create_entity(ENTITY)
    with rejected(400):
        table.update_entity(ENTITY, etag="banana", match_condition=IF_NOT_MODIFIED)
