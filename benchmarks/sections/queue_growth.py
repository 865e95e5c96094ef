"""Queues with more and more messages in them, or in front of them; filled through the engine's commits.

At each stage, a server of the queue and one of an empty queue take turns.
"""

import asyncio
import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

from benchmarks.bench import Bench, Contender
from benchmarks.cycles import QUEUE, TEXT_BYTES, Queues
from benchmarks.exchange import exchange
from benchmarks.processes import Server
from benchmarks.sections.big import check_space, settle
from benchmarks.sections.queue import started
from benchmarks.signing import ACCOUNT
from benchmarks.subjects import EMPTY, LAZULITE
from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock
from lazulite.queue.catalog import Catalog
from lazulite.queue.model.expirations import Expirations
from lazulite.queue.model.message import Message
from lazulite.queue.model.moves import Move
from lazulite.queue.model.shard import Shard
from lazulite.settings.config import store_path

DISK_BYTES_PER_MESSAGE = 4 * TEXT_BYTES
COMMIT_MESSAGES = 1000
_NOISE = Random(2).randbytes(1 << 19).hex().encode()
_HELD_SECONDS, _WEEK_SECONDS = 6 * 86_400, 7 * 86_400


class _Stage(NamedTuple):
    """What a queue gets before it is measured."""

    name: str
    entities: int
    """So many messages it has then, or had."""
    added: int = 0
    expired: bool = False
    """Those that were added have expired, and a sweep begins."""
    held: bool = False
    """Those that were added are claimed."""
    emptied: bool = False
    """All are deleted."""


def run(bench: Bench) -> None:
    """Measure a queue of more and more messages, at last after all were deleted; and others behind unusable ones."""
    most = bench.plan.messages
    few, many = most // 1000, most // 10
    check_space(bench, 2 * most * DISK_BYTES_PER_MESSAGE, "--messages")
    growing = [
        _Stage("few", few, few),
        _Stage("many", many, many - few),
        _Stage("most", most, most - many),
        _Stage("deleted", most, emptied=True),
    ]
    others = [_Stage("held", many, many, held=True)], [_Stage("expired", many, many, expired=True)]
    with ExitStack() as stack:
        empty = started(bench, stack, LAZULITE, Queues)
        for stages in (growing, *others):
            with tempfile.TemporaryDirectory(prefix="queue-", dir=bench.location) as temporary:
                for stage in stages:
                    _measure(bench, Path(temporary), stage, *empty)


def _measure(bench: Bench, location: Path, stage: _Stage, empty: Server, its_queues: Queues) -> None:
    bench.say(f"{stage.name}: {stage.entities:,} messages")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # Its memory ends with it.
        pool.submit(_prepare, location, stage).result()
    with ExitStack() as stack:
        server, queues = started(bench, stack, LAZULITE, Queues, location)
        if not stage.expired:
            settle(bench, server)
        queues.entities = stage.entities
        exchange(empty.port, its_queues.clear()).must("clearing the queue", 204)
        both = (LAZULITE, server, queues), (EMPTY, empty, its_queues)
        puts = [Contender(subject, its, of.put(variant=stage.name)) for subject, its, of in both]
        cycles = [Contender(subject, its, *of.cycle(variant=stage.name)) for subject, its, of in both]
        for contenders in (puts, cycles):
            bench.compare(contenders, with_baseline=False)


def _prepare(location: Path, stage: _Stage) -> None:
    asyncio.run(_change(location, stage))


async def _change(location: Path, stage: _Stage) -> None:
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        catalog = Catalog(engine)
        await catalog.create(ACCOUNT, QUEUE, ())
        queue = await catalog.require(ACCOUNT, QUEUE)
        for number in range(queue.shards):
            await _change_shard(engine, queue.space, number, stage)
    finally:
        await engine.close()


async def _change_shard(engine: Engine, space: int, number: int, stage: _Stage) -> None:
    shard = Shard(engine, space, number, system_clock, Expirations(engine, Random(1)), alone=True)
    await shard.know()
    for added in _messages(shard, stage):
        await shard.commit([Move(None, message) for message in added])
        if stage.held:
            held_until = shard.present() + _HELD_SECONDS * TICKS_PER_SECOND
            await shard.commit([Move(message.place, message.claimed(held_until)) for message in added])
    while stage.emptied and (head := await shard.claimable(COMMIT_MESSAGES, 1 << 30, least=COMMIT_MESSAGES)).messages:
        await shard.commit([Move(message.place, None) for message in head.messages])


def _messages(shard: Shard, stage: _Stage) -> Iterator[list[Message]]:
    """Yield new messages, as many as one commit adds. Their texts do not compress together."""
    random = Random(stage.name)
    for begin in range(0, stage.added, COMMIT_MESSAGES):
        now = shard.present()
        expires = now + (1 if stage.expired else _WEEK_SECONDS) * TICKS_PER_SECOND
        starts = [random.randrange(len(_NOISE) - TEXT_BYTES) for _ in range(min(COMMIT_MESSAGES, stage.added - begin))]
        yield [
            Message(UUID(int=random.getrandbits(128)), now, expires, now, _NOISE[start : start + TEXT_BYTES])
            for start in starts
        ]
