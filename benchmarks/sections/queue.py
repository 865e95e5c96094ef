"""Queues: beside Azurite, on PostgreSQL against `FOR UPDATE SKIP LOCKED`, and by what is in front in the queue.

Each round puts messages, and then gets and deletes as many as the time allows.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.postgres.server import PostgresServer

from benchmarks import pgbench
from benchmarks.bench import Bench, Contender
from benchmarks.cycles import QUEUE, TEXT_BYTES, Queues
from benchmarks.database import SETTINGS, Database, conditions
from benchmarks.exchange import exchange
from benchmarks.processes import Server
from benchmarks.sections.big import check_space
from benchmarks.sections.table import sync_seconds
from benchmarks.several import loading_all
from benchmarks.signing import ACCOUNT
from benchmarks.subjects import AZURITE, DISK, LAZULITE, PGBENCH, TWO, start
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.queue.catalog import Catalog
from lazulite.queue.messages import Messages
from lazulite.queue.model.receipt import Receipt
from lazulite.settings.config import store_path

ON_DATABASE = "PostgreSQL"
PGBENCH_CONNECTIONS = 16
CONSUMERS, NUMBERS_OF_CONSUMERS = "consumers", (1, 4, 16, 64)
DISK_BYTES_PER_MESSAGE = 4 * TEXT_BYTES
_ANNOUNCED_SECONDS = 6  # Until both processes know of each other.
_TOGETHER, _GOT, _HELD_SECONDS, _WEEK_SECONDS = 1024, 32, 6 * 86_400, 7 * 86_400


def run(bench: Bench) -> None:
    """Measure Lazulite and Azurite in turn, one put at a time, consumers by number, and two processes on PostgreSQL."""
    with ExitStack() as stack:
        subjects = [LAZULITE, AZURITE] if bench.plan.azurite else [LAZULITE]
        stages = [(subject, *_started(bench, stack, subject)) for subject in subjects]
        bench.compare([Contender(subject, server, queues.put()) for subject, server, queues in stages])
        [(_, server, queues), *others] = stages
        bench.compare([Contender(LAZULITE, server, *queues.cycle())], with_baseline=False)
        bench.compare([Contender(LAZULITE, server, queues.put(1))])
        put = Contender(LAZULITE, server, queues.put(variant=CONSUMERS))
        bench.compare([put] * len(NUMBERS_OF_CONSUMERS), with_baseline=False)
        cycles = [queues.cycle(number, CONSUMERS) for number in NUMBERS_OF_CONSUMERS]
        bench.compare([Contender(LAZULITE, server, *cycle) for cycle in cycles], with_baseline=False)
        for _ in range(bench.plan.rounds):
            bench.note("fdatasync", DISK, sync_seconds(bench.location))
        for subject, server, queues in others:  # Last, as it may stall: its gets slow down with the messages.
            bench.compare([Contender(subject, server, *queues.cycle())], with_baseline=False)
    if bench.plan.postgres:
        _on_postgres(bench)


def _started(bench: Bench, stack: ExitStack, subject: str, location: Path | None = None) -> tuple[Server, Queues]:
    """Start a subject with a queue."""
    location = location or Path(tempfile.mkdtemp(prefix=f"queue-{subject}-", dir=bench.location))
    server = stack.enter_context(start(subject, "--location", location, pin=bench.plan.pin, service="queue"))
    queues = Queues(server)
    reply = exchange(server.port, queues.create())
    if reply.status != 204:
        reply.must("creating the queue", 201)
    return server, queues


def _on_postgres(bench: Bench) -> None:
    bench.plan = replace(bench.plan, pin=False)
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer.make(bench.location.parent, **SETTINGS))
        bench.conditions += [f"section queue: {conditions(postgres)}", f"section queue: {pgbench.version()}"]
        database = Database(postgres)
        options = {"pin": False, "service": "queue", "LAZULITE_ENGINE": database.dsn}
        one, other = (stack.enter_context(start(LAZULITE, **options)) for _ in range(2))  # type: ignore[arg-type]
        queues, both = Queues(one), one._replace(peers=(other,))
        exchange(one.port, queues.create()).must("creating the queue", 201)
        database.create_queue(bench.plan.entities)
        time.sleep(_ANNOUNCED_SECONDS)
        put, (cycle, consume) = queues.put(variant=ON_DATABASE), queues.cycle(variant=ON_DATABASE)
        for workload, load, script in ((put, bench.plan.load, "queue_put"), (cycle, consume, "queue_cycle")):
            theirs = replace(workload, connections=PGBENCH_CONNECTIONS, requests=[])
            by_sql = pgbench.loading(database.dsn, script, {"value": "x" * TEXT_BYTES})
            contenders = [
                Contender(LAZULITE, one, workload, load),
                Contender(TWO, both, workload, loading_all(load, both)),
                Contender(PGBENCH, Server(0, 0), theirs, by_sql),
            ]
            bench.compare(contenders, with_baseline=False)


class _Front(NamedTuple):
    """What is in a queue at first."""

    name: str
    messages: int
    ttl: int | None = _WEEK_SECONDS
    held: bool = False
    deleted: bool = False


def growth(bench: Bench) -> None:
    """Measure queues with more and more in them, or in front of them, filled through the engine."""
    most = bench.plan.messages
    tenth = most // 10
    check_space(bench, 2 * most * DISK_BYTES_PER_MESSAGE, "--messages")
    for front in (
        _Front("empty", 0),
        _Front("few", most // 1000),
        _Front("many", tenth),
        _Front("most", most),
        _Front("held", tenth, held=True),
        _Front("expired", tenth, ttl=1),
        _Front("deleted", most, deleted=True),
    ):
        bench.say(f"{front.name}: {front.messages:,} messages")
        with tempfile.TemporaryDirectory(prefix="queue-", dir=bench.location) as temporary, ExitStack() as stack:
            asyncio.run(_fill(Path(temporary), front))
            server, queues = _started(bench, stack, LAZULITE, Path(temporary))
            for workload, load in ((queues.put(), None), queues.cycle()):
                named = replace(workload, variant=front.name, entities=front.messages)
                bench.compare([Contender(LAZULITE, server, named, load)], with_baseline=False)


async def _fill(location: Path, front: _Front) -> None:
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        catalog, messages = Catalog(engine), Messages(engine, system_clock, Random(1), alone=True)
        await catalog.create(ACCOUNT, QUEUE, ())
        queue = await catalog.require(ACCOUNT, QUEUE)
        text = Random(2).randbytes(TEXT_BYTES // 2).hex().encode()

        async def take() -> None:
            got = await messages.get(queue, _GOT, _HELD_SECONDS)
            if front.deleted:
                receipts = [(each.id, Receipt(each.visible, each.changes)) for each in got]
                await asyncio.gather(*(messages.delete(queue, *receipt) for receipt in receipts))

        for count in _portions(front.messages):
            await asyncio.gather(*(messages.put(queue, text, 0, front.ttl) for _ in range(count)))
            if front.held or front.deleted:
                await asyncio.gather(*(take() for _ in range(-(-count // _GOT))))
    finally:
        await engine.close()


def _portions(total: int) -> Iterator[int]:
    for begin in range(0, total, _TOGETHER):
        yield min(_TOGETHER, total - begin)
