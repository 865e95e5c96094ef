"""Queues through two workers: one look-ahead at the primary, so that consumers of both are never handed one message."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from uuid import uuid4

import pytest

from lazulite.app.registry import CODEC, SPACES
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.engine.commit import Commit
from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock
from lazulite.queue.call import Context
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import Messages
from lazulite.queue.model.expirations import SLOT_TICKS
from lazulite.queue.model.message import Receipt
from lazulite.queue.service import QUEUE, QueueService
from lazulite.service.definition import ServiceDependencies
from tests.engine.remote.over_channel import join

from .world import START, receipt

MESSAGES = 200

T = TypeVar("T")


@dataclass
class Workers:
    """A primary with two workers.

    Attributes:
        now: the time of the primary, in ticks.
    """

    primary: Context
    server: EngineServer
    contexts: list[Context]
    remotes: list[RemoteEngine]
    now: int = START


@asynccontextmanager
async def two_workers() -> AsyncIterator[Workers]:
    """Yield them; the workers' own clocks are a day off, and nothing shows it."""
    engine = RocksEngine.open(None, lambda: START)
    directory, times = AccountDirectory({}), list[Workers]()
    primary = QUEUE.make_context(ServiceDependencies(engine=engine, accounts=directory, clock=lambda: times[0].now))
    server = EngineServer(engine, CODEC, SPACES.watched, _complain, procedures=primary.procedures())
    workers = Workers(primary, server, [], [])
    times.append(workers)
    for day in (-1, 1):
        remote = RemoteEngine(CODEC, system_clock)
        clock = START + day * 86400 * TICKS_PER_SECOND
        service = QueueService(
            ServiceDependencies(engine=remote, accounts=directory, clock=lambda clock=clock: clock, primary=remote)  # type: ignore[misc]  # of a default
        )
        remote.invalidations = {space: [cache] for space, cache in service.invalidations.items()}
        await join(remote.channel, workers.server.open_channel(lambda: None))
        workers.contexts.append(service._context)
        workers.remotes.append(remote)
    try:
        yield workers
    finally:
        for remote in workers.remotes:
            await remote.close()
        await workers.server.close()
        await engine.close()


def _complain(text: str) -> None:
    raise AssertionError(text)


async def test_consumers_of_two_workers_get_each_message_once_and_no_claim_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with two_workers() as workers:
        one, other = workers.contexts
        await one.catalog.create("a", "jobs", ())
        queue = await other.catalog.require("a", "jobs")
        for number in range(MESSAGES):
            await workers.contexts[number % 2].messages.put(queue, b"%d" % number, 0, None)
        commits = 0
        commit = RocksEngine.commit

        async def counted(self: RocksEngine, space: int, partition: str, made: Commit[T]) -> T:
            nonlocal commits
            commits += space == queue.space
            return await commit(self, space, partition, made)

        monkeypatch.setattr(RocksEngine, "commit", counted)
        got: list[bytes] = []

        async def consume(context: Context) -> None:
            while found := await context.messages.get(queue, 1, 30):
                got.append(found[0].text)

        await asyncio.gather(*(consume(workers.contexts[number % 2]) for number in range(16)))
        assert sorted(map(int, got)) == list(range(MESSAGES))
        assert commits == MESSAGES, "a claim was rejected"


async def test_all_operations_through_workers() -> None:
    async with two_workers() as workers:
        one, other = (context.messages for context in workers.contexts)
        assert not isinstance(one, Messages)
        await workers.contexts[0].catalog.create("a", "jobs", ())
        queue = await workers.contexts[0].catalog.require("a", "jobs")
        put = await one.put(queue, "ü".encode(), 0, 60)
        assert (put.inserted, put.expires) == (START, START + 60 * TICKS_PER_SECOND), "the time is the primary's"
        assert put.text == b"", "the primary does not send the text back"
        assert await other.peek(queue, 5) == [put._replace(text="ü".encode())]
        assert await other.count(queue) == 1
        [got] = await other.get(queue, 1, 30)
        assert (got.id, got.dequeues) == (put.id, 1)
        assert await one.get(queue, 1, 30) == []
        updated = await one.update(queue, got.id, receipt(got), 0, b"b")
        assert updated is not None
        assert updated.text == b"b"
        assert await other.update(queue, got.id, receipt(got), 0, None) is None
        assert not await other.delete(queue, uuid4().hex, Receipt(1, 1))
        assert await other.delete(queue, got.id, receipt(updated))
        assert await one.count(queue) == 0


async def test_puts_of_one_moment_are_one_commit_and_each_has_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_workers() as workers:
        one, other = workers.contexts
        await one.catalog.create("a", "jobs", ())
        queue = await one.catalog.require("a", "jobs")
        spaces: list[int] = []
        commit = RocksEngine.commit

        async def noted(self: RocksEngine, space: int, partition: str, made: Commit[T]) -> T:
            spaces.append(space)
            return await commit(self, space, partition, made)

        monkeypatch.setattr(RocksEngine, "commit", noted)
        asked = [(b"%d" % number, number % 3, 60 + number) for number in range(20)]
        puts = await asyncio.gather(*(one.messages.put(queue, *each) for each in asked))
        # The first one was rejected, as the shard had to be scheduled.
        assert spaces.count(queue.space) == 2
        for put, (_, delay, ttl) in zip(puts, asked, strict=True):
            assert (put.visible, put.expires) == (START + delay * TICKS_PER_SECOND, START + ttl * TICKS_PER_SECOND)
        assert len({put.id for put in puts}) == len(asked)
        assert await other.messages.count(queue) == len(asked)
        workers.now += 2 * TICKS_PER_SECOND
        texts = {message.id: message.text for message in await other.messages.get(queue, 32, 30)}
        assert [texts[put.id] for put in puts] == [text for text, _, _ in asked]


async def test_an_expired_message_is_removed_by_the_primary() -> None:
    async with two_workers() as workers:
        one, _ = workers.contexts
        await one.catalog.create("a", "jobs", ())
        queue = await one.catalog.require("a", "jobs")
        await one.messages.put(queue, b"a", 0, 1)
        workers.now += SLOT_TICKS + TICKS_PER_SECOND
        assert await one.messages.count(queue) == 1
        await workers.primary.maintain()
        assert await one.messages.count(queue) == 0


async def test_a_queue_that_one_worker_deletes_is_gone_for_the_other() -> None:
    async with two_workers() as workers:
        one, other = workers.contexts
        await one.catalog.create("a", "jobs", ())
        queue = await other.catalog.require("a", "jobs")
        await one.catalog.delete("a", "jobs")
        assert await other.catalog.get("a", "jobs") is None
        with pytest.raises(SpaceDroppedError):
            await other.messages.put(queue, b"a", 0, None)


async def test_without_the_primary_calls_fail() -> None:
    async with two_workers() as workers:
        [one, _] = workers.contexts
        assert await one.messages.count(Queue("jobs", 2000, 1)) == 0
        await workers.server.close()
        with pytest.raises(EngineUnavailableError):
            await one.messages.put(Queue("jobs", 2000, 1), b"a", 0, None)
