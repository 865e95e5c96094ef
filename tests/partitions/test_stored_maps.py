"""The maps of a store: one map for all processes, whichever of them balances, dies, restarts or is late."""

from collections.abc import Collection, Mapping
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.commit import Commit, put_rows
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.partitions import map_codec
from lazulite.partitions.load import RangeLoad
from lazulite.partitions.map_store import Balance, Maps, TableLoads
from lazulite.partitions.ranges import Range, RangeMap, TableKey
from lazulite.partitions.rounds import Rounds
from lazulite.partitions.stored_maps import MAPS_SPACE, StoredMaps, delete_map, row_of
from lazulite.protocol.clock import system_clock
from lazulite.records.spaces import PARTITION_MAPS
from tests.engine.conftest import EngineFactory
from tests.fuzz.memory import MemoryEngine

T = TypeVar("T")

ORDERS = TableKey("acct", "orders", 1024)
OTHERS = TableKey("other", "orders", 1025)
NEW = RangeMap.of_new_table(0, 0)


class Store:
    """What a process has: the maps of a store, and what it was told."""

    def __init__(self, engine: Engine, process: str = "", gone: Collection[TableKey] = ()) -> None:
        self.lines: list[str] = []
        self.gone = set(gone)
        self.rounds = Rounds(engine, process) if process else None
        self.maps = StoredMaps(engine, self._exists, self.rounds, self.lines.append)
        self.known: Maps = {}

    async def _exists(self, table: TableKey) -> bool:
        return table not in self.gone

    async def take_turn(self, now: float, balance: Balance, loads: TableLoads | None = None, **new: RangeMap) -> Maps:
        self.known = await self.maps.take_turn({**self.known}, loads or {}, now, 15, balance)
        return self.known


def keep(maps: Maps, _: TableLoads, __: float) -> Maps:
    return maps


def splitting(key: str, server: int = 1, now: float = 0) -> Balance:
    """Return a balance that splits the range of a key in all tables."""

    def balance(maps: Maps, _: TableLoads, __: float) -> Maps:
        return {table: found.split(found.index(key), key, server, now, 15) for table, found in maps.items()}

    return balance


def never(maps: Maps, loads: TableLoads, seconds: float) -> Maps:
    raise AssertionError("another process balances")


def starts(maps: Maps, table: TableKey = ORDERS) -> list[str]:
    return [each.start for each in maps[table].ranges]


async def test_a_restart_keeps_the_maps(engine_factory: EngineFactory) -> None:
    engine = engine_factory.open(system_clock)
    store = Store(engine)
    store.known = {ORDERS: NEW, OTHERS: NEW}
    before = await store.take_turn(15, splitting("m\U0001f600", 3, 15))
    assert starts(before) == ["", "m\U0001f600"]
    if engine_factory.keeps:
        await engine.close()
        engine = engine_factory.open(system_clock)
    after = await Store(engine).maps.follow({})
    assert after == before
    assert after[ORDERS].ranges[1].is_moving(29.9)
    await engine.close()


async def test_all_processes_have_one_map(engine: Engine) -> None:
    one, two = Store(engine, "one"), Store(engine, "two")
    one.known = {ORDERS: NEW}
    two.known = {ORDERS: RangeMap.of_new_table(2, 3), OTHERS: NEW}
    await one.take_turn(15, splitting("m", now=15))
    await two.take_turn(20, never)
    assert two.known == {**one.known, OTHERS: NEW}
    # A table that only a process knows that does not balance is balanced, too.
    await one.take_turn(30, splitting("s", now=30))
    assert one.known == await two.take_turn(35, never)
    assert (starts(two.known), starts(two.known, OTHERS)) == (["", "m", "s"], ["", "s"])


