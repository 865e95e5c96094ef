"""Sweeps: what is due is removed without a reader, whatever fails in between, and what is not due costs nothing."""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import SWEPT_MAX
from lazulite.queue.model.expirations import LEASE_TICKS, SLOT_TICKS

from .engines import CountingEngine
from .world import World, opened

SLOT = SLOT_TICKS // TICKS_PER_SECOND
LEASE = LEASE_TICKS // TICKS_PER_SECOND


def counting_before_commits(world: World) -> tuple[CountingEngine, list[int]]:
    """Restart on an engine that counts its calls; return it, and the approximate counts before its commits."""
    world.engine = counting = CountingEngine(world.engine)
    world.restart()
    counts = list[int]()

    async def count() -> None:
        counts.append(await world.count())

    counting.before_commit = count
    return counting, counts


async def test_what_is_not_due_costs_one_scan_for_all_queues() -> None:
    async with opened(shards=3) as world:
        world.engine = counting = CountingEngine(world.engine)
        world.restart()
        for number in range(20):
            for _ in range(10):
                await world.messages.put(Queue("q", 2000 + number, 3), b"a", 0, 600)
        puts = counting.calls["commit"]
        assert puts < 20 * 10 + 2 * 20 * 3 + 1  # A put again and a schedule for the first message of each shard.
        counting.calls.clear()
        world.advance(500)
        assert await world.messages.remove_expired() == 0
        assert counting.calls == {"scan": 1}
        world.advance(100 + SLOT)
        assert await world.messages.remove_expired() == 200
        counting.calls.clear()
        assert await world.messages.remove_expired() == 0
        assert counting.calls == {"scan": 1}


async def test_the_next_expiration_is_scheduled_after_a_sweep() -> None:
    async with opened() as world:
        for ttl in (5, 100, 5000, None):
            await world.put(ttl=ttl)
        for seconds, left in ((SLOT, 3), (100, 2), (1000, 2), (4000, 1), (10**6, 1)):
            world.advance(seconds)
            await world.messages.remove_expired()
            assert await world.count() == left


async def test_a_shard_is_swept_in_turns() -> None:
    async with opened() as world:
        many = Queue("many", 3000, 1)
        await world.put(ttl=5)
        for _ in range(0, SWEPT_MAX + 300, 100):
            await asyncio.gather(*(world.messages.put(many, b"a", 0, 4) for _ in range(100)))
        world.advance(SLOT + 5)
        assert await world.messages.remove_expired() > SWEPT_MAX
        assert await world.count() == await world.messages.count(many) == 0


async def test_the_count_leaves_out_what_a_sweep_has_still_to_remove() -> None:
    async with opened() as world:
        expiring = SWEPT_MAX + 300
        for _ in range(0, expiring, 100):
            await asyncio.gather(*(world.put(ttl=5) for _ in range(100)))
        await world.put()
        counting, counts = counting_before_commits(world)
        world.advance(SLOT + 5)
        removed = await world.messages.remove_expired()
        assert removed == -(-expiring // 100) * 100
        begun = counts.index(1)
        assert begun < 4, "the lease, the begin of the sweep, and its first commit"
        assert set(counts[:begun]) == {removed + 1}
        assert len(counts) > removed // 64
        assert set(counts[begun:]) == {1}
        counting.before_commit = None
        assert counting.calls["scan"] < len(counts) + 10, "the messages are counted once"


async def test_all_backlogs_are_counted_before_one_of_them_is_removed() -> None:
    async with opened(4) as world:
        for _ in range(12):
            await asyncio.gather(*(world.put(ttl=5) for _ in range(100)))
        _, counts = counting_before_commits(world)
        world.advance(SLOT + 5)
        assert await world.messages.remove_expired() == 1200
        assert counts.index(0) <= 4 * 4, "of each shard, at most its lease, its begin, 64 messages, and its next time"


@pytest.mark.parametrize("fail_at", [3, 5])
async def test_the_count_of_a_sweep_that_failed_is_forgotten(fail_at: int) -> None:
    async with opened() as world:
        for _ in range(300):
            await world.put(ttl=5)
        inner, world.engine = world.engine, CountingEngine(world.engine)
        world.engine.fail_at = fail_at
        world.restart()
        world.advance(SLOT + 5)
        assert await world.count() == 300
        with pytest.raises(EngineUnavailableError):
            await world.messages.remove_expired()
        left = await world.count()
        assert left > 0
        world.advance(LEASE + 1)
        world.engine = inner
        assert await world.process(1).remove_expired() == left
        assert await world.count() == 0


async def test_of_two_processes_one_sweeps_a_shard() -> None:
    async with opened() as world:
        for _ in range(600):
            await world.put(ttl=5)
        world.advance(SLOT + 5)
        removed = await asyncio.gather(*(world.process(seed).remove_expired() for seed in range(2)))
        assert sorted(removed) == [0, 600]
        assert await world.count() == 0


async def test_a_dropped_queue_is_not_made_anew_by_a_sweep() -> None:
    async with opened() as world:
        await world.put(ttl=5)
        await world.engine.commit(2000, "00", changing(["s"], lambda _, __: {"s": None}))  # As reclaiming does.
        world.advance(SLOT + 5)
        assert await world.messages.remove_expired() == 0
        assert await world.engine.get(2000, "00", "s") is None


async def put_and_sweep(world: World) -> None:
    for ttl in (3, 40, 2, None):
        with suppress(EngineUnavailableError):
            await world.put(ttl=ttl)
    world.advance(SLOT + 5)
    await world.messages.remove_expired()


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("fail_at", range(1, 20))
async def test_after_a_failure_at_any_commit_all_that_expires_is_removed(fail_at: int, applied: bool) -> None:
    async with opened() as world:
        inner, world.engine = world.engine, CountingEngine(world.engine)
        world.engine.fail_at, world.engine.applied = fail_at, applied
        world.restart()
        with suppress(EngineUnavailableError):
            await put_and_sweep(world)
        world.engine = inner
        world.restart(1)
        world.advance(LEASE + 1)
        await world.messages.remove_expired()
        for _ in range(2):
            world.advance(60)
            await world.messages.remove_expired()
        never = {message.id for message in await world.messages.peek(world.queue, 32)}
        assert len(never) <= 1
        assert await world.count() == len(never)
        await world.put(ttl=5)
        world.advance(SLOT + 5)
        assert await world.messages.remove_expired() == 1


async def test_puts_beside_sweeps_of_two_processes_are_all_removed() -> None:
    async with opened() as world:
        random = Random(5)
        for _ in range(30):
            processes = [world.process(random.randrange(1000)) for _ in range(2)]
            await asyncio.gather(
                *(process.remove_expired() for process in processes),
                *(processes[0].put(world.queue, b"a", 0, random.choice((1, 2, 20, 50))) for _ in range(5)),
                *(processes[1].put(world.queue, b"a", 0, random.choice((1, 2, 20, 50))) for _ in range(5)),
            )
            world.advance(random.choice((1, 7, 16)))
        world.advance(100 + LEASE)
        await world.messages.remove_expired()
        assert await world.count() == 0
