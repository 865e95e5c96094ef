"""The cost of a put and a get, as keys that RocksDB steps over: the same, whatever is in front in the queue."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from rocksdict import Options

from lazulite.engine.rocksdb import data_directory, options
from lazulite.queue.model.expirations import SLOT_TICKS
from tests.postgres.engine_under_test import on_database

from .world import World, opened

MANY = 2000
SKIPPED_MAX = 16
"""Keys that an operation may step over in a shard: the ones of commits at the same moment."""


@pytest.fixture(name="skipped")
def _skipped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return the number of keys that iterators have stepped over without returning them, since the last call."""
    if on_database():
        pytest.skip("the keys are those of RocksDB")
    made: list[Options] = []
    before = 0

    def counted(*arguments: object) -> Options:
        found = options.database_options(*arguments)  # type: ignore[arg-type]  # they are passed on
        found.enable_statistics()
        made.append(found)
        return found

    def skipped(names: str = "iter.skip") -> int:
        nonlocal before
        counts = re.findall(rf"rocksdb\.number\.(?:{names}) COUNT : (\d+)", made[-1].get_statistics() or "")
        difference, before = sum(map(int, counts)) - before, sum(map(int, counts))
        return difference

    monkeypatch.setattr(data_directory, "database_options", counted)
    return skipped


ALL = "iter.skip|db.next"
"""Keys that were stepped over, and rows that were read."""


@pytest.fixture(name="world", params=[(1, True), (1, False), (4, False)])
async def _world(request: pytest.FixtureRequest, skipped: Callable[[], int]) -> AsyncIterator[World]:
    shards, alone = request.param
    async with opened(shards, alone=alone) as world:
        yield world


async def put_many(world: World, count: int = MANY, ttl: int | None = None) -> None:
    for _ in range(0, count, 100):
        await asyncio.gather(*(world.put(ttl=ttl) for _ in range(100)))
        world.advance(0.01)


async def nothing(world: World) -> None:
    """An empty queue."""


async def visible(world: World) -> None:
    """Messages that can be got."""
    await put_many(world)


async def invisible(world: World) -> None:
    """Messages that others hold, in front."""
    await put_many(world)
    for _ in range(0, MANY, 32):
        await world.get(32, 3600)


async def expired(world: World) -> None:
    """Messages that have expired and were swept, in front."""
    await put_many(world, ttl=10)
    world.now += SLOT_TICKS + 10**8
    await world.messages.remove_expired()


async def not_swept(world: World) -> None:
    """Messages that have expired a moment ago, in front."""
    await put_many(world, ttl=10)
    world.now += 10**8


async def deleted(world: World) -> None:
    """Messages that were put and deleted, in front."""
    for _ in range(4):
        await put_many(world, MANY // 4)
        while got := await world.get(32, 10**6):
            await asyncio.gather(*map(world.delete, got))


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("before", [nothing, visible, invisible, expired, not_swept, deleted])
async def test_an_operation_steps_over_few_keys(
    world: World, skipped: Callable[[], int], before: Callable[[World], Awaitable[None]], restarted: bool
) -> None:
    await before(world)
    for _ in range(4 * world.queue.shards):  # Some of these gets pass what is in front; the barriers follow.
        await world.put()
        assert len(await world.get()) == 1
        world.advance(3)
    if restarted:
        world.restart(1)
        await world.put()
        assert len(await world.get()) == 1
    skipped()
    found: list[int] = []
    for _ in range(20):
        await world.put()
        assert len(await world.get()) == 1
        found.append(skipped())
        world.advance(3)
    assert max(found) <= SKIPPED_MAX * world.queue.shards, found


@pytest.fixture(name="alone")
async def _alone(skipped: Callable[..., int]) -> AsyncIterator[World]:
    async with opened(alone=True) as world:
        yield world


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_first_get_passes_no_expired_messages(
    alone: World, skipped: Callable[..., int], restarted: bool
) -> None:
    await put_many(alone, ttl=10)
    alone.advance(11)
    if restarted:
        alone.restart(1)
    skipped(ALL)
    lasting = await alone.put()
    assert [message.id for message in await alone.get()] == [lasting.id]
    assert skipped(ALL) <= SKIPPED_MAX


async def test_a_message_that_lasts_longer_leaves_expired_messages_below_the_floor(
    alone: World, skipped: Callable[..., int]
) -> None:
    await put_many(alone, ttl=10)
    alone.advance(9.5)
    await alone.put(ttl=10)  # Raises the barrier, and none has expired yet.
    alone.advance(1)
    skipped(ALL)
    await alone.put(ttl=3600)
    assert len(await alone.get(2)) == 2
    assert skipped(ALL) <= SKIPPED_MAX


async def test_the_first_message_of_an_empty_queue_sets_the_lifetime_anew(
    alone: World, skipped: Callable[..., int]
) -> None:
    await alone.put(ttl=None)
    [lasting] = await alone.get()
    await alone.delete(lasting)
    await put_many(alone, ttl=10)
    alone.advance(11)
    alone.restart(1)
    skipped(ALL)
    await alone.put()
    assert len(await alone.get()) == 1
    assert skipped(ALL) <= SKIPPED_MAX


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_first_get_after_maintenance_passes_no_tombstones(
    alone: World, skipped: Callable[..., int], restarted: bool
) -> None:
    await put_many(alone, ttl=None)
    while got := await alone.get(32, 20):
        await asyncio.gather(*map(alone.delete, got))
    for _ in range(20):
        alone.advance(5)
        await alone.messages.remove_expired()
    if restarted:
        alone.restart(1)
    skipped(ALL)
    await alone.put()
    assert len(await alone.get()) == 1
    assert skipped(ALL) <= SKIPPED_MAX


async def test_maintenance_of_a_queue_at_rest_commits_nothing(alone: World) -> None:
    await put_many(alone, 200)
    for message in await alone.get(32, 20):
        await alone.delete(message)
    for _ in range(10):
        alone.advance(30)
        await alone.messages.remove_expired()
    before = await alone.messages._known(alone.queue).shards[0].state()
    alone.advance(3600)
    await alone.messages.remove_expired()
    assert await alone.messages._known(alone.queue).shards[0].state() == before