async def test_the_loads_of_all_processes_are_added(engine: Engine) -> None:
    def load(operations: float, *samples: str) -> TableLoads:
        found = RangeLoad(operations, 10)
        found.samples.extend(samples)
        return {ORDERS: {"": found}}

    one, two = Store(engine, "one"), Store(engine, "two")
    one.known = two.known = {ORDERS: NEW}
    seen: list[tuple[float, int, list[str], float]] = []

    def balance(maps: Maps, loads: TableLoads, seconds: float) -> Maps:
        found = loads[ORDERS][""]
        seen.append((found.operations, found.bytes_written, sorted(found.samples), seconds))
        return maps

    await one.take_turn(15, balance, load(1, "a"))
    await two.take_turn(16, never, load(10, "b"))
    await two.take_turn(29, never, load(20, "c"))  # Handed in again before anyone balanced.
    await one.take_turn(31, balance, load(2, "d"))
    assert seen == [(1, 10, ["a"], 15), (32, 20, ["b", "c", "d"], 16)]
    # A process that died has handed in its loads; another one takes over.
    await one.take_turn(32, never, load(4))
    await two.take_turn(46, balance, load(40))
    assert seen[2:] == [(44, 20, [], 15)]


async def test_one_process_is_chosen_for_a_round(memory: Engine) -> None:
    """Whatever the order of their turns, no two of them balance within a round."""
    stores = [Store(memory, str(number)) for number in range(4)]
    chosen: list[float] = []
    random, now = Random(7), 0.0
    for _ in range(200):
        now += random.random() * 5

        def balance(maps: Maps, _: TableLoads, __: float, at: float = now) -> Maps:
            chosen.append(at)
            return maps

        await random.choice(stores).take_turn(now, balance)
    assert all(later - earlier >= 15 for earlier, later in pairwise(chosen))
    assert len(chosen) > now / 15 / 1.4


async def test_a_process_that_is_overtaken_changes_nothing(engine: Engine) -> None:
    """It balances by a map that another one replaces before it is written."""
    first, late = Store(engine), Store(engine)
    first.known = late.known = {ORDERS: NEW, OTHERS: NEW}
    await first.take_turn(15, keep)
    await late.take_turn(15, keep)

    class Overtaken(StoredMaps):
        async def _swap(self, changes: Mapping[TableKey, Any]) -> set[TableKey]:
            await first.take_turn(30, splitting("a", now=30))
            return await super()._swap(changes)

    late.maps = Overtaken(engine, first._exists, None, late.lines.append)
    found = await late.take_turn(30, splitting("z", now=30))
    assert found == first.known == await first.maps.follow({})
    assert starts(found) == ["", "a"]


@pytest.mark.parametrize("process", ["", "one"])
async def test_a_map_goes_with_its_table(engine: Engine, process: str) -> None:
    store = Store(engine, process)
    store.known = {ORDERS: NEW, OTHERS: NEW}
    await store.take_turn(15, splitting("m"))
    await delete_map(engine, ORDERS.account, ORDERS.space)
    await delete_map(engine, ORDERS.account, 4711)
    assert (await store.take_turn(30, keep)).keys() == {OTHERS}
    assert (await store.maps.follow({})).keys() == {OTHERS}


async def test_a_table_that_is_gone_gets_no_map(engine: Engine) -> None:
    store = Store(engine, gone=[ORDERS])
    store.known = {ORDERS: NEW, OTHERS: NEW}
    assert (await store.take_turn(15, splitting("m"))).keys() == {OTHERS}
    assert (await store.maps.follow({})).keys() == {OTHERS}


async def test_a_map_that_is_not_worth_a_row_is_removed(engine: Engine) -> None:
    one, two = Store(engine), Store(engine)
    one.known = {ORDERS: NEW, OTHERS: NEW}
    await one.take_turn(15, keep)
    await two.take_turn(15, keep)
    await one.take_turn(30, lambda maps, _, __: {OTHERS: maps[OTHERS]})
    assert await two.take_turn(30, keep) == {OTHERS: NEW} == await one.maps.follow({})
    one.known = {**one.known, ORDERS: NEW}  # It is used again.
    assert (await one.take_turn(45, keep)).keys() == {ORDERS, OTHERS} == (await two.take_turn(45, keep)).keys()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 100, b"[" * 10_000])
async def test_a_damaged_row_is_replaced(memory: Engine, damage: bytes) -> None:
    store = Store(memory)
    store.known = {ORDERS: NEW, OTHERS: NEW}
    await store.take_turn(15, splitting("m"))
    await memory.commit(PARTITION_MAPS, "acct", put_rows({row_of(1024): damage, "row": damage, "+1": damage}))
    other = Store(memory)
    assert (await other.maps.follow({})).keys() == {OTHERS}
    assert [row_of(1024) in line for line in other.lines].count(True) == 1
    for running in (store, other):
        await running.take_turn(30, keep)
        running.known = {**running.known, ORDERS: NEW}
    await store.take_turn(45, splitting("z", now=45))
    assert starts(await other.take_turn(45, keep)) == ["", "z"]
    assert len(other.lines) == 3


