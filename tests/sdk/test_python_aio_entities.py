"""The asynchronous table client of the Python SDK: entities, types, keys, queries, transactions, errors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    EdmType,
    EntityProperty,
    RequestTooLargeError,
    TableTransactionError,
    UpdateMode,
)
from azure.data.tables.aio import TableClient, TableServiceClient

from .etags import instant
from .failures import code_of, refused
from .samples import KEYS, SAMPLES, same

ENTITY = {"PartitionKey": "p", "RowKey": "r", "A": 1, "B": "two"}
IF_NOT_MODIFIED = MatchConditions.IfNotModified


async def test_the_life_of_an_entity(atable: TableClient) -> None:
    made = await atable.create_entity(ENTITY)
    entity = await atable.get_entity("p", "r")
    assert dict(entity) == ENTITY
    assert entity.metadata["etag"] == made["etag"]
    with refused(ResourceExistsError, "EntityAlreadyExists", 409):
        await atable.create_entity(ENTITY)
    assert dict(await atable.get_entity("p", "r", select=["B", "C"])) == {"B": "two", "C": None}
    await atable.update_entity(ENTITY | {"A": 2, "B": None}, mode=UpdateMode.MERGE)
    assert dict(await atable.get_entity("p", "r")) == ENTITY | {"A": 2}
    await atable.upsert_entity({"PartitionKey": "p", "RowKey": "r", "C": 3}, mode=UpdateMode.REPLACE)
    assert dict(await atable.get_entity("p", "r")) == {"PartitionKey": "p", "RowKey": "r", "C": 3}
    await atable.delete_entity("p", "r")
    await atable.delete_entity("p", "r")
    with refused(ResourceNotFoundError, "ResourceNotFound", 404):
        await atable.get_entity("p", "r")
    for mode in UpdateMode:
        with refused(ResourceNotFoundError, "ResourceNotFound", 404):
            await atable.update_entity(ENTITY, mode=mode)
        await atable.upsert_entity(ENTITY, mode=mode)
        await atable.delete_entity(ENTITY)


async def test_match_conditions(atable: TableClient) -> None:
    await atable.create_entity(ENTITY)
    entity = await atable.get_entity("p", "r")
    for mode in UpdateMode:
        await atable.update_entity(await atable.get_entity("p", "r"), mode=mode, match_condition=IF_NOT_MODIFIED)
        with refused(ResourceModifiedError, "UpdateConditionNotSatisfied", 412):
            await atable.update_entity(entity, mode=mode, match_condition=IF_NOT_MODIFIED)
    with refused(ResourceModifiedError, "UpdateConditionNotSatisfied", 412):
        await atable.delete_entity(entity, match_condition=IF_NOT_MODIFIED)
    await atable.delete_entity(await atable.get_entity("p", "r"), match_condition=IF_NOT_MODIFIED)


async def test_every_type_round_trips_exactly(atable: TableClient) -> None:
    sent = {sample.name: sample.sent for sample in SAMPLES}
    await atable.create_entity({"PartitionKey": "p", "RowKey": "r"} | sent)
    await atable.update_entity(await atable.get_entity("p", "r"), mode=UpdateMode.REPLACE)
    entity = await atable.get_entity("p", "r")
    assert [sample.name for sample in SAMPLES if not same(entity[sample.name], sample.read)] == []
    spelled = "2024-02-29T23:59:59.1234567Z"
    await atable.update_entity({"PartitionKey": "p", "RowKey": "r", "At": EntityProperty(spelled, EdmType.DATETIME)})
    again: Any = await atable.get_entity("p", "r")
    assert again["At"].tables_service_value == spelled


@pytest.mark.parametrize("key", KEYS, ids=ascii)
async def test_a_key_works_in_every_operation(atable: TableClient, key: str) -> None:
    keys = {"PartitionKey": key, "RowKey": key}
    await atable.create_entity(keys | {"N": 0})
    await atable.update_entity(keys | {"N": 1}, mode=UpdateMode.MERGE)
    await atable.update_entity(keys | {"N": 2}, mode=UpdateMode.REPLACE)
    assert dict(await atable.get_entity(key, key)) == keys | {"N": 2}
    found = atable.query_entities("PartitionKey eq @key and RowKey eq @key", parameters={"key": key})
    assert [dict(e) async for e in found] == [keys | {"N": 2}]
    await atable.submit_transaction([("update", keys | {"N": 3})])
    assert (await atable.get_entity(key, key))["N"] == 3
    await atable.delete_entity(key, key)
    assert [e async for e in atable.list_entities()] == []


async def test_queries_and_pages(atable: TableClient) -> None:
    total = 1_234
    for start in range(0, total, 100):
        numbers = range(start, min(start + 100, total))
        await atable.submit_transaction(
            [("create", {"PartitionKey": "p", "RowKey": f"{n:04}", "N": n}) for n in numbers]
        )
    assert [e["N"] async for e in atable.list_entities()] == list(range(total))
    assert [len([e async for e in page]) async for page in atable.list_entities().by_page()] == [1000, 234]
    found = [e["N"] async for e in atable.query_entities("N gt @n", parameters={"n": 1200}, select=["N"])]
    assert found == list(range(1201, total))
    numbers_read: list[int] = []
    token: Any = None
    while not numbers_read or token:
        pages: Any = atable.list_entities(results_per_page=500).by_page(token)
        numbers_read += [e["N"] async for e in await anext(pages)]
        token = pages.continuation_token
    assert numbers_read == list(range(total))
    with refused(HttpResponseError, "InvalidInput", 400):
        _ = [e async for e in atable.query_entities("aaa bbb ccc")]


async def test_a_transaction_of_every_kind(atable: TableClient) -> None:
    def entity(row: str, **properties: int) -> dict[str, Any]:
        return {"PartitionKey": "p", "RowKey": row} | properties

    await atable.submit_transaction([("create", entity(row, A=1)) for row in "12345"])
    known = (await atable.get_entity("p", "5")).metadata["etag"]
    answers = await atable.submit_transaction(
        [
            ("create", entity("6", B=2)),
            ("upsert", entity("1", B=2)),
            ("upsert", entity("2", B=2), {"mode": UpdateMode.REPLACE}),
            ("update", entity("3", B=2), {"mode": "replace"}),
            ("delete", entity("4")),
            ("update", entity("5", B=2), {"etag": known, "match_condition": IF_NOT_MODIFIED}),
        ]
    )
    stored = {e["RowKey"]: e async for e in atable.list_entities()}
    assert {row: ("A" in e, e["B"]) for row, e in stored.items()} == {
        "1": (True, 2),
        "2": (False, 2),
        "3": (False, 2),
        "5": (True, 2),
        "6": (False, 2),
    }
    etags = [stored[row].metadata["etag"] if row in stored else None for row in "612345"]
    assert [answer.get("etag") for answer in answers] == etags
    assert instant(str(etags[-1])) > instant(str(known))


@pytest.mark.parametrize(
    ("last", "code", "status"),
    [
        (("create", "1", {}), "EntityAlreadyExists", 409),
        (("update", "absent", {}), "ResourceNotFound", 404),
        (("delete", "absent", {}), "ResourceNotFound", 404),
        (
            ("delete", "1", {"etag": 'W/"old"', "match_condition": IF_NOT_MODIFIED}),
            "UpdateConditionNotSatisfied",
            412,
        ),
        (("delete", "2", {}), "InvalidDuplicateRow", 400),
    ],
)
async def test_a_failing_transaction_names_its_operation(
    atable: TableClient, last: tuple[str, str, dict[str, Any]], code: str, status: int
) -> None:
    await atable.create_entity({"PartitionKey": "p", "RowKey": "1"})
    kind, row, options = last
    with pytest.raises(TableTransactionError) as caught:
        await atable.submit_transaction(
            [
                ("create", {"PartitionKey": "p", "RowKey": "2"}),
                (kind, {"PartitionKey": "p", "RowKey": row}, options),
            ]
        )
    assert (code_of(caught.value), caught.value.index, caught.value.status_code) == (code, 1, status)
    assert [e["RowKey"] async for e in atable.list_entities()] == ["1"]


# aiohttp warns of any body over 1 MiB that is given as bytes, and the SDK gives every body so.
@pytest.mark.filterwarnings("ignore:Sending a large body directly with raw bytes:ResourceWarning")
async def test_a_transaction_of_four_mebibytes(atable: TableClient) -> None:
    with pytest.raises(RequestTooLargeError) as caught:
        await atable.submit_transaction(
            [("create", {"PartitionKey": "p", "RowKey": str(n), "A": b"x" * 60_000}) for n in range(60)]
        )
    assert code_of(caught.value) == "RequestBodyTooLarge"


async def test_concurrent_conditional_updates_have_one_winner_each(atable: TableClient) -> None:
    keys = {"PartitionKey": "p", "RowKey": "r"}
    await atable.create_entity(keys | {"N": 0})

    async def count() -> None:
        while True:
            entity = await atable.get_entity("p", "r")
            try:
                await atable.update_entity(
                    keys | {"N": entity["N"] + 1}, etag=entity.metadata["etag"], match_condition=IF_NOT_MODIFIED
                )
            except ResourceModifiedError:
                continue
            return

    await asyncio.gather(*(count() for _ in range(20)))
    assert (await atable.get_entity("p", "r"))["N"] == 20


@pytest.mark.parametrize(
    "act",
    [
        lambda t: t.create_entity(ENTITY),
        lambda t: t.upsert_entity(ENTITY),
        lambda t: t.get_entity("p", "r"),
    ],
)
async def test_a_missing_table(aservice: TableServiceClient, act: Callable[[TableClient], Awaitable[object]]) -> None:
    with refused(ResourceNotFoundError, "TableNotFound", 404):
        await act(aservice.get_table_client("sdkAbsent"))
