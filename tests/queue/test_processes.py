"""Several processes on one database: their home shards, and what they do in each other's."""

from collections.abc import Awaitable, Callable
from random import Random

import pytest

from lazulite.engine.contract import KeyRange, SpaceDroppedError
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.catalog import Catalog
from lazulite.queue.lookahead import OVERDUE_TICKS
from lazulite.queue.processes import ALIVE_TICKS, FORGET_TICKS, PROCESSES_SPACE, Processes
from lazulite.records.catalog import marker_of
from lazulite.records.spaces import PROCESSES, QUEUES

from .engines import CountingEngine
from .world import World, opened

SHARDS = 16
Change = Callable[[Catalog, str, str], Awaitable[None]]


def process(world: World, seed: int) -> Processes:
    return Processes(world.engine, lambda: world.now, Random(seed))


def dealt(*processes: Processes) -> list[int]:
    return [len(each.homes(SHARDS)) for each in processes]


async def test_shards_are_dealt_out_among_the_living() -> None:
    async with opened() as world:
        one, two, three = (process(world, seed) for seed in range(3))
        await one.announce()
        assert dealt(one) == [16]
        for each in (two, three, one, two):
            await each.announce()
        homes = [number for each in (one, two, three) for number in each.homes(SHARDS)]
        assert sorted(homes) == list(range(SHARDS))
        assert sorted(dealt(one, two, three)) == [5, 5, 6]
        assert [len(each.homes(1)) for each in (one, two, three)] == [1, 1, 1]
        world.now += ALIVE_TICKS - 1
        await two.announce()
        await one.announce()
        world.now += 1
        await two.announce()
        assert dealt(two) == [8]
        world.now += FORGET_TICKS + 1
        await two.announce()
        assert dealt(two) == [16]
        rows = [part async for part in world.engine.scan(PROCESSES, [KeyRange(("", ""), None)])]
        assert sum(len(part.values) for part in rows) == 1


@pytest.mark.parametrize(("row", "value"), [("0" * 15, bytes(8)), ("0" * 16, bytes(7))])
def test_damaged_rows_are_found(row: str, value: bytes) -> None:
    assert PROCESSES_SPACE.verify is not None
    PROCESSES_SPACE.verify(("", "0" * 16), bytes(8))
    with pytest.raises(ValueError, match="process"):
        PROCESSES_SPACE.verify(("", row), value)


async def test_a_process_puts_and_gets_at_home() -> None:
    async with opened(SHARDS) as world:
        homes = range(1, SHARDS, 2)
        at_home = world.process(homes=lambda _: homes)
        elsewhere = world.process(1, homes=lambda _: range(0, SHARDS, 2))
        for _ in range(50):
            for each in (at_home, elsewhere):
                message = await each.put(world.queue, b"a", 0, None)
                assert (int(message.id, 16) % SHARDS in homes) == (each is at_home)
        for _ in range(5):
            got = await at_home.get(world.queue, 10, 30)
            assert {int(message.id, 16) % SHARDS in homes for message in got} == {True}
        got = await at_home.get(world.queue, 32, 30)
        assert {int(message.id, 16) % SHARDS in homes for message in got} == {False}


async def test_messages_without_a_request_at_home_go_to_other_processes_in_time() -> None:
    async with opened(4) as world:
        at_home = world.process(homes=lambda _: range(2))
        elsewhere = world.process(1, homes=lambda _: range(2, 4))
        old = await elsewhere.put(world.queue, b"old", 0, None)
        got = None
        for _ in range(40):
            await at_home.put(world.queue, b"young", 0, None)
            [got] = await at_home.get(world.queue, 1, 30)
            if got.id == old.id:
                break
            world.advance(0.1)
        assert got is not None
        assert got.id == old.id
        assert world.now - old.visible <= 2 * OVERDUE_TICKS + TICKS_PER_SECOND


