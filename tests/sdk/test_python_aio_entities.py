"""The asynchronous table client of the Python SDK: what its transport may change, beside the synchronous tests."""

import asyncio
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    TableTransactionError,
    UpdateMode,
)
from azure.data.tables.aio import TableClient, TableServiceClient

from .etags import instant
from .failures import rejected

ENTITY = {"PartitionKey": "p", "RowKey": "r", "A": 1, "B": "two"}
IF_NOT_MODIFIED = MatchConditions.IfNotModified


async def test_the_life_of_an_entity(atable: TableClient) -> None:
    made = await atable.create_entity(ENTITY)
    entity = await atable.get_entity("p", "r")
    assert dict(entity) == ENTITY
    assert entity.metadata["etag"] == made["etag"]
    with rejected(ResourceExistsError):
        await atable.create_entity(ENTITY)
    assert dict(await atable.get_entity("p", "r", select=["B", "C"])) == {"B": "two", "C": None}
    await atable.update_entity(ENTITY | {"A": 2, "B": None}, mode=UpdateMode.MERGE)
    assert dict(await atable.get_entity("p", "r")) == ENTITY | {"A": 2}
    await atable.upsert_entity({"PartitionKey": "p", "RowKey": "r", "C": 3}, mode=UpdateMode.REPLACE)
    assert dict(await atable.get_entity("p", "r")) == {"PartitionKey": "p", "RowKey": "r", "C": 3}
    await atable.delete_entity("p", "r")
    await atable.delete_entity("p", "r")
    with rejected(ResourceNotFoundError):
        await atable.get_entity("p", "r")
    for mode in UpdateMode:
        with rejected(ResourceNotFoundError):
            await atable.update_entity(ENTITY, mode=mode)
        await atable.upsert_entity(ENTITY, mode=mode)
        await atable.delete_entity(ENTITY)


async def test_match_conditions(atable: TableClient) -> None:
    await atable.create_entity(ENTITY)
    entity = await atable.get_entity("p", "r")
    for mode in UpdateMode:
        await atable.update_entity(await atable.get_entity("p", "r"), mode=mode, match_condition=IF_NOT_MODIFIED)
        with rejected(ResourceModifiedError):
            await atable.update_entity(entity, mode=mode, match_condition=IF_NOT_MODIFIED)
    with rejected(ResourceModifiedError):
        await atable.delete_entity(entity, match_condition=IF_NOT_MODIFIED)
    await atable.delete_entity(await atable.get_entity("p", "r"), match_condition=IF_NOT_MODIFIED)


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
    with rejected(400):
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


async def test_a_failing_transaction_names_its_operation(atable: TableClient) -> None:
    await atable.create_entity({"PartitionKey": "p", "RowKey": "1"})
    with pytest.raises(TableTransactionError) as caught:
        await atable.submit_transaction(
            [(kind, {"PartitionKey": "p", "RowKey": row}) for kind, row in (("create", "2"), ("create", "1"))]
        )
    assert (caught.value.index, caught.value.status_code) == (1, 409)
    assert [e["RowKey"] async for e in atable.list_entities()] == ["1"]


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


async def test_a_missing_table(aservice: TableServiceClient) -> None:
    with rejected(ResourceNotFoundError):
        await aservice.get_table_client("sdkAbsent").create_entity(ENTITY)
