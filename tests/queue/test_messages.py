"""Messages of one queue: time, claims, processes, expiration, and the head of a shard."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from random import Random

import pytest

from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.catalog import Queue
from lazulite.queue.lookahead import ROWS_MAX
from lazulite.queue.messages import QUEUES_MAX, Messages
from lazulite.queue.model.expirations import SLOT_TICKS
from lazulite.queue.model.message import Message
from lazulite.queue.model.shard import EXPIRED_MAX, close_shard

from .engines import CountingEngine
from .world import START, World, opened, receipt

SLOT = SLOT_TICKS // TICKS_PER_SECOND


@pytest.fixture(name="world", params=[(1, True), (1, False), (3, False)])
async def _world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    shards, alone = request.param
    async with opened(shards, alone=alone) as world:
        yield world


@pytest.fixture(name="shared", params=[1, 3])
async def _shared(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with opened(request.param) as world:
        yield world


async def test_a_claim_ends_with_its_timeout(world: World) -> None:
    await world.put()
    [first] = await world.get(seconds=30)
    world.advance(29.9)
    assert await world.get() == []
    world.advance(0.1)
    [second] = await world.get()
    assert (second.id, second.dequeues) == (first.id, 2)
    assert not await world.delete(first)
    assert await world.delete(second)


async def test_a_get_slower_than_its_timeout_delivers_a_message_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put("a")
    await world.put("b", delay=1)
    claim = world.messages._claim

    async def slow(queue: Queue, taken: Sequence[Message], seconds: int) -> list[Message]:
        claimed = await claim(queue, taken, seconds)
        world.advance(seconds)
        return claimed

    monkeypatch.setattr(world.messages, "_claim", slow)
    got = await world.get(3, seconds=1)
    assert [(each.text, each.dequeues) for each in got] == [(b"a", 1), (b"b", 1)]
    again = await world.get(3, seconds=1)
    assert sorted((each.text, each.dequeues) for each in again) == [(b"a", 2), (b"b", 2)]


async def test_a_late_holder_deletes_unless_another_got_the_message(world: World) -> None:
    await world.put()
    [got] = await world.get(seconds=1)
    world.advance(100)
    assert await world.delete(got)
    assert await world.count() == 0


async def test_receipts_of_one_time_differ(world: World) -> None:
    """An update that leads back to the same time of visibility has another receipt."""
    put = await world.put(delay=10)
    update = world.messages.update
    first = await update(world.queue, put.id, receipt(put), 20, None)
    assert first is not None
    second = await update(world.queue, put.id, receipt(first), 10, None)
    assert second is not None
    assert second.visible == put.visible
    assert not await world.delete(put)
    assert await world.delete(second)


async def test_an_update_may_hide_a_message_beyond_its_expiration(world: World) -> None:
    put = await world.put(ttl=10)
    updated = await world.messages.update(world.queue, put.id, receipt(put), 11, b"b")
    assert updated is not None
    assert updated.visible > updated.expires
    world.advance(9)
    assert await world.get() == []
    world.advance(1)
    assert not await world.delete(updated)
    world.advance(3600)
    assert await world.get() == []
    assert await world.messages.remove_expired() == 1


async def test_expired_messages_are_gone(world: World) -> None:
    put = await world.put(ttl=10)
    await world.put("b", ttl=None)
    world.advance(10)
    assert not await world.delete(put)
    assert await world.messages.update(world.queue, put.id, receipt(put), 1, None) is None
    assert [message.text for message in await world.messages.peek(world.queue, 32)] == [b"b"]
    assert await world.texts(32) == ["b"]
    assert await world.count() == 2
    world.advance(SLOT)
    assert await world.messages.remove_expired() == 1
    assert await world.count() == 1


async def test_invisible_messages_expire_without_a_reader(world: World) -> None:
    for number in range(2 * EXPIRED_MAX + 1):
        await world.put(ttl=10, delay=5 if number % 2 else 0)
    await world.get(32)
    world.advance(10 + SLOT)
    assert await world.messages.remove_expired() == 2 * EXPIRED_MAX + 1
    assert await world.count() == 0
    await world.put(ttl=1)
    world.advance(100)
    assert await world.messages.remove_expired() == 1


async def test_a_message_after_many_expired_ones_is_found(world: World) -> None:
    for _ in range(600):
        await world.put(ttl=5)
    world.advance(10)
    await world.put("live")
    assert await world.texts(2) == ["live"]


async def test_consumers_of_a_process_get_different_messages(world: World) -> None:
    put = {(await world.put()).id for _ in range(300)}
    got = await asyncio.gather(*(world.get(3) for _ in range(64)))
    ids = [message.id for each in got for message in each]
    assert len(ids) == len(set(ids)) == 192
    rest = await world.get(300)
    assert {*ids, *(message.id for message in rest)} == put


async def test_consumers_of_two_processes_get_different_messages(shared: World) -> None:
    world = shared
    other = world.process(1)
    put = {(await world.put()).id for _ in range(200)}
    got = await asyncio.gather(
        *(each.get(world.queue, 5, 30) for _ in range(25) for each in (world.messages, other)),
    )
    ids = [message.id for each in got for message in each]
    assert len(ids) == len(set(ids))
    assert set(ids) == put


async def test_a_get_sees_each_put_that_was_acknowledged(world: World) -> None:
    async def put_and_get() -> int:
        await world.put()
        return len(await world.get())

    assert sum(await asyncio.gather(*(put_and_get() for _ in range(50)))) == 50


async def test_a_failed_claim_is_offered_again(world: World) -> None:
    await world.put()
    taken = await world.messages._known(world.queue).ahead.take(1)
    assert await world.get() == []
    world.messages._known(world.queue).ahead.release(taken)
    assert await world.texts() == ["a"]


async def test_a_step_back_of_the_clock_in_a_process_changes_nothing(world: World) -> None:
    await world.put()
    [got] = await world.get(seconds=30)
    world.advance(-3600)
    await world.put("b")
    assert await world.texts(2) == ["b"]
    world.now = got.visible - 1
    assert await world.texts(2) == []
    world.now = got.visible
    assert sorted(await world.texts(2)) == ["a", "b"]


async def test_a_step_back_of_the_clock_over_a_restart_loses_nothing(world: World) -> None:
    for number in range(20):
        await world.put(str(number))
    for _ in range(10):
        await world.get(seconds=30)
        world.advance(3)
    world.restart(1)
    world.advance(-3600)
    await world.put("late")
    world.advance(3600 + 60)
    assert sorted(await world.texts(32)) == sorted([*map(str, range(20)), "late"])
    assert await world.count() == 21


@pytest.mark.parametrize("step", [-3600, 3600])
async def test_after_a_step_over_a_restart_a_late_holder_is_rejected(world: World, step: int) -> None:
    await world.put()
    [late] = await world.get(seconds=30)
    world.restart(1)
    world.advance(step)
    world.advance(max(0, 30 - step) - 0.1)
    assert len(await world.get()) == (step > 0)
    world.advance(0.1)
    await world.get()
    assert not await world.delete(late)
    assert await world.messages.update(world.queue, late.id, receipt(late), 0, None) is None
    assert await world.count() == 1


async def test_a_restart_begins_behind_the_messages_that_were_taken() -> None:
    async with opened() as world:
        for number in range(3 * ROWS_MAX):
            await world.put(str(number))
            world.advance(0.1)
        for _ in range(3 * ROWS_MAX - 10):
            [message] = await world.get()
            assert await world.delete(message)
            world.advance(0.1)
        state = await world.process()._known(world.queue).shards[0].state()
        assert START + ROWS_MAX * TICKS_PER_SECOND // 10 <= state.floor <= state.barrier <= world.now
        assert state.messages == 10


async def test_a_process_whose_clock_is_behind_is_not_overlooked(shared: World) -> None:
    world = shared
    behind = Messages(world.engine, lambda: world.now - 100 * TICKS_PER_SECOND, Random(9))
    for _ in range(5):
        assert await world.get() == []
        await behind.put(world.queue, b"late", 0, None)
        assert await world.texts() == ["late"]
        world.advance(5)
    assert len(await behind.get(world.queue, 32, 30)) <= 5


async def test_messages_of_a_dropped_queue(world: World) -> None:
    put = await world.put()
    await world.engine.drop(world.queue.space)
    with pytest.raises(SpaceDroppedError):
        await world.put()
    assert await world.get() == []
    assert not await world.delete(put)


async def test_a_get_returns_what_it_claimed_before_a_clear(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = shared
    await world.put()
    claim = world.messages._claim

    async def then_clear(queue: Queue, taken: Sequence[Message], seconds: int) -> list[Message]:
        claimed = await claim(queue, taken, seconds)
        await asyncio.gather(*(close_shard(world.engine, queue.space, each) for each in range(queue.shards)))
        return claimed

    monkeypatch.setattr(world.messages, "_claim", then_clear)
    assert await world.texts(2) == ["a"]
    with pytest.raises(SpaceDroppedError):
        await world.put()


async def test_a_get_during_a_clear_returns_the_messages_of_open_shards() -> None:
    async with opened(3) as world:
        put = [await world.put() for _ in range(32)]
        ahead = world.messages._known(world.queue).ahead
        ahead.release(await ahead.take(0))
        await close_shard(world.engine, world.queue.space, 1)
        got = await world.get(32)
        assert {each.id for each in got} == {each.id for each in put if int(each.id, 16) % 3 != 1}
        await asyncio.gather(*(close_shard(world.engine, world.queue.space, each) for each in (0, 2)))
        world.restart()
        with pytest.raises(SpaceDroppedError):
            await world.get()


@pytest.mark.parametrize("applied", [True, False])
async def test_a_get_with_a_claim_of_unknown_outcome_fails(*, applied: bool) -> None:
    async with opened(3) as world:
        for _ in range(32):
            await world.put()
        engine = CountingEngine(world.engine)
        messages = Messages(engine, lambda: world.now, Random(0))
        engine.fail_at, engine.applied = 2, applied
        with pytest.raises(EngineUnavailableError):
            await messages.get(world.queue, 32, 30)


async def test_idle_queues_are_forgotten(world: World) -> None:
    for number in range(QUEUES_MAX + 10):
        world.messages._known(Queue("q", number, 1))
    assert len(world.messages._queues) <= QUEUES_MAX
