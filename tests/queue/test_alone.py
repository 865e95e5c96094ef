"""A process that alone writes to a shard: its floor follows the present, and never passes a commit in flight."""

import asyncio
import gc
import threading
from random import Random

import pytest

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue import messages as messages_module
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import Messages
from lazulite.queue.model.expirations import Expirations
from lazulite.queue.model.shard import Shard

from .world import TTL, World, opened, receipt


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


class Outcome:
    """What a commit that joined its group came to."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.failure: BaseException | None = None

    def set_result(self, _: object) -> None:
        self.ended.set()

    def set_exception(self, exception: BaseException) -> None:
        self.failure = exception
        self.ended.set()


async def test_a_put_that_joined_at_once_is_found_once_it_is_acknowledged() -> None:
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
        outcome = Outcome()
        put = world.messages.put_now(world.queue, b"a", 0, TTL, outcome)
        await asyncio.to_thread(reached.wait)
        world.advance(5)
        assert await world.get() == []
        release.set()
        await outcome.ended.wait()
        assert [message.id for message in await world.get()] == [put and put.id]
        assert shard_of(world).is_idle


async def test_what_cannot_join_at_once_changes_nothing() -> None:
    async with opened(alone=True) as world:
        assert world.messages.put_now(world.queue, b"a", 0, TTL, Outcome()) is None, "the shard is not known"
        first = await world.put("first")
        world.advance(0.001)
        second = await world.put("second")
        assert world.messages.put_now(world.queue, b"a", 0, 1, Outcome()) is None, "the shard is not scheduled"
        assert world.messages.get_now(world.queue, 1, 30, Outcome()) is None, "nothing was read ahead"
        assert not world.messages.delete_now(world.queue, first.id, receipt(first), Outcome()), "the place is not known"
        assert await world.texts() == ["first"]
        assert world.messages.get_now(world.queue, 2, 30, Outcome()) is None, "there are fewer"
        await world.engine.commit(world.queue.space, "00", put_rows({second.row: None}))
        third = await world.put("third")
        assert world.messages.get_now(world.queue, 1, 30, Outcome()) is None, "the message has gone"
        assert shard_of(world).is_idle
        assert await world.texts() == ["third"]
        assert await world.delete(third._replace(changes=1, visible=world.now + 30 * TICKS_PER_SECOND))
        assert world.messages._known(world.queue).is_idle


async def test_messages_that_are_put_back_are_handed_out_next() -> None:
    async with opened(alone=True) as world:
        for text in "abcd":
            await world.put(text)
            world.advance(0.001)
        assert await world.texts() == ["a"]
        ahead = world.messages._known(world.queue).ahead
        held_bytes = world.messages._read_ahead.held_bytes
        ahead.put_back(ahead.take_now(2))
        assert world.messages._read_ahead.held_bytes == held_bytes
        outcome = Outcome()
        claimed = world.messages.get_now(world.queue, 2, 30, outcome)
        assert claimed is not None
        assert [message.text for message in claimed] == [b"b", b"c"]
        await outcome.ended.wait()
        assert ahead.is_idle
        deleted = Outcome()
        assert world.messages.delete_now(world.queue, claimed[0].id, receipt(claimed[0]), deleted)
        await deleted.ended.wait()
        assert await world.count() == 3


async def test_a_claim_that_joined_at_once_and_failed_is_released() -> None:
    broken = False

    def fail() -> None:
        if broken:
            raise OSError("broken")

    async with opened(alone=True, failpoints={"before_sync": fail}) as world:
        for text in "ab":
            await world.put(text)
            world.advance(0.001)
        assert await world.texts() == ["a"]
        broken, outcome = True, Outcome()
        assert world.messages.get_now(world.queue, 1, 30, outcome) is not None
        await outcome.ended.wait()
        assert isinstance(outcome.failure, EngineUnavailableError)
        assert world.messages._known(world.queue).is_idle
        assert not world.messages._alone
        broken = False


async def test_a_peek_is_repeated_while_its_messages_are_the_first() -> None:
    disk = Disk()
    async with opened(alone=True, failpoints={"after_sync": disk.fail}) as world:
        for text in ("a", "b", "c", "d"):
            await world.put(text, ttl=60)
            world.advance(0.001)
        messages, queue = world.messages, world.queue
        assert messages.peek_now(queue, 2) is None, "it is not known which are the first"
        first = await messages.peek(queue, 2)
        assert [message.text for message in first] == [b"a", b"b"]
        await world.put("e")
        assert messages.peek_now(queue, 2) == first
        assert messages.peek_now(queue, 1) is None, "so many were not asked for"
        [claimed] = await world.get()
        assert messages.peek_now(queue, 2) is None, "one of them is invisible"
        assert [message.text for message in await messages.peek(queue, 2)] == [b"b", b"c"]
        world.advance(31)
        assert [message.text for message in messages.peek_now(queue, 2) or ()] == [b"b", b"c"]
        assert await world.delete(claimed), "it is visible again, behind all others"
        world.advance(60)
        assert messages.peek_now(queue, 2) is None, "they have expired"
        assert [message.text for message in await messages.peek(queue, 1)] == [b"e"]
        assert messages.peek_now(queue, 1) is not None
        disk.broken = True
        with pytest.raises(EngineError):
            await world.put()
        assert messages.peek_now(queue, 1) is None, "what is stored is not known"


async def test_a_peek_is_not_repeated_past_a_put_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, listing, listed = Expirations.schedule, asyncio.Event(), asyncio.Event()

    async def slow(self: Expirations, space: int, number: int, due: int) -> None:
        listing.set()
        await listed.wait()
        await schedule(self, space, number, due)

    monkeypatch.setattr(Expirations, "schedule", slow)
    async with opened(alone=True) as world:
        messages, queue = world.messages, world.queue
        putting = asyncio.create_task(world.put("earlier", ttl=60))
        await listing.wait()
        world.advance(1)
        later = await world.put("later", ttl=None)
        world.advance(1)
        assert await messages.peek(queue, 1) == [later]
        assert messages.peek_now(queue, 1) is None
        listed.set()
        earlier = await putting
        assert await messages.peek(queue, 1) == [earlier]
        assert messages.peek_now(queue, 1) == [earlier]