async def test_many_maps_of_many_accounts(engine: Engine) -> None:
    store = Store(engine)
    store.known = {TableKey(f"acct{number % 2}", f"t{number}", 2000 + number): NEW for number in range(250)}
    found = await store.take_turn(15, splitting("m"))
    assert len(found) == 250
    assert await store.maps.follow({}) == found


async def test_the_maps_of_all_processes_are_bounded(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.partitions.stored_maps.TABLES_MAX", 10)
    one, two = Store(memory), Store(memory)
    one.known = {TableKey("acct", f"t{number}", 2000 + number): NEW for number in range(7)}
    two.known = {TableKey("acct", f"t{number}", 2000 + number): NEW for number in range(100, 107)}
    await one.take_turn(15, splitting("m"))
    found = await two.take_turn(15, keep)
    assert len(found) == 10
    assert await one.take_turn(30, keep) == found
    monkeypatch.setattr("lazulite.partitions.stored_maps.TABLES_MAX", 5)
    for store in (one, two, Store(memory)):
        assert len(await store.take_turn(45, keep)) == 5


async def test_a_map_that_would_be_too_large_stays(memory: Engine) -> None:
    store = Store(memory)
    store.known = {ORDERS: NEW}
    large = (Range("", 0, 0), *(Range(f"{number:04}" + "k" * 1000, 0, 0) for number in range(1100)))
    assert await store.take_turn(15, lambda _, __, ___: {ORDERS: RangeMap(large, 1)}) == {ORDERS: NEW}


async def test_a_store_that_is_away_is_an_error_of_the_engine(memory: Engine) -> None:
    class Away(MemoryEngine):
        async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
            raise EngineUnavailableError("away")

    store = Store(Away(system_clock))
    store.known = {ORDERS: NEW}
    with pytest.raises(EngineUnavailableError):
        await store.take_turn(15, splitting("m"))


KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
TURNS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["split", "keep", "die", "drop", "restart"]), KEYS), max_size=12
)


@given(TURNS)
async def test_any_turns_leave_one_map(turns: list[tuple[int, str, str]]) -> None:
    """Processes split, die before they write, restart, and their table is dropped and made anew."""
    engine, space, now = MemoryEngine(system_clock), 1024, 0.0
    stores = [Store(engine, str(number)) for number in range(3)]
    gone: set[TableKey] = set()

    class DeathError(Exception):
        pass

    def dying(maps: Maps, loads: TableLoads, seconds: float) -> Maps:
        raise DeathError

    def of_key(key: str) -> Balance:
        def balance(maps: Maps, loads: TableLoads, seconds: float) -> Maps:
            return {
                table: found if found.find(key).start == key else found.split(found.index(key), key, 1, now, 15)
                for table, found in maps.items()
            }

        return balance

    for number, step, key in turns:
        now += 6
        table = TableKey("acct", "orders", space)
        store = stores[number]
        store.gone = gone
        if step == "drop":
            gone.add(table)
            await delete_map(engine, table.account, table.space)
            space += 1
            continue
        if step == "restart":
            stores[number] = store = Store(engine, str(number), gone)
            store.known = await store.maps.follow({})
        store.known = {**store.known, table: store.known.get(table, NEW)}
        try:
            await store.take_turn(now, {"split": of_key(key), "die": dying}.get(step, keep))
        except DeathError:
            stores[number] = Store(engine, str(number), gone)
    found = await Store(engine).maps.follow({})
    assert found.keys() <= {TableKey("acct", "orders", space)}
    for store in stores:
        assert await store.take_turn(now, keep) == await Store(engine).maps.follow({})


async def test_rows_are_verified() -> None:
    assert MAPS_SPACE.verify is not None
    MAPS_SPACE.verify(("acct", row_of(1024)), map_codec.encode("orders", NEW))
    for row, value in ((row_of(1024), b"{}"), ("400", map_codec.encode("orders", NEW)), ("x", b"")):
        with pytest.raises(ValueError, match=r".+"):
            MAPS_SPACE.verify(("acct", row), value)
