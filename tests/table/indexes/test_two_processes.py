"""Two processes on one database write and read, while an index is built, built again and dropped: no entry is missing.

Each has its own engine, service and cache of tables. Time passes only in `settle`, as it does for the life of a cache.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from urllib.parse import quote

import pytest

from lazulite.app.stores import CACHE_TTL_SECONDS
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from lazulite.service.definition import ServiceDependencies
from lazulite.service.routing import QueryLimits
from lazulite.table.indexes.definition import Scope
from lazulite.table.service import TableService
from tests.fuzz.memory import MemoryEngine
from tests.postgres.server import empty_database
from tests.table.batches import CONTENT_TYPE, Operation, change_set
from tests.table.client import ACCOUNT, Client, header, values

from .builders import builder_of, check_entries

TABLE, INDEX, FIXED = "orders", "by_city", 20
CITIES = "abc"
TURNS = 2
_WRITERS = 2


def _path(partition: str, row: int) -> str:
    return f"{TABLE}(PartitionKey='{partition}',RowKey='{row:02}')"


class Process:
    """A service that shares nothing but the database.

    Args:
        engine: its own.
        monotonic: the time of both.
        seed: of what it writes.
    """

    def __init__(self, engine: Engine, monotonic: Callable[[], float], seed: int) -> None:
        self.engine = engine
        self.client = Client(engine)
        self.client.service = TableService(
            ServiceDependencies(
                engine=engine,
                accounts=AccountDirectory({}, None),
                monotonic=monotonic,
                cache_ttl_seconds=CACHE_TTL_SECONDS,
                limits=QueryLimits(page_seconds=1000),  # A page is whole, whatever time passes meanwhile.
            )
        )
        self.written = [0] * _WRITERS
        self.over = False
        self._dice = random.Random(seed)

    async def write(self, writer: int) -> None:
        """Write rows of one partition until it is over; a process may be told to repeat a write."""
        dice = self._dice
        while not self.over:
            rows = dice.sample(range(12), dice.choice([1, 1, 4]))
            operations = [
                Operation("DELETE", _path("p", row), headers={"If-Match": "*"})
                if dice.random() < 0.2
                else Operation(dice.choice(["PUT", "MERGE"]), _path("p", row), {"City": dice.choice(CITIES)})
                for row in rows
            ]
            with suppress(EngineUnavailableError):
                await self.client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
            self.written[writer] += 1
            await asyncio.sleep(0)

    async def find(self, city: str) -> tuple[list[str], bool]:
        """Return the rows of a city, and whether an index led to them."""
        response = await self.client("GET", f"{TABLE}()", f"$filter={quote(f'City eq {city!r}')}")
        assert response.status == 200
        found = [f"{entity['PartitionKey']}{entity['RowKey']}" for entity in values(response)]
        return found, "index;" in (header(response, "Server-Timing") or "")


class World:
    """Two processes and their time."""

    def __init__(self, engines: list[Engine]) -> None:
        self.now_s = 0.0
        self.processes = [Process(engine, lambda: self.now_s, seed) for seed, engine in enumerate(engines)]
        self.builder = builder_of(engines[0], self.processes[0].client, self.settle)

    async def settle(self, _space: int, _version: int) -> None:
        """Let what processes know of tables grow old, and end the writes that began before."""
        self.now_s += CACHE_TTL_SECONDS
        before = [list(process.written) for process in self.processes]
        for process, counts in zip(self.processes, before, strict=True):
            while any(now <= then for now, then in zip(process.written, counts, strict=True)):  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def build(self) -> None:
        async with aclosing(self.builder.build(ACCOUNT, TABLE, INDEX)) as steps:
            async for _ in steps:
                await asyncio.sleep(0)

    async def read(self) -> None:
        """Find the rows that stay as they are, until it is over."""
        expected = [f"fixed{row:02}" for row in range(FIXED)]
        while not self.processes[0].over:
            for process in self.processes:
                assert (await process.find("fixed"))[0] == expected
            await asyncio.sleep(0)


@pytest.fixture(name="world", params=["memory", "postgres"])
async def _world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    engines: list[Engine]
    if request.param == "memory":
        engines = [MemoryEngine(system_clock)] * 2
    else:
        settings = PostgresSettings(dsn=empty_database())
        engines = [PostgresEngine(settings, system_clock) for _ in range(2)]
    yield World(engines)
    for engine in engines:
        await engine.close()


@pytest.mark.parametrize("scope", list(Scope))
async def test_no_entry_is_missing_whoever_writes_meanwhile(world: World, scope: Scope) -> None:
    one, other = world.processes
    assert (await one.client("POST", "Tables", body={"TableName": TABLE})).status == 201
    fixed = [Operation("PUT", _path("fixed", row), {"City": "fixed"}) for row in range(FIXED)]
    assert (await one.client("POST", "$batch", body=change_set(*fixed), headers=CONTENT_TYPE)).status == 202
    async with asyncio.TaskGroup() as tasks:
        for process in (one, other):
            for writer in range(_WRITERS):
                tasks.create_task(process.write(writer))
        tasks.create_task(world.read())
        for turn in range(TURNS):
            await world.builder.create(ACCOUNT, TABLE, INDEX, ["City"], scope)
            await world.build()
            await world.builder.replace(ACCOUNT, TABLE, INDEX)
            await world.build()
            if turn < TURNS - 1:
                await world.builder.drop(ACCOUNT, TABLE, INDEX)
        one.over = other.over = True
    world.now_s += CACHE_TTL_SECONDS
    await check_entries(one.engine, TABLE)
    for process in (one, other):
        assert (await process.find("fixed"))[1] == (scope is Scope.TABLE)
