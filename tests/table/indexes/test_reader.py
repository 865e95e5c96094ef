import re
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from lazulite.engine.contract import EngineUnavailableError, KeyRange
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.table.catalog import Catalog
from lazulite.table.indexes import reader
from lazulite.table.indexes.definition import DeclarationError, Scope
from lazulite.table.operations.write_decisions import DELETE, INSERT, INSERT_OR_REPLACE, EntityWrite, Write, apply_one
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts
from tests.table.client import ACCOUNT, Client, header, values

from .builders import builder_of, check_entries

TABLE, ROWS = "orders", 600


class Orders:
    """A table of orders in three partitions, with indexes."""

    def __init__(self, engine: RocksEngine) -> None:
        self.engine = engine
        self.client = Client(engine)
        self.builder = builder_of(engine, self.client)

    async def fill(self) -> None:
        await self.client("POST", "Tables", body={"TableName": TABLE})
        for start in range(0, ROWS, 100):
            for partition in ("a", "b", "c"):
                await self.insert(partition, range(start, start + 100))

    async def insert(self, partition: str, numbers: range) -> None:
        operations = [
            Operation(
                "PUT",
                f"{TABLE}(PartitionKey='{partition}',RowKey='{number:05}')",
                {"City": f"city{number % 50}", "Status": f"status{number % 3}", "Total": number},
            )
            for number in numbers
        ]
        response = await self.client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
        assert {part.status for part in parts(response)} == {204}

    async def declare(self, name: str, *on: str, scope: Scope = Scope.TABLE) -> None:
        await self.builder.create(ACCOUNT, TABLE, name, on, scope)
        async for _ in self.builder.build(ACCOUNT, TABLE, name):
            pass

    async def read(self, text: str, top: int = 1000) -> tuple[list[str], dict[str, str]]:
        """Return the partition and the row of each entity of a page, and its costs."""
        response = await self.client("GET", f"{TABLE}()", f"$filter={quote(text)}&$top={top}")
        assert response.status == 200
        timing = header(response, "Server-Timing") or ""
        found = [f"{entity['PartitionKey']}{entity['RowKey']}" for entity in values(response)]
        return found, dict(re.findall(r'(\w+);desc="([^"]*)"', timing))


@pytest.fixture(name="orders")
async def _orders() -> AsyncIterator[Orders]:
    engine = RocksEngine.open(None, system_clock)
    orders = Orders(engine)
    await orders.fill()
    yield orders
    await engine.close()


async def test_an_equality_reads_only_what_matches(orders: Orders) -> None:
    expected, without = await orders.read("City eq 'city7'")
    assert without["scanned"] == "1800"
    await orders.declare("by_city", "City")
    found, costs = await orders.read("City eq 'city7'")
    assert found == expected
    assert len(found) == 36
    assert costs == {"query": "table scan", "scanned": "36", "returned": "36", "index": "by_city", "entries": "36"}


async def test_an_index_of_partitions_serves_one_partition(orders: Orders) -> None:
    await orders.declare("by_city", "City", scope=Scope.PARTITION)
    found, costs = await orders.read("PartitionKey eq 'b' and City eq 'city7' and RowKey ge '00100'")
    assert found == [f"b{number:05}" for number in range(107, ROWS, 50)]
    assert (costs["query"], costs["scanned"], costs["entries"]) == ("row range", "10", "10")
    assert "index" not in (await orders.read("City eq 'city7'"))[1]


async def test_two_indexes_are_intersected(orders: Orders) -> None:
    await orders.declare("by_city", "City")
    await orders.declare("by_status", "Status")
    found, costs = await orders.read("City eq 'city7' and Status eq 'status1'")
    assert found == [f"{partition}{n:05}" for partition in "abc" for n in range(7, ROWS, 50) if n % 3 == 1]
    assert costs["index"] == "by_city+by_status"
    assert costs["scanned"] == str(len(found))


async def test_alternatives_are_merged_in_order(orders: Orders) -> None:
    """Each has more entries than are read in one step, and the second one is ahead of the first one."""
    await orders.declare("by_status", "Status")
    found, costs = await orders.read("Status eq 'status1' or Status eq 'status2'")
    assert found == [f"{partition}{n:05}" for partition in "abc" for n in range(ROWS) if n % 3][:1000]
    assert costs["scanned"] == "1001"


async def test_an_intersection_may_be_far_behind(orders: Orders) -> None:
    await orders.declare("by_status", "Status")
    await orders.declare("by_total", "Total")
    found, costs = await orders.read("Status eq 'status2' and (Total eq 599 or Total eq 2)")
    assert found == [f"{partition}{n:05}" for partition in "abc" for n in (2, 599)]
    assert costs["scanned"] == "6"