@pytest.mark.parametrize("pause", [0.01, 1.5])
async def test_a_consumer_gets_the_old_messages_of_other_shards_in_time(pause: float) -> None:
    """Whatever is read ahead at home, and however the old messages are spread."""
    async with opened(4) as world:
        shards = [world.process(number, homes=lambda _, number=number: [number]) for number in range(4)]  # type: ignore[misc]
        at_home = world.process(4, homes=lambda _: [0])
        for second in range(0, 40, 2):
            number = 0 if second > 20 else [2, 2, 3, 2, 1][second // 2 % 5]
            await shards[number].put(world.queue, str(second).encode(), 0, None)
            world.advance(2)
        got: list[str] = []
        while some := await at_home.get(world.queue, 1, 600):
            got.append(some[0].text.decode())
            world.advance(pause)
        assert got == [*map(str, range(0, 40, 2))]


class InterruptedCatalog(Catalog):
    """The catalog of a process that ends in the middle of a drop."""

    async def _close(self, space: int) -> None:
        raise ConnectionError


@pytest.mark.parametrize("change", [Catalog.clear, Catalog.delete])
@pytest.mark.parametrize("interrupted", [Catalog.clear, Catalog.delete])
async def test_a_drop_finishes_interrupted_drops(interrupted: Change, change: Change) -> None:
    async with opened() as world:
        world.engine = engine = CountingEngine(world.engine)
        engine.drops = False
        here, elsewhere = world.process(), Catalog(engine, SHARDS)
        await elsewhere.create("a", "jobs", ())
        queue = await elsewhere.require("a", "jobs")
        await here.put(queue, b"a", 0, None)
        with pytest.raises(ConnectionError):
            await interrupted(InterruptedCatalog(engine, SHARDS), "a", "jobs")
        await elsewhere.create("a", "jobs", ())
        await change(elsewhere, "a", "jobs")
        with pytest.raises(SpaceDroppedError):
            await here.get(queue, 1, 30)


async def test_a_drop_that_ended_before_its_marker_was_deleted_is_finished() -> None:
    async with opened() as world:
        catalog = Catalog(world.engine, SHARDS)
        await catalog.create("a", "jobs", ())
        queue = await catalog.require("a", "jobs")
        with pytest.raises(ConnectionError):
            await InterruptedCatalog(world.engine, SHARDS).delete("a", "jobs")
        await world.engine.drop(queue.space)
        await catalog.finish_drops()
        assert await world.engine.get(QUEUES, "a", marker_of(queue.space)) is None


async def test_a_new_queue_finishes_a_deletion_that_was_interrupted() -> None:
    async with opened() as world:
        world.engine = engine = CountingEngine(world.engine)
        engine.drops = False
        here, elsewhere = world.process(), Catalog(engine, SHARDS)
        await elsewhere.create("a", "jobs", ())
        queue = await elsewhere.require("a", "jobs")
        with pytest.raises(ConnectionError):
            await InterruptedCatalog(engine, SHARDS).delete("a", "jobs")
        await elsewhere.create("a", "jobs", ())
        with pytest.raises(SpaceDroppedError):
            await here.put(queue, b"late", 0, None)


@pytest.mark.parametrize("change", [Catalog.clear, Catalog.delete])
async def test_no_put_is_acknowledged_to_a_queue_that_another_process_has_cleared(
    change: Change,
) -> None:
    async with opened() as world:
        world.engine = engine = CountingEngine(world.engine)
        engine.drops = False  # This process does not know yet.
        here, elsewhere = world.process(), Catalog(engine, SHARDS)
        await elsewhere.create("a", "jobs", ())
        queue = await elsewhere.require("a", "jobs")
        await here.put(queue, b"a", 0, None)
        await change(elsewhere, "a", "jobs")
        for _ in range(SHARDS):
            with pytest.raises(SpaceDroppedError):
                await here.put(queue, b"late", 0, None)
        with pytest.raises(SpaceDroppedError):
            await here.count(queue)
        with pytest.raises(SpaceDroppedError):
            await here.get(queue, 1, 30)
