"""An index is built again: queries use it all the while, also if a process ends at any commit of that."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from lazulite.engine.commit import Commit
from lazulite.engine.contract import KeyRange
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.records.spaces import INDEX_BUILDS, TABLES
from lazulite.table.catalog import Catalog
from lazulite.table.indexes.build import IndexBuilder
from lazulite.table.indexes.definition import Index, Indexes, Scope, State
from tests.table.client import ACCOUNT, Client, header, values

from .builders import builder_of
from .churn import build_all

TABLE = "orders"


class CrashError(Exception):
    pass


class CrashingEngine(RocksEngine):
    """An engine whose process ends before or after one of the commits about indexes."""

    commits_left = 1 << 30
    is_after = False

    async def commit(self, space: int, partition: str, commit: Commit[Any]) -> Any:
        if space not in (TABLES, INDEX_BUILDS):
            return await super().commit(space, partition, commit)
        self.commits_left -= 1
        if self.commits_left < 0 and not self.is_after:
            raise CrashError
        done = await super().commit(space, partition, commit)
        if self.commits_left < 0:
            raise CrashError
        return done

    def restart(self) -> tuple[Client, IndexBuilder]:
        self.commits_left = 1 << 30
        client = Client(self)
        return client, builder_of(self, client)

    async def spaces(self) -> Sequence[str]:
        within = [KeyRange(("", ""), None)]
        return [row async for part in self.scan(INDEX_BUILDS, within) for row in part.columns()[1]]


@pytest.fixture
async def engine() -> AsyncIterator[CrashingEngine]:
    engine = CrashingEngine.open(None, system_clock)
    assert isinstance(engine, CrashingEngine)
    yield engine
    await engine.close()


async def fill(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": TABLE})
    for number in range(6):
        await client("POST", TABLE, body={"PartitionKey": "p", "RowKey": f"{number}", "City": f"c{number % 2}"})


async def create(builder: IndexBuilder) -> None:
    await builder.create(ACCOUNT, TABLE, "by_city", ["City"], Scope.TABLE)
    await build_all(builder)


async def rows_by_index(client: Client) -> tuple[list[Any], bool]:
    response = await client("GET", f"{TABLE}()", "$filter=City%20eq%20'c1'")
    return [row["RowKey"] for row in values(response)], 'desc="by_city"' in (header(response, "Server-Timing") or "")


@pytest.mark.parametrize("is_after", [False, True])
async def test_an_index_that_is_built_again_serves_queries_whenever_the_process_ends(
    engine: CrashingEngine, is_after: bool
) -> None:
    for count in range(100):
        client, builder = engine.restart()
        await fill(client)
        await create(builder)
        engine.commits_left, engine.is_after = count, is_after
        crashed = False
        try:
            await builder.replace(ACCOUNT, TABLE, "BY_CITY")
            await build_all(builder)
        except CrashError:
            crashed = True
        client, builder = engine.restart()
        assert await rows_by_index(client) == (["1", "3", "5"], True)
        await client("POST", TABLE, body={"PartitionKey": "p", "RowKey": "7", "City": "c1"})
        await build_all(builder)
        [index] = (await builder.indexes(ACCOUNT, TABLE)).declared
        assert index.state is State.READY
        assert await rows_by_index(client) == (["1", "3", "5", "7"], True)
        assert await engine.spaces() == []
        await client("DELETE", f"Tables('{TABLE}')")
        if not crashed:
            break
    assert 4 < count < 20


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_declared_index_is_built_whenever_the_process_ends(engine: CrashingEngine, is_after: bool) -> None:
    for count in range(6):
        client, builder = engine.restart()
        await fill(client)
        engine.commits_left, engine.is_after = count, is_after
        with suppress(CrashError):
            await create(builder)
        client, builder = engine.restart()
        await build_all(builder)
        indexes = (await builder.indexes(ACCOUNT, TABLE)).declared
        assert [index.state for index in indexes] == ([State.READY] if count or is_after else [])
        assert await engine.spaces() == []
        await client("DELETE", f"Tables('{TABLE}')")


async def test_a_table_takes_the_notes_of_its_builds_along(engine: CrashingEngine) -> None:
    client, builder = engine.restart()
    await fill(client)
    await builder.create(ACCOUNT, TABLE, "by_city", ["City"], Scope.TABLE)
    building = builder.build(ACCOUNT, TABLE, "by_city")
    for _ in range(2):
        await anext(building)
    await building.aclose()
    assert len(await engine.spaces()) == 1
    await client("DELETE", f"Tables('{TABLE}')")
    assert await engine.spaces() == []
    await build_all(builder)


async def test_what_was_begun_again_is_begun_once_more(engine: CrashingEngine) -> None:
    client, builder = engine.restart()
    await fill(client)
    await create(builder)
    for _ in range(3):
        await builder.replace(ACCOUNT, TABLE, "by_city")
        table = await Catalog(engine).read(ACCOUNT, TABLE)
        assert table is not None
        assert [each.state for each in table.indexes.declared] == [State.READY, State.WRITE_ONLY]
        assert [each.state for each in table.indexes.current] == [State.READY]
    await builder.drop(ACCOUNT, TABLE, "by_city")
    assert (await builder.indexes(ACCOUNT, TABLE)).declared == ()


def test_of_one_name_one_index_is_current() -> None:
    old, new = (Index("a", ("A",), Scope.TABLE, space) for space in (1, 2))
    both = Indexes().with_index(old).with_ready(old).with_index(new)
    assert [each.space for each in both.current] == [1]
    assert both.find("A") == new
    swapped = both.with_ready(new)
    assert [each.space for each in swapped.current] == [2]
    assert [each.state for each in swapped.declared] == [State.WRITE_ONLY, State.READY]
    assert [each.space for each in swapped.before(new)] == [1]
