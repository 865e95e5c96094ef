"""The order in which messages of several shards are peeked and got."""

from random import Random

import pytest

from .engines import CountingEngine
from .world import World, opened

SHARDS = 16


async def filled(world: World, count: int, size: int = 0) -> list[str]:
    """Put messages, a millisecond apart; return their texts."""
    texts = [f"{number:{size}}" for number in range(count)]
    for text in texts:
        await world.put(text)
        world.advance(0.001)
    return texts


@pytest.mark.parametrize("homes", [range(SHARDS), range(5)])
async def test_a_process_gets_its_messages_in_order(homes: range) -> None:
    async with opened(SHARDS) as world:
        world.messages = world.process(homes=lambda _: homes)
        texts = await filled(world, 700)
        sizes = Random(1)
        got: list[str] = []
        while len(got) < len(texts):
            asked = min(sizes.choice([1, 2, 7, 32]), len(texts) - len(got))
            some = await world.texts(asked)
            assert len(some) == asked
            got += some
        assert got == texts
        assert await world.texts() == []


async def test_messages_come_in_order_however_the_shards_are_filled() -> None:
    async with opened(4) as world:
        shards = [world.process(number, homes=lambda _, number=number: [number]) for number in range(4)]  # type: ignore[misc]
        texts = [str(number) for number in range(300)]
        for number, text in enumerate(texts):
            await shards[3 if number < 200 else number % 3].put(world.queue, text.encode(), 0, None)
            world.advance(0.001)
        got: list[str] = []
        while some := await world.texts(8):
            got += some
        assert got == texts


async def test_large_messages_come_in_order() -> None:
    async with opened(SHARDS) as world:
        texts = await filled(world, 60, 50_000)
        assert [await world.texts(20) for _ in range(3)] == [texts[:20], texts[20:40], texts[40:]]


async def test_a_peek_shows_what_a_get_returns() -> None:
    async with opened(SHARDS) as world:
        texts = await filled(world, 100)
        for start in range(0, 96, 32):
            peeked = await world.messages.peek(world.queue, 32)
            assert [message.text.decode() for message in peeked] == texts[start : start + 32]
            assert [message.id for message in await world.get(32)] == [message.id for message in peeked]


async def test_messages_that_others_hold_or_that_have_expired_are_passed() -> None:
    async with opened(SHARDS) as world:
        for number in range(1500):
            await world.put(str(number), ttl=5 if number % 50 else None)
            world.advance(0.0001)
        world.advance(10)
        assert await world.texts(20) == [str(number) for number in range(0, 1000, 50)]


@pytest.mark.parametrize("messages", [0, 40])
async def test_a_get_reads_each_shard_once(messages: int) -> None:
    async with opened(SHARDS) as world:
        world.engine = engine = CountingEngine(world.engine)
        world.restart()
        await filled(world, 40)
        await world.get(32)
        await world.get(8)
        await filled(world, messages)
        engine.calls.clear()
        assert len(await world.get(1)) == min(messages, 1)
        assert engine.calls["scan"] == SHARDS
        assert engine.calls["get"] == (0 if messages else 1)
