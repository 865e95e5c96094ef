"""The service on PostgreSQL: against pgbench on the same server, two processes against one, a large table and a small.

Two processes are compared with one twice: with all of the machine, which then is full; and each held to a share of a
CPU, so that neither the machine nor the database is. Inserts are asked of them into few partitions, for which they wait
for each other, and into many, for which they hardly do; merges, which must have read what they change, into few.

Nothing is held on a CPU: each subject, with the database and the client that it needs, has the whole machine. So each
row says what of the processors the service took, the database, and the client.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from benchmarks import pgbench
from benchmarks.bench import PRELOAD_SECONDS_MAX, Bench, Contender
from benchmarks.catalogue import PAGES, Catalogue
from benchmarks.crew import Crew
from benchmarks.database import Database, Stored, database, multiply, sizes, stored
from benchmarks.entities import PARTITION_ROWS, PAYLOAD_BYTES, TRANSACTION_ROWS
from benchmarks.measurement import BenchmarkError, Limits
from benchmarks.pgbench import Pgbench, Script
from benchmarks.processes import Server
from benchmarks.rows import Row
from benchmarks.sections.big import BIG, SMALL
from benchmarks.subjects import HELD, LAZULITE, PGBENCH, TWO, TWO_HELD, lazulite_on
from benchmarks.throttle import throttling
from benchmarks.workload import Workload
from lazulite.engine.postgres.settings import PostgresSettings

CONNECTIONS, FEWER_CONNECTIONS = 64, 16
"""Of single requests, by HTTP."""
POOL = PostgresSettings(dsn="").connections_max
"""Connections to the database: those of pgbench, and of both Lazulite processes together."""
WARM_SECONDS_MAX = 3.0
DISK_BYTES_PER_ENTITY = 4 * PAYLOAD_BYTES
"""A row, its part of the index, the log, and what is inserted meanwhile."""
HELD_TO = 0.25
"""The share of a CPU of processes that are held to one."""
SIZE, LOAD = "size", "load by SQL"
"""The workloads of rows about what is on the disk, and how long it took to get there."""


@dataclass(frozen=True)
class Side:
    """A database of some size, and two Lazulite processes on it."""

    variant: str
    dsn: str
    entities: int
    servers: Sequence[Server]
    catalogue: Catalogue
    stored: Stored


SINGLE: Sequence[tuple[Callable[[Catalogue], Workload], Callable[[Side], Script]]] = (
    (Catalogue.get, lambda side: pgbench.point_read(side.stored.space, side.entities)),
    (Catalogue.insert, lambda side: pgbench.single_insert(side.stored.value_bytes)),
)
"""What pgbench can do too, and how."""
MANY: Sequence[Callable[[Catalogue], Workload]] = (
    Catalogue.transaction,
    lambda catalogue: catalogue.pages(next(iter(PAGES))),
    Catalogue.ranges,
)


def run(bench: Bench) -> None:
    """Measure on a database with the plan's entities, and on a larger one, in turn."""
    if not bench.plan.postgres:
        return
    _check_space(bench)
    bench.plan = replace(bench.plan, pin=False)
    with ExitStack() as stack:
        server = bench.database = stack.enter_context(database(bench.location.parent))
        bench.conditions += [
            f"section postgres: {server.conditions()}",
            f"section postgres: {POOL // 2} connections of each Lazulite process, {POOL} of pgbench",
            f"section postgres: {pgbench.version()}, -M prepared; nothing is held on a CPU",
        ]
        sides = [
            _side(bench, server, stack, variant, entities)
            for variant, entities in ((SMALL, bench.plan.entities), (BIG, bench.plan.postgres))
        ]
        for contenders in _comparisons(bench, sides, server):
            if bench.wants(contenders[0].workload):
                _warm(bench, contenders)
            bench.compare(contenders, with_floor=False)


