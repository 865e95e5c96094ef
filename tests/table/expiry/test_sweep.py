"""The sweep: what it removes, and that it ends where the declaration does."""

from collections.abc import AsyncIterator

import pytest

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import KeyRange
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.table.catalog import Catalog, Table
from lazulite.table.expiry import sweep
from lazulite.table.expiry.definition import Expiry
from lazulite.table.expiry.sweep import ExpirySweep
from lazulite.table.model.row import assemble, encode_keys

ACCOUNT = "a"
NOON = 134_000_000_000_000_000
ROWS = 250


class World:
    def __init__(self) -> None:
        self.seconds = 0
        self.working = 0.0
        self.rests: list[float] = []
        self.engine = RocksEngine.open(None, self.clock)
        self.catalog = Catalog(self.engine)

    def clock(self) -> int:
        return NOON + self.seconds * TICKS_PER_SECOND

    def monotonic(self) -> float:
        self.working += 0.5
        return self.working

    async def rest(self, seconds: float) -> None:
        self.rests.append(seconds)

    @property
    def sweep(self) -> ExpirySweep:
        return ExpirySweep(self.engine, self.clock, self.monotonic, self.rest)

    async def fill(self, name: str, expiry: Expiry | None) -> Table:
        """Make a table of rows in three partitions."""
        table = await self.catalog.create(ACCOUNT, name)
        for partition in "abc":
            rows = {f"{row:03}": assemble(self.clock(), encode_keys(partition, f"{row:03}"), "") for row in range(ROWS)}
            await self.engine.commit(table.space, partition, put_rows(rows))
        return table if expiry is None else await self.catalog.set_expiry(ACCOUNT, name, expiry)

    async def count(self, table: Table) -> int:
        return sum([len(part.values) async for part in self.engine.scan(table.space, [KeyRange(("", ""), None)])])


@pytest.fixture(name="world")
async def _world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.engine.close()


async def test_a_sweep_removes_what_has_expired_and_rests_after_each_step(world: World) -> None:
    plain, short = await world.fill("plain", None), await world.fill("short", Expiry(after_seconds=60))
    await world.fill("long", Expiry(after_seconds=3600))
    world.seconds = 30
    assert await world.sweep.run() == 0
    world.rests.clear()
    world.seconds = 60
    assert await world.sweep.run() == 3 * ROWS
    assert await world.count(short) == 0
    assert await world.count(plain) == 3 * ROWS
    assert world.rests == [4.5, 4.5]


async def test_a_sweep_goes_through_a_table_in_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = await world.fill("short", Expiry(after_seconds=60))
    monkeypatch.setattr(sweep, "_ROWS_OF_A_STEP", 150)
    world.seconds = 60
    assert await world.sweep.run() == 3 * ROWS
    assert len(world.rests) == 6
    assert await world.count(table) == 0


@pytest.mark.parametrize("ends", ["drop", "other", "delete"])
async def test_a_sweep_ends_when_the_declaration_does(world: World, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    table = await world.fill("short", Expiry(after_seconds=60))
    last = await world.fill("shortest", Expiry(after_seconds=5))
    monkeypatch.setattr(sweep, "_ROWS_OF_A_STEP", 100)
    world.seconds = 60

    async def rest(_: float) -> None:
        if not world.rests and ends == "delete":
            await world.catalog.delete(ACCOUNT, "short")
        elif not world.rests:
            other = None if ends == "drop" else Expiry(after_seconds=3600)
            await world.catalog.set_expiry(ACCOUNT, "short", other)
        world.rests.append(0)

    assert await ExpirySweep(world.engine, world.clock, world.monotonic, rest).run() == 100 + 3 * ROWS
    assert await world.count(last) == 0
    if ends != "delete":
        assert await world.count(table) == 3 * ROWS - 100


async def test_a_row_that_was_written_meanwhile_stays(world: World) -> None:
    table = await world.fill("short", Expiry(after_seconds=60))
    world.seconds = 60
    row = assemble(world.clock(), encode_keys("b", "007"), "")
    await world.engine.commit(table.space, "b", put_rows({"007": row}))
    assert await world.sweep._remove(table, "b", ["006", "007"]) == 1