async def test_a_range_is_sorted_by_keys(orders: Orders) -> None:
    await orders.declare("by_total", "Total")
    found, costs = await orders.read("Total ge 10 and Total lt 14")
    assert found == [f"{partition}{number:05}" for partition in "abc" for number in range(10, 14)]
    assert (costs["scanned"], costs["entries"]) == ("12", "12")


async def test_a_range_of_too_many_entries_is_a_scan(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    await orders.declare("by_total", "Total")
    expected, _ = await orders.read("Total ge 10")
    monkeypatch.setattr(reader, "ENTRIES_MAX", 1000)
    found, costs = await orders.read("Total ge 10")
    assert found == expected
    assert "index" not in costs


async def test_a_page_reads_no_more_rows_than_it_returns_and_looks_ahead(orders: Orders) -> None:
    await orders.declare("by_status", "Status")
    found, costs = await orders.read("Status eq 'status1'", top=5)
    assert found == [f"a{number:05}" for number in (1, 4, 7, 10, 13)]
    assert costs["scanned"] == "6"


async def test_a_prefix_is_a_range(orders: Orders) -> None:
    await orders.declare("by_city", "City")
    found, costs = await orders.read("City ge 'city4' and City lt 'city5'")
    assert {int(each[1:]) % 50 for each in found} == {4, *range(40, 50)}
    assert costs["scanned"] == str(len(found))


async def test_a_write_with_an_older_version_of_the_indexes_is_refused(orders: Orders) -> None:
    catalog = Catalog(orders.engine)
    before = await catalog.read(ACCOUNT, TABLE)
    assert before is not None
    await orders.declare("by_city", "City")
    late = EntityWrite(INSERT, "a", "late", None, '"PartitionKey":"a","RowKey":"late"', ',"City":"x"')
    with pytest.raises(EngineUnavailableError, match="try again"):
        await orders.engine.commit(before.space, "a", apply_one(late))
    assert (await orders.client("POST", TABLE, body={"PartitionKey": "a", "RowKey": "late", "City": "x"})).status == 201


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("kind", [INSERT_OR_REPLACE, DELETE])
async def test_an_entry_that_an_unaware_process_left_behind_is_removed(
    orders: Orders, scope: Scope, kind: Write
) -> None:
    await orders.builder.create(ACCOUNT, TABLE, "by_city", ["City"], scope)
    await orders.insert("a", range(3))
    table = await Catalog(orders.engine).read(ACCOUNT, TABLE)
    assert table is not None
    unaware = EntityWrite(kind, "a", "00001", None, '"PartitionKey":"a","RowKey":"00001"', ',"City":"other"')
    await orders.engine.commit(table.space, "a", apply_one(unaware))
    async for _ in orders.builder.build(ACCOUNT, TABLE, "by_city"):
        pass
    await check_entries(orders.engine, TABLE)


async def test_a_build_that_was_interrupted_goes_on(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.table.indexes.build._NOTED_ROWS", 500)
    await orders.builder.create(ACCOUNT, TABLE, "by_city", ["City"], Scope.TABLE)
    building = orders.builder.build(ACCOUNT, TABLE, "by_city")
    begun, noted = [await anext(building) for _ in range(2)]
    await building.aclose()
    assert begun.rows == 0
    assert "index" not in (await orders.read("City eq 'city7'"))[1], "it is not ready"
    await orders.insert("d", range(100))
    again = builder_of(orders.engine, orders.client)
    rows = [progress.rows async for progress in again.build(ACCOUNT, TABLE, "by_city")]
    assert rows[0] == noted.rows > 0
    assert rows[-1] == 3 * ROWS + 100
    found, costs = await orders.read("City eq 'city7'")
    assert len(found) == 38
    assert costs["index"] == "by_city"


async def test_a_drop_ends_a_build(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.table.indexes.build._NOTED_ROWS", 100)
    await orders.builder.create(ACCOUNT, TABLE, "by_city", ["City"], Scope.TABLE)
    building = orders.builder.build(ACCOUNT, TABLE, "by_city")
    for _ in range(2):
        await anext(building)
    await orders.builder.drop(ACCOUNT, TABLE, "BY_CITY")
    with pytest.raises(DeclarationError, match="by_city was dropped"):
        async for _ in building:
            pass
    assert (await orders.builder.indexes(ACCOUNT, TABLE)).declared == ()


async def test_an_index_goes_with_its_table(orders: Orders) -> None:
    await orders.declare("by_city", "City")
    [index] = (await orders.builder.indexes(ACCOUNT, TABLE)).declared
    assert (await orders.client("DELETE", f"Tables('{TABLE}')")).status == 204
    assert [part async for part in orders.engine.scan(index.space, [KeyRange(("", ""), None)])] == []


@pytest.mark.parametrize("missing", ["nothing", "orders"])
async def test_what_is_missing_is_told(orders: Orders, missing: str) -> None:
    with pytest.raises(DeclarationError, match=r"no table nothing|no index by_x"):
        await orders.builder.drop(ACCOUNT, missing, "by_x")
