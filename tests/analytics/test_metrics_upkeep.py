"""What one process does for all: retention and capacity. What it publishes: see `test_metrics_writer`."""

from typing import Any

import pytest

from lazulite.analytics.interval_counts import all_rows
from lazulite.analytics.metrics import partition_of
from lazulite.analytics.metrics_tables import CAPACITY_TABLE, MetricsTables
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.block import Block, write_blocks
from lazulite.blob.model.rows import CURRENT, snapshot_row, upload_rows
from lazulite.blob.storage.catalog import Catalog as Containers
from lazulite.blob.storage.catalog import Container
from lazulite.engine.commit import put_rows
from tests.analytics.counted import ACCOUNT, HOUR, START, Counted, asking
from tests.analytics.store import Store
from tests.table.client import values

DAY = 24 * HOUR


async def rows(store: Store, table: str) -> list[dict[str, Any]]:
    response = await store.client("GET", f"{table}()")
    return values(response) if response.status == 200 else []


async def days(store: Store, table: str) -> set[int]:
    """Return the ages in days of the rows that a table has."""
    found = {row["PartitionKey"] for row in await rows(store, table)}
    return {age for age in range(400) if partition_of(store.now - age * DAY) in found}


@pytest.mark.parametrize("is_on", [True, False])
async def test_old_rows_go_also_when_metrics_are_off(store: Store, is_on: bool) -> None:
    tables = MetricsTables(store.engine)
    names = [
        f"$Metrics{period}{place}Transactions{service}"
        for period in ("Hour", "Minute")
        for place in ("Primary", "Secondary")
        for service in ("Blob", "Table")
    ]
    for name in (*names, CAPACITY_TABLE):
        table = await tables.ensure(ACCOUNT, name)
        for age in (1, 6, 7, 8, 300):
            await tables.put(table, partition_of(store.now - age * DAY), [("user;All", {"TotalRequests": 1})])
    await store.ask(asking(minute=is_on, hour=is_on, days=7))
    await store.ask(asking(minute=is_on, hour=is_on), service="table")
    await store.process("one").upkeep.maintain()
    for name in names:
        kept = {1, 6, 7} if name.endswith("Blob") else {1, 6, 7, 8, 300}
        assert await days(store, name) == kept
    assert await days(store, CAPACITY_TABLE) - {0} == {1, 6, 7}


async def contain(store: Store, container: str, contents: dict[tuple[str, str], bytes]) -> None:
    """Store rows of blobs."""
    made = await Containers(store.engine, store.clock).create(ACCOUNT, Container(container, 0, modified=START))
    for (name, row), value in contents.items():
        await store.engine.commit(made.space, name, put_rows({row: value}))


def blob(length: int) -> bytes:
    return Blob(BlobType.BLOCK, START, START, length, content=1).to_bytes()


async def test_capacity_is_measured_once_a_day(store: Store) -> None:
    block = write_blocks(0, [Block("MQ==", 1000, 7)])
    await contain(
        store, "docs", {("a", CURRENT): blob(1), ("a", snapshot_row(START)): blob(10), ("b", CURRENT): blob(100)}
    )
    await contain(store, "more", {("a", upload_rows(1) + "MQ=="): block, ("a", upload_rows(1) + "Mg=="): block})
    await contain(store, "$logs", {("blob/2024/x", CURRENT): blob(50)})
    await store.ask(asking())
    one, two = store.process("one"), store.process("two")
    await one.upkeep.maintain()
    await contain(store, "empty", {})
    await one.upkeep.maintain()
    await two.upkeep.maintain()
    found = {row["RowKey"]: row for row in await rows(store, CAPACITY_TABLE)}
    columns = ("PartitionKey", "Capacity", "ContainerCount", "ObjectCount")
    assert [found["data"][name] for name in columns] == ["20241004T0000", "2111", "2", "3"]
    assert [found["analytics"][name] for name in columns] == ["20241004T0000", "50", "1", "1"]
    store.now += DAY
    await two.upkeep.maintain()
    today = {row["RowKey"]: row for row in await rows(store, CAPACITY_TABLE) if row["PartitionKey"] == "20241005T0000"}
    assert today["data"]["ContainerCount"] == "3"


async def test_capacity_needs_hour_metrics_of_blobs(store: Store) -> None:
    await store.ask(asking(hour=False))
    await store.ask(asking(), service="table")
    await store.process("one").upkeep.maintain()
    assert await rows(store, CAPACITY_TABLE) == []


async def test_a_store_that_fails_is_left_to_the_next_time(store: Store) -> None:
    await store.ask(asking())
    process = store.process("one")
    process.engine.failing = {1: "before"}
    await process.upkeep.maintain()
    assert process.counts.failed_rounds == 1
    await process.upkeep.maintain()
    assert len(await rows(store, CAPACITY_TABLE)) == 2


async def test_nothing_is_written_where_no_account_asks_for_metrics(store: Store) -> None:
    await store.ask(asking(minute=False, hour=False))
    process = store.process("one")
    await process.upkeep.maintain()
    await process.writer.round()
    assert process.engine.commits == 0


async def test_counts_go_when_metrics_are_switched_off(store: Store) -> None:
    await store.ask(asking())
    process = store.process("one")
    process.counter.take([Counted()])
    await process.writer.round()
    await store.ask(asking(minute=False, hour=False))
    store.now += 3 * HOUR
    await process.upkeep.maintain()
    assert [each async for each in all_rows(store.engine)] == []
