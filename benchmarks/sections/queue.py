"""Queues: beside Azurite, and on PostgreSQL against `FOR UPDATE SKIP LOCKED`.

Each round puts messages, and then gets and deletes as many as the time allows.
"""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tests.postgres.server import PostgresServer

from benchmarks import pgbench
from benchmarks.bench import Bench, Contender
from benchmarks.blobs import Blobs
from benchmarks.cycles import TEXT_BYTES, Queues
from benchmarks.database import SETTINGS, Database, conditions
from benchmarks.exchange import exchange
from benchmarks.processes import Server
from benchmarks.sections.table import sync_seconds
from benchmarks.several import loading_all
from benchmarks.subjects import AZURITE, DISK, LAZULITE, PGBENCH, TWO, start

ON_DATABASE = "PostgreSQL"
PGBENCH_CONNECTIONS = 16
CONSUMERS, NUMBERS_OF_CONSUMERS = "consumers", (1, 4, 16, 64)
_ANNOUNCED_SECONDS = 6  # Until both processes know of each other.
Built = TypeVar("Built", Queues, Blobs)


def run(bench: Bench) -> None:
    """Measure Lazulite and Azurite in turn, one put at a time, consumers by number, and two processes on PostgreSQL."""
    with ExitStack() as stack:
        stages = [(subject, *started(bench, stack, subject, Queues)) for subject in bench.present(LAZULITE, AZURITE)]
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


def started(
    bench: Bench, stack: ExitStack, subject: str, build: type[Built], location: Path | None = None
) -> tuple[Server, Built]:
    """Start a subject, with a queue or a container for workloads; the one of a location may be there."""
    found = location or Path(tempfile.mkdtemp(prefix=f"{bench.section}-{subject}-", dir=bench.location))
    server = stack.enter_context(start(subject, "--location", found, pin=bench.plan.pin, service=build.service))
    workloads = build(server)
    if location is None:
        exchange(server.port, workloads.create()).must("creating what is measured", 201)
    return server, workloads


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
