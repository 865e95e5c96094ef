"""Several processes on one store, in one clock that the test moves: one map, and one quota for each account."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

import pytest

from lazulite.engine.contract import Engine
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.partitions.gate import Decision, Limit
from lazulite.partitions.ledger import Ledger, MemoryLedger, StoredLedger
from lazulite.partitions.live import FOLLOWED_A_MOVE, Charge, LivePartitions
from lazulite.partitions.ranges import RangeMap, TableKey
from lazulite.partitions.rounds import Rounds
from lazulite.partitions.slices import SLICE_SECONDS, SharedQuota
from lazulite.partitions.stored_maps import StoredMaps, delete_map
from lazulite.partitions.targets import Rate, Targets
from lazulite.protocol.clock import system_clock
from lazulite.table.catalog import Catalog
from tests.engine.conftest import EngineFactory

from .test_live import SMALL

MOVE = 15.0
pytestmark = pytest.mark.parametrize("engine_factory", ["remote-replica", "dictionary", "postgres"], indirect=True)
"""What a worker has, what one process has, and what processes share that know nothing of each other."""


class World:
    """A store with a table, a clock, and processes by name.

    Args:
        engine: of the store. Processes of a database have engines of their own, and all others this one.
        open_engine: opens another one on the same database; None: on others, the ledger is that of a primary.
        targets: of all processes.
    """

    def __init__(self, engine: Engine, open_engine: Callable[[], Engine] | None, targets: Targets = SMALL) -> None:
        self.engine = engine
        self.targets = targets
        self.now = 1_000_000.0
        self.ledger: Ledger = MemoryLedger()
        self._open_engine = open_engine
        self.engines: list[Engine] = []
        self.catalog = Catalog(engine)
        self.table = TableKey("acct", "orders", 0)
        self.processes: dict[str, LivePartitions] = {}

    async def create(self) -> None:
        table = await self.catalog.create("acct", "Orders")
        self.table = TableKey("acct", "orders", table.space)

    async def start(self, name: str) -> None:
        """Start a process, in place of one of the same name that was killed."""
        engine, ledger = self.engine, self.ledger
        if self._open_engine is not None:
            engine = self._open_engine()
            self.engines.append(engine)
            ledger = StoredLedger(engine)
        maps = StoredMaps(engine, Catalog(engine).has, Rounds(engine, name), pytest.fail)
        quota = partial(SharedQuota, ledger)
        live = LivePartitions(self.targets, lambda: self.now, self._sleep, maps=maps, quota=quota)
        await live.start()
        self.processes[name] = live

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds

    async def ask(self, process: str, partition: str, cost: float = 1) -> Decision:
        charge = Charge("acct", "table", "orders", partition, space=self.table.space, cost=cost)
        return await self.processes[process].admit(charge)

    async def load(self, seconds: int, rate: int, *processes: str) -> None:
        """Spread a load over partitions and processes for a while."""
        for second in range(seconds):
            self.now += 1
            for number in range(10):
                process = processes[number % len(processes)]
                await self.ask(process, f"{(second * 7 + number * 13) % 100:02}", rate / 10)

    async def split(self, *processes: str) -> float:
        """Load a table until one of its ranges moves; return since when."""
        for _ in range(600):
            await self.load(1, 60, *processes)
            moves = [found for name in processes for found in self.processes[name].events]
            if moves:
                return moves[-1][0]
        raise AssertionError("no range has moved")

    def map_of(self, process: str) -> RangeMap:
        return self.processes[process].map_of(self.table)

    async def refusal(self, process: str, partition: str = "99") -> Limit | None:
        decision = await self.ask(process, partition)
        return decision.limit if decision.error is not None else None


@pytest.fixture(name="world")
async def _world(engine: Engine, engine_factory: EngineFactory) -> AsyncIterator[World]:
    is_database = isinstance(engine, PostgresEngine)
    world = World(engine, partial(engine_factory.open, system_clock) if is_database else None)
    await world.create()
    yield world
    for each in world.engines:
        await each.close()


async def test_all_processes_refuse_what_moves_and_no_longer(world: World) -> None:
    """The load of neither process alone is enough for a split."""
    for name in ("one", "two"):
        await world.start(name)
    moved = await world.split("one", "two")
    (balancer,) = [name for name in ("one", "two") if world.processes[name].events]
    (other,) = {"one", "two"} - {balancer}
    world.now = max(world.now, moved) + MOVE / FOLLOWED_A_MOVE + 0.01
    assert [await world.refusal(name) for name in (balancer, other)] == [Limit.MOVE] * 2
    assert [await world.refusal(name, "00") for name in (balancer, other)] == [None] * 2
    assert world.map_of(balancer) == world.map_of(other)
    world.now = moved + MOVE
    assert [await world.refusal(name) for name in (balancer, other)] == [None] * 2


async def test_a_restart_in_the_middle_of_a_move_goes_on_with_it(world: World) -> None:
    await world.start("one")
    moved = await world.split("one")
    before = world.map_of("one")
    world.now = moved + 10
    await world.start("one")
    assert world.map_of("one") == before
    assert await world.refusal("one") is Limit.MOVE
    assert await world.refusal("one", "00") is None
    world.now = moved + MOVE
    assert await world.refusal("one") is None


async def test_a_process_that_is_killed_in_the_middle_of_a_move_leaves_one_map(world: World) -> None:
    """The process that balanced is gone for good. Another one takes over, and a third one starts meanwhile."""
    for name in ("one", "two"):
        await world.start(name)
    await world.split("one", "two")
    (balancer,) = [name for name in ("one", "two") if world.processes[name].events]
    (other,) = {"one", "two"} - {balancer}
    before = world.map_of(balancer)
    del world.processes[balancer]
    await world.start("three")
    world.now += 1
    assert [await world.refusal(name) for name in (other, "three")] == [Limit.MOVE] * 2
    assert world.map_of(other).ranges == world.map_of("three").ranges == before.ranges
    # The load goes on, so the range that is left hot is split by one of those that live.
    world.now += MOVE
    await world.load(700, 120, other, "three")
    assert world.processes[other].events or world.processes["three"].events
    world.now += 1
    await world.ask(other, "00")
    await world.ask("three", "00")
    assert world.map_of(other) == world.map_of("three")
    assert len(world.map_of(other).ranges) > 2


async def test_a_restart_does_not_forget_how_long_a_load_has_lasted(world: World) -> None:
    for name in ("one", "two"):
        await world.start(name)
    await world.load(250, 60, "one", "two")
    await world.start("one")
    await world.load(80, 60, "one", "two")
    await world.load(1, 0, "one", "two")
    assert [len(world.map_of(name).ranges) for name in ("one", "two")] == [2, 2]


async def test_a_table_that_is_made_anew_has_a_map_of_its_own(world: World) -> None:
    for name in ("one", "two"):
        await world.start(name)
    await world.split("one", "two")
    old = world.table
    await world.catalog.delete("acct", "Orders")
    await world.create()
    world.now += 1
    for name in ("one", "two"):
        assert await world.refusal(name) is None
        assert len(world.map_of(name).ranges) == 1
        assert old not in world.processes[name].maps
    await world.load(40, 1, "one", "two")
    maps = StoredMaps(world.engine, world.catalog.has, None, pytest.fail)
    assert (await maps.follow({})).keys() == {world.table}


async def test_late_requests_of_a_dropped_table_leave_no_map(world: World) -> None:
    """A process counts requests of a table that another one drops before the first round."""
    await world.start("one")
    await world.ask("one", "a")
    await world.catalog.delete("acct", "Orders")
    await world.load(40, 1, "one")
    assert await StoredMaps(world.engine, world.catalog.has, None, pytest.fail).follow({}) == {}
    await delete_map(world.engine, "acct", world.table.space)


async def test_processes_share_the_quota_of_an_account(world: World) -> None:
    """Three processes, asked for three times what the account may do, in ten seconds."""
    cap = 1_000.0
    world.targets = replace(SMALL, account=Rate(cap, cap), server_cap=1e9)
    for name in ("one", "two", "three"):
        await world.start(name)
    begun, passed = world.now, 0.0
    for number in range(3_000):
        world.now = begun + number / 300
        name = ("one", "two", "three")[number % 7 % 3]
        decision = await world.ask(name, str(number % 100), 10)
        assert decision.limit in (None, Limit.ACCOUNT)
        passed += 10 * (decision.error is None)
    error = 3 * cap * SLICE_SECONDS
    assert abs(passed - cap * (10 + 1)) <= error
