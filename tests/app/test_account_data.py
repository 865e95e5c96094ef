"""What an account has, and its removal, on an engine in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lazulite.app.account_data import AccountData, caches_of
from lazulite.blob.storage.catalog import Catalog as Containers
from lazulite.blob.storage.catalog import Container
from lazulite.engine.commit import put_rows
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import Key
from lazulite.partitions.stored_maps import row_of
from lazulite.protocol.clock import TICKS_PER_DAY, system_clock
from lazulite.queue.catalog import Catalog as Queues
from lazulite.records.spaces import (
    ACCOUNT_QUOTAS,
    DELEGATIONS,
    METRIC_COUNTS,
    PARTITION_MAPS,
    QUEUES,
    SERVICE_PROPERTIES,
)
from lazulite.table.catalog import Catalog as Tables
from tests.fuzz.memory import MemoryEngine

UNCACHED = caches_of({})


class World:
    """A store with the catalogs of its services."""

    def __init__(self) -> None:
        self.engine = MemoryEngine(system_clock)
        self.contents = ContentMemory()
        self.tables = Tables(self.engine)
        self.queues = Queues(self.engine)
        self.containers = Containers(self.engine, system_clock, self.contents)

    async def fill(self, account: str) -> None:
        await self.tables.create(account, "Orders")
        await self.queues.create(account, "jobs", ())
        await self.queues.create(account, "mails", ())
        for name in ("kept", "gone"):
            await self.containers.create(account, Container(name, 0, modified=1))
        await self.containers.delete_if(account, "gone", lambda _: None, lambda now: now + TICKS_PER_DAY)
        for space in (SERVICE_PROPERTIES, DELEGATIONS, METRIC_COUNTS):
            await self.engine.commit(space, account, put_rows({"row": b"value"}))


async def test_the_resources_of_an_account_are_counted_and_removed_and_those_of_others_stay() -> None:
    world = World()
    data = AccountData(world.engine, world.contents, UNCACHED)
    assert await data.count("orders") == {}
    for account in ("orders", "orders2"):
        await world.fill(account)
    everything = {"table": 1, "queues": 2, "containers": 2}
    assert await data.count("orders") == everything
    await data.remove("orders")
    assert await data.count("orders") == {}
    assert [each async for each in world.containers.deleted("orders")] == []
    assert await data.count("orders2") == everything
    for space in (SERVICE_PROPERTIES, DELEGATIONS, METRIC_COUNTS):
        assert await world.engine.get(space, "orders", "row") is None
        assert await world.engine.get(space, "orders2", "row") == b"value"
    await data.remove("orders")


async def test_the_ranges_of_its_tables_and_its_quota_are_removed() -> None:
    world = World()
    await world.fill("orders")
    table = await world.tables.read("orders", "Orders")
    assert table is not None
    rows = ((PARTITION_MAPS, row_of(table.space)), (ACCOUNT_QUOTAS, "account"))
    for space, row in rows:
        await world.engine.commit(space, "orders", put_rows({row: b"value"}))
    await AccountData(world.engine, world.contents, UNCACHED).remove("orders")
    assert [await world.engine.get(space, "orders", row) for space, row in rows] == [None, None]


async def test_no_cache_of_the_process_shows_what_was_removed() -> None:
    world = World()
    await world.fill("orders")
    assert await world.queues.get("orders", "jobs") is not None
    invalidated = caches_of({QUEUES: [world.queues.invalidation]})
    await AccountData(world.engine, world.contents, invalidated).remove("orders")
    assert world.queues.cached("orders", "jobs") is None
    assert await world.queues.get("orders", "jobs") is None
    await world.queues.create("orders", "jobs", ())
    assert await world.queues.get("orders", "jobs") is not None
    assert world.queues.cached("orders", "jobs") is not None, "it is cached again"


async def test_rows_are_kept_out_of_caches_while_they_change() -> None:
    world = World()
    await world.fill("orders")
    seen: list[tuple[int, list[Key]]] = []

    @asynccontextmanager
    async def invalidated(space: int, keys: list[Key]) -> AsyncIterator[None]:
        assert all([await world.engine.get(space, *key) for key in keys])
        yield
        assert not any([await world.engine.get(space, *key) for key in keys])
        seen.append((space, keys))

    await AccountData(world.engine, world.contents, invalidated).remove("orders")
    assert len(seen) == 8
    assert (QUEUES, [("orders", "jobs"), ("orders", "mails")]) in seen
