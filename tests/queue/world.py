"""Queues on a store in memory, with a clock that tests set.

With `LAZULITE_TEST_ENGINE=postgres` they are in a database. There no process can know that it makes all commits, and
the failpoints of RocksDB do not exist: tests that need either are skipped.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from lazulite.engine.contract import Clock, Engine
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.database import Failpoints
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.catalog import Queue
from lazulite.queue.lookahead import Homes, everywhere
from lazulite.queue.messages import Messages
from lazulite.queue.model.message import Message, Receipt
from tests.postgres.engine_under_test import on_database
from tests.postgres.server import empty_database

START = 133_000_000_000_000_000
TTL = 7 * 24 * 3600


class World:
    """A queue.

    Attributes:
        now: the time in ticks.
        messages: the queues of a process.
    """

    def __init__(self, engine: Engine, shards: int, *, alone: bool = False) -> None:
        self.engine = engine
        self.alone = alone
        self.queue = Queue("jobs", 2000, shards)
        self.now = START
        self.restart()

    def process(self, seed: int = 0, *, alone: bool = False, homes: Homes = everywhere) -> Messages:
        """Return the queues of another process on the same store."""
        return Messages(self.engine, lambda: self.now, Random(seed), alone=alone, homes=homes)

    def restart(self, seed: int = 0) -> None:
        """Replace the process, which forgets what it knows."""
        self.messages = self.process(seed, alone=self.alone)

    def advance(self, seconds: float) -> None:
        """Set the clock ahead."""
        self.now += int(seconds * TICKS_PER_SECOND)

    async def put(self, text: str = "a", delay: int = 0, ttl: int | None = TTL) -> Message:
        """Put a message."""
        return await self.messages.put(self.queue, text.encode(), delay, ttl)

    async def get(self, count: int = 1, seconds: int = 30) -> list[Message]:
        """Get messages."""
        return await self.messages.get(self.queue, count, seconds)

    async def texts(self, count: int = 1) -> list[str]:
        """Get messages; return their texts."""
        return [message.text.decode() for message in await self.get(count)]

    async def delete(self, message: Message) -> bool:
        """Delete a message."""
        return await self.messages.delete(self.queue, message.id, receipt(message))

    async def count(self) -> int:
        """Return the approximate number of messages."""
        return await self.messages.count(self.queue)


def receipt(message: Message) -> Receipt:
    """Return the pop receipt of a message."""
    return Receipt(message.visible, message.changes)


def _engine(clock: Clock, failpoints: Failpoints | None, *, alone: bool) -> RocksEngine | PostgresEngine:
    if not on_database():
        return RocksEngine.open(None, clock, failpoints=failpoints)
    if failpoints or alone:
        pytest.skip("a store of one process")
    return PostgresEngine(PostgresSettings(dsn=empty_database()), clock)


@asynccontextmanager
async def opened(shards: int = 1, *, alone: bool = False, failpoints: Failpoints | None = None) -> AsyncIterator[World]:
    """Yield a world."""
    now = [START]
    engine = _engine(lambda: now[0], failpoints, alone=alone)
    try:
        yield World(engine, shards, alone=alone)
    finally:
        await engine.close()
