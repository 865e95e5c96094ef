"""A process that alone writes to a shard: its floor follows the present, and never passes a commit in flight."""

import asyncio
import gc
import threading
from random import Random

import pytest

from lazulite.engine.contract import EngineError
from lazulite.queue import messages as messages_module
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import Messages
from lazulite.queue.model.expirations import Expirations
from lazulite.queue.model.shard import Shard

from .world import World, opened


def shard_of(world: World) -> Shard:
    return world.messages._known(world.queue).shards[0]


async def test_the_next_scan_begins_behind_what_was_taken() -> None:
    async with opened(alone=True) as world:
        for _ in range(20):
            await world.put()
            world.advance(0.001)
        for message in await world.get(20):
            assert await world.delete(message)
        assert await world.get() == []
        assert shard_of(world)._floor == world.now


async def test_a_put_in_flight_is_found_once_it_is_acknowledged() -> None:
    reached, release = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        release.wait()

    async with opened(alone=True, failpoints={"before_sync": hold}) as world:
        release.set()
        await world.put(ttl=1)  # It schedules the shard.
        world.advance(1)
        assert await world.get() == []
        release.clear()
        reached.clear()
        put = asyncio.create_task(world.put())
        await asyncio.to_thread(reached.wait)
        world.advance(5)
        assert await world.get() == []
        release.set()
        await put
        assert await world.texts() == ["a"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_put_whose_caller_went_is_found_once_it_is_durable(fails: bool) -> None:
    reached, release = threading.Event(), threading.Event()
    failing = False

    def hold() -> None:
        reached.set()
        release.wait()
        if failing:
            raise OSError("broken")

    async with opened(alone=True, failpoints={"after_sync": hold}) as world:
        release.set()
        await world.put(ttl=1)  # It schedules the shard.
        world.advance(1)
        assert await world.get() == []
        release.clear()
        reached.clear()
        put = asyncio.create_task(world.put())
        await asyncio.to_thread(reached.wait)
        failing = fails
        put.cancel()
        await asyncio.wait([put])
        world.advance(5)
        assert await world.get() == []
        release.set()
        shard = shard_of(world)
        await asyncio.gather(*shard._settling)
        assert not shard._in_flight
        assert shard._alone is not fails
        if not fails:
            assert await world.texts() == ["a"]


class Disk:
    """A disk whose syncs fail from some moment on."""

    broken = False

    def fail(self) -> None:
        """Fail, if the disk is broken."""
        if self.broken:
            raise OSError("broken")


async def test_a_failed_commit_makes_scans_begin_at_the_stored_floor() -> None:
    disk = Disk()
    async with opened(alone=True, failpoints={"after_sync": disk.fail}) as world:
        await world.put()
        world.advance(100)
        assert len(await world.get()) == 1
        shard = shard_of(world)
        assert shard._floor > (await shard.state()).floor
        disk.broken = True
        with pytest.raises(EngineError):
            await world.put("lost or not")
        assert not shard._alone
        assert shard._floor <= (await shard.state()).floor


async def test_the_floor_stays_below_a_put_that_lists_its_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, listing, listed = Expirations.schedule, asyncio.Event(), asyncio.Event()

    async def slow(self: Expirations, space: int, number: int, due: int) -> None:
        listing.set()
        await listed.wait()
        await schedule(self, space, number, due)

    monkeypatch.setattr(Expirations, "schedule", slow)
    async with opened(alone=True) as world:
        putting = asyncio.create_task(world.put(ttl=60))
        await listing.wait()
        world.advance(1)
        assert await world.get() == []
        listed.set()
        put = await putting
        assert [message.id for message in await world.get()] == [put.id]


async def test_a_queue_with_a_put_in_flight_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, listing, listed = Expirations.schedule, asyncio.Event(), asyncio.Event()

    async def slow(self: Expirations, space: int, number: int, due: int) -> None:
        listing.set()
        await listed.wait()
        await schedule(self, space, number, due)

    monkeypatch.setattr(Expirations, "schedule", slow)
    monkeypatch.setattr(messages_module, "QUEUES_MAX", 1)
    async with opened(alone=True) as world:
        putting = asyncio.create_task(world.put(ttl=60))
        await listing.wait()
        await world.messages.get(Queue("other", 3000, 1), 1, 1)
        world.advance(1)
        assert await world.get() == []
        listed.set()
        put = await putting
        assert [message.id for message in await world.get()] == [put.id]


async def test_a_put_in_flight_is_known_although_its_queue_was_forgotten() -> None:
    reached, release = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        release.wait()

    async with opened(alone=True, failpoints={"before_sync": hold}) as world:
        release.set()
        await world.put(ttl=1)
        release.clear()
        reached.clear()
        put = asyncio.create_task(world.put())
        await asyncio.to_thread(reached.wait)
        world.messages._queues.clear()
        gc.collect()
        world.advance(5)
        assert await world.get() == []
        release.set()
        await put
        assert await world.texts() == ["a"]


async def test_after_a_doubt_no_shard_is_alone() -> None:
    disk = Disk()
    async with opened(alone=True, failpoints={"after_sync": disk.fail}) as world:
        await world.put()
        disk.broken = True
        with pytest.raises(EngineError):
            await world.put()
        assert not world.messages._new_shard(world.queue.space + 1, 0)._alone


async def test_a_put_is_found_although_time_passes_in_it() -> None:
    async with opened(alone=True) as world:

        def passing() -> int:
            world.now += 1
            return world.now

        messages = Messages(world.engine, passing, Random(1), alone=True)
        for _ in range(3):
            put = await messages.put(world.queue, b"a", 0, 1)
            assert [message.id for message in await messages.get(world.queue, 1, 1)] == [put.id]