def _check_space(bench: Bench) -> None:
    needed, free = bench.plan.postgres * DISK_BYTES_PER_ENTITY, shutil.disk_usage(bench.location).free
    if free < needed:
        raise BenchmarkError(f"{needed / 1e9:.0f} GB of disk may be needed, {free / 1e9:.0f} are free: see --postgres")


def _side(bench: Bench, server: Database, stack: ExitStack, variant: str, entities: int) -> Side:
    """Make a database and fill it: the first partition, or all that is small, through the service."""
    dsn = server.make()
    bench.say(f"{entities:,} entities into a database")
    options = ["--engine-connections", str(POOL // 2)]
    servers = [stack.enter_context(lazulite_on(dsn, options, pin=False)) for _ in range(2)]
    catalogue = Catalogue(servers[0].host, entities)
    bench.create_table(servers[0], catalogue)
    first = PARTITION_ROWS if variant == BIG else entities
    bench.store(servers[0], catalogue.preload(), 0, first // TRANSACTION_ROWS, PRELOAD_SECONDS_MAX)
    side = Side(variant, dsn, entities, servers, catalogue, stored(dsn))
    if variant == BIG:
        bench.note(LOAD, PGBENCH, [multiply(dsn, side.stored.space, entities)], entities=entities)
    bench.rows += [
        Row(bench.section, SIZE, LAZULITE, size.name, entities=entities, requests=0, disk_mb=size.mb)
        for size in sizes(dsn)
    ]
    return side


def _comparisons(bench: Bench, sides: Sequence[Side], server: Database) -> Iterator[Sequence[Contender]]:
    """Yield what takes turns, workload by workload: the service, pgbench where it can, and two processes."""
    for build, script in SINGLE:
        workloads = [(side, replace(build(side.catalogue), connections=CONNECTIONS)) for side in sides]
        fewer = [(side, replace(workload, connections=FEWER_CONNECTIONS)) for side, workload in workloads]
        yield [
            *(_one(*each) for each in (*workloads, *fewer)),
            *(_pgbench(side, workload, server, script(side)) for side, workload in workloads),
            *_processes(bench, *workloads[-1]),
        ]
    large = sides[-1]
    for workload in (large.catalogue.insert_anywhere(), large.catalogue.merge()):
        yield [_one(large, workload), *_processes(bench, large, workload)]
    for build in MANY:
        workloads = [(side, build(side.catalogue)) for side in sides]
        yield [*(_one(*each) for each in workloads), *_processes(bench, *workloads[-1])]


def _warm(bench: Bench, contenders: Sequence[Contender]) -> None:
    """Read without measuring: what the larger table has for the first time would come from the disk for some."""
    limits = Limits(min(WARM_SECONDS_MAX, bench.plan.seconds), bench.plan.requests)
    for each in contenders:
        if each.subject in (LAZULITE, PGBENCH) and each.workload.status == 200:
            load = each.load or bench.plan.load
            load(each.workload, each.server.port, bench.next_first(), limits)


def _one(side: Side, workload: Workload) -> Contender:
    return Contender(LAZULITE, side.servers[0], replace(workload, variant=side.variant))


def _processes(bench: Bench, side: Side, workload: Workload) -> Iterator[Contender]:
    """Yield two processes; and one and two that are held to a share of a CPU, with twice the connections."""
    load, crew = bench.plan.load, Crew(side.servers)
    asked = replace(workload, variant=side.variant)
    yield Contender(TWO, crew, asked, crew.loaded_by(load))
    more = replace(asked, connections=2 * asked.connections)
    one = crew.servers[:1]
    yield Contender(HELD, one[0], more, throttling(load, one, HELD_TO))
    yield Contender(TWO_HELD, crew, more, throttling(crew.loaded_by(load), crew.servers, HELD_TO))


def _pgbench(side: Side, workload: Workload, server: Database, script: Script) -> Contender:
    asked = replace(workload, variant=side.variant, connections=POOL, requests=[])
    return Contender(PGBENCH, server, asked, Pgbench(side.dsn, script))
