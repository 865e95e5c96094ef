"""Reading ahead: no consumer is notified of an empty queue by a read that began before the consumer came."""

import asyncio
import signal
from collections.abc import Container, Iterator
from typing import cast

import pytest

from lazulite.protocol.clock import LAST_TICK
from lazulite.queue.lookahead import LookAhead
from lazulite.queue.model.message import Message, MessageId, id_of
from lazulite.queue.model.shard import Head, Shard

MESSAGE = Message(id_of(1), 1, 9, 1, b"a")


class SlowShard:
    """A shard whose reads end when a test lets them, with what was there when they began."""

    def __init__(self) -> None:
        self.rows: list[Message] = []
        self.reads: list[asyncio.Future[None]] = []

    async def claimable(self, rows_max: int, bytes_max: int, skip: Container[MessageId]) -> Head:
        found = [message for message in self.rows if message.id not in skip]
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.reads.append(end)
        await end
        return Head(found, LAST_TICK)


@pytest.fixture
def no_spin() -> Iterator[None]:
    """Break off a loop that never lets the event loop run, which no timeout of asyncio ends."""

    def end(*_: object) -> None:
        raise AssertionError("a consumer waits without letting the event loop run")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_read_that_began_before_does_not_tell_that_there_is_none() -> None:
    shard = SlowShard()
    ahead = LookAhead([cast("Shard", shard)])
    first = asyncio.create_task(ahead.take(1))
    await settle()
    shard.rows.append(MESSAGE)
    second = asyncio.create_task(ahead.take(1))
    await settle()
    shard.reads[0].set_result(None)
    await settle()
    assert await first == []
    assert len(shard.reads) == 2
    shard.reads[1].set_result(None)
    assert await second == [MESSAGE]
    assert not ahead.is_idle
    ahead.release([MESSAGE])
    assert ahead.is_idle


async def test_a_failed_read_fails_its_consumers_only() -> None:
    shard = SlowShard()
    ahead = LookAhead([cast("Shard", shard)])
    both = [asyncio.create_task(ahead.take(1)) for _ in range(2)]
    await settle()
    shard.reads[0].set_exception(OSError("broken"))
    for each in both:
        with pytest.raises(OSError, match="broken"):
            await each
    shard.rows.append(MESSAGE)
    third = asyncio.create_task(ahead.take(1))
    await settle()
    shard.reads[1].set_result(None)
    assert await third == [MESSAGE]


async def test_a_consumer_that_goes_leaves_the_read_to_the_others() -> None:
    shard = SlowShard()
    shard.rows.append(MESSAGE)
    ahead = LookAhead([cast("Shard", shard)])
    gone, other = (asyncio.create_task(ahead.take(1)) for _ in range(2))
    await settle()
    gone.cancel()
    await settle()
    shard.reads[0].set_result(None)
    assert await other == [MESSAGE]


@pytest.mark.usefixtures("no_spin")
async def test_a_consumer_may_come_between_the_end_of_a_read_and_its_callbacks() -> None:
    shard = SlowShard()
    ahead = LookAhead([cast("Shard", shard)])
    shard.rows.append(MESSAGE)
    first = asyncio.create_task(ahead.take(1))
    await settle()
    shard.reads[0].set_result(None)  # The read ends in the next step; then these two take the one message it found.
    second, third = (asyncio.create_task(ahead.take(1)) for _ in range(2))
    await settle()
    assert second.result() == [MESSAGE]
    for read in shard.reads[1:]:
        read.set_result(None)
    assert await third == []
    assert await first == []
