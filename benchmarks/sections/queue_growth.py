"""Queues with more and more messages in them, or in front of them; filled through the engine's commits.

At each stage, a server of the queue and one of an empty queue take turns.
"""

import asyncio
import multiprocessing
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

from benchmarks.bench import Bench, Stage
from benchmarks.cycles import QUEUE, TEXT_BYTES, Queues
from benchmarks.requests import ACCOUNT
from benchmarks.sections.big import check_space, settle
from benchmarks.subjects import EMPTY, LAZULITE
from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock
from lazulite.queue.catalog import Catalog
from lazulite.queue.model.expirations import Expirations
from lazulite.queue.model.message import Message, id_of
from lazulite.queue.model.moves import Move
from lazulite.queue.model.shard import Shard
from lazulite.settings.config import store_path

T = TypeVar("T")

DISK_BYTES_PER_MESSAGE = 2 * TEXT_BYTES
COMMIT_MESSAGES = 1000
_NOISE = Random(2).randbytes(1 << 19).hex().encode()
HELD, EXPIRED, DELETED = "held", "expired", "deleted"
_HELD_SECONDS, _WEEK_SECONDS = 6 * 86_400, 7 * 86_400


class _Part(NamedTuple):
    """The messages that a queue gets before it is measured. The name tells what becomes of them: `HELD` and others."""

    name: str
    entities: int  # so many messages it has then, or had
    added: int = 0


def run(bench: Bench) -> None:
    """Measure a queue of more and more messages, at last after all were deleted; and others behind unusable ones."""
    most = bench.plan.messages
    few, many = most // 1000, most // 10
    check_space(bench, most * DISK_BYTES_PER_MESSAGE, "--messages")
    growing = _Part("few", few, few), _Part("many", many, many - few), _Part("most", most, most - many)
    with bench.stage(LAZULITE, Queues) as empty:
        for parts in ((*growing, _Part(DELETED, most)), (_Part(HELD, many, many),), (_Part(EXPIRED, many, many),)):
            with tempfile.TemporaryDirectory(prefix="queue-", dir=bench.location) as temporary:
                for part in parts:
                    _measure(bench, Path(temporary), part, empty._replace(subject=EMPTY))


def _measure(bench: Bench, location: Path, part: _Part, empty: Stage[Queues]) -> None:
    bench.say(f"{part.name}: {part.entities:,} messages")
    fill(location, _change, part)
    with bench.stage(LAZULITE, Queues, part.entities, place=location) as stage:
        if part.name != EXPIRED:
            settle(bench, stage.server)
        empty.must(empty.build.clear(), 204)
        for workload in (Queues.put, Queues.cycle):
            contenders = [each.asked(workload, variant=part.name) for each in (stage, empty)]
            bench.compare(contenders, with_baseline=False)


def fill(location: Path, change: Callable[[Engine, T], Awaitable[None]], argument: T) -> None:
    """Change the store at a location in a process of its own, whose memory ends with it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(_fill, location, change, argument).result()


def _fill(location: Path, change: Callable[[Engine, T], Awaitable[None]], argument: T) -> None:
    async def run() -> None:
        engine = RocksEngine.open(store_path(location), system_clock)
        try:
            await change(engine, argument)
        finally:
            await engine.close()

    asyncio.run(run())


async def _change(engine: Engine, part: _Part) -> None:
    catalog = Catalog(engine)
    await catalog.create(ACCOUNT, QUEUE, ())
    queue = await catalog.require(ACCOUNT, QUEUE)
    for number in range(queue.shards):
        shard = Shard(engine, queue.space, number, system_clock, Expirations(engine, Random(1)), alone=True)
        await shard.know()
        for added in _messages(shard, part):
            await shard.commit([Move(None, message) for message in added])
            if part.name == HELD:
                until = shard.present() + _HELD_SECONDS * TICKS_PER_SECOND
                await shard.commit([Move(message.place, message.claimed(until)) for message in added])
        if part.name == DELETED:
            while (head := await shard.claimable(COMMIT_MESSAGES, 1 << 30, least=COMMIT_MESSAGES)).messages:
                await shard.commit([Move(message.place, None) for message in head.messages])


def _messages(shard: Shard, part: _Part) -> Iterator[list[Message]]:
    """Yield new messages, as many as one commit adds. Their texts do not compress together."""
    random = Random(part.name)
    for begin in range(0, part.added, COMMIT_MESSAGES):
        now = shard.present()
        expires = now + (1 if part.name == EXPIRED else _WEEK_SECONDS) * TICKS_PER_SECOND
        starts = [random.randrange(len(_NOISE) - TEXT_BYTES) for _ in range(min(COMMIT_MESSAGES, part.added - begin))]
        ids = [id_of(random.getrandbits(128)) for _ in starts]
        texts = [_NOISE[start : start + TEXT_BYTES] for start in starts]
        yield [Message(each, now, expires, now, text) for each, text in zip(ids, texts, strict=True)]
