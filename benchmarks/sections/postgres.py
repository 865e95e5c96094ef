"""The service on PostgreSQL: against pgbench on the same server, two processes against one, a large table and a small.

Two processes are compared with one twice: with all of the machine, which then is full; and each held to a share of a
CPU, so that neither the machine nor the database is. Nothing is held on a CPU: each subject, with the database and the
client that it needs, has the whole machine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from tests.postgres.server import PostgresServer

from benchmarks import pgbench
from benchmarks.bench import Bench, Contender
from benchmarks.catalogue import MANY_PARTITIONS, Catalogue
from benchmarks.database import SETTINGS, Database, conditions
from benchmarks.entities import PARTITION_ROWS, PAYLOAD_BYTES, TRANSACTION_ROWS
from benchmarks.processes import Server
from benchmarks.rows import Row
from benchmarks.sections.big import BIG, SMALL, check_space
from benchmarks.several import loading_all, throttling
from benchmarks.subjects import HELD, LAZULITE, PGBENCH, TWO, TWO_HELD, start
from benchmarks.workload import Load, Workload
from lazulite.engine.postgres.settings import PostgresSettings

FEWER_CONNECTIONS = 16  # of single requests by HTTP, beside 64
POOL = PostgresSettings(dsn="").connections_max  # to the database: of pgbench, and of both Lazulite processes together
WARM_SECONDS_MAX = 3.0
DISK_BYTES_PER_ENTITY = 4 * PAYLOAD_BYTES  # a row, its part of the index, the log, and later inserts
HELD_TO = 0.25  # of a CPU
SIZE = "size"
SIZED_ENTITIES, SHARING = 20_000, (1000, 10, 1)
"""Entities whose size is measured, by the number of them that share a partition."""


@dataclass(frozen=True)
class Side:
    """A database of some size, two Lazulite processes on it as one server, and the database's own processes."""

    variant: str
    database: Database
    server: Server
    store: Server
    catalogue: Catalogue

    def contender(self, subject: str, workload: Workload, server: Server, load: Load | None = None) -> Contender:
        """Return a contender with this database as the store."""
        return Contender(subject, server, replace(workload, variant=self.variant), load, self.store)

    @property
    def one(self) -> Server:
        """The first of the two processes."""
        return self.server._replace(peers=())

    def pgbench(self, script: str, workload: Workload) -> Contender:
        """Return pgbench with the script of a point read or a single insert."""
        space, value_bytes = self.database.stored()
        entities = self.catalogue.entities
        reads = script == "point_read"
        variables = pgbench.point_read(space, entities) if reads else pgbench.single_insert(value_bytes)
        load = pgbench.loading(self.database.dsn, script, variables)
        return self.contender(PGBENCH, replace(workload, connections=POOL, requests=[]), Server(0, 0), load)


def run(bench: Bench) -> None:
    """Measure on a database with the plan's entities, and on a larger one, in turn."""
    if not bench.plan.postgres:
        return
    check_space(bench, bench.plan.postgres * DISK_BYTES_PER_ENTITY, "--postgres")
    bench.plan = replace(bench.plan, pin=False)
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer.make(bench.location.parent, **SETTINGS))
        bench.conditions += [
            f"section postgres: {conditions(postgres)}",
            f"section postgres: {POOL // 2} connections of each Lazulite process, {POOL} of pgbench",
            f"section postgres: {pgbench.version()}, -M prepared; nothing is held on a CPU",
        ]
        small = _side(bench, stack, postgres, SMALL, bench.plan.entities)
        large = _side(bench, stack, postgres, BIG, bench.plan.postgres)
        for contenders in _comparisons(bench, small, large):
            bench.compare(contenders, with_baseline=False, warm_s=WARM_SECONDS_MAX)
        _sizes(bench, postgres)


def _side(bench: Bench, stack: ExitStack, postgres: PostgresServer, variant: str, entities: int) -> Side:
    """Fill a database: the first partition, or the whole of a small table, through the service."""
    bench.say(f"{entities:,} entities into a database")
    database, store = Database(postgres), Server(postgres.address[1], postgres.pid, tree=True)
    options = ("--engine-connections", str(POOL // 2))
    services = [start(LAZULITE, *options, pin=False, LAZULITE_ENGINE=database.dsn) for _ in range(2)]
    first, second = map(stack.enter_context, services)
    catalogue = bench.create_table(first, entities)
    through_service = PARTITION_ROWS if variant == BIG else entities
    bench.store(first, catalogue.preload(), through_service // TRANSACTION_ROWS)
    if variant == BIG:
        bench.note("load by SQL", PGBENCH, [database.multiply(database.stored()[0], entities)], entities)
    _note_sizes(bench, SIZE, entities, database.sizes_mb())
    return Side(variant, database, first._replace(peers=(second,)), store, catalogue)


def _comparisons(bench: Bench, small: Side, large: Side) -> Iterator[Sequence[Contender]]:
    """Yield the contenders, workload by workload: the service, pgbench where it can, and two processes."""
    workloads: Sequence[tuple[Callable[[Catalogue], Workload], Sequence[Side], str]] = (
        (partial(Catalogue.get, connections=64), (small, large), "point_read"),
        (Catalogue.insert, (small, large), "single_insert"),
        (partial(Catalogue.insert, partitions=MANY_PARTITIONS), (large,), ""),
        (Catalogue.merge, (large,), ""),
        *((build, (small, large), "") for build in (Catalogue.transaction, Catalogue.pages, Catalogue.ranges)),
    )
    for build, sides, script in workloads:
        asked = [(side, build(side.catalogue)) for side in sides]
        fewer = [(side, replace(workload, connections=FEWER_CONNECTIONS)) for side, workload in asked if script]
        yield [
            *(side.contender(LAZULITE, workload, side.one) for side, workload in (*asked, *fewer)),
            *(side.pgbench(script, workload) for side, workload in asked if script),
            *_processes(bench, *asked[-1]),
        ]


def _processes(bench: Bench, side: Side, workload: Workload) -> Iterator[Contender]:
    """Yield two processes; and one and two that are held to a share of a CPU, with twice the connections."""
    one, both = bench.plan.load, loading_all(bench.plan.load, side.server)
    held = replace(workload, connections=2 * workload.connections)
    yield side.contender(TWO, workload, side.server, both)
    yield side.contender(HELD, held, side.one, throttling(one, side.one, HELD_TO))
    yield side.contender(TWO_HELD, held, side.server, throttling(both, side.server, HELD_TO))


def _sizes(bench: Bench, postgres: PostgresServer) -> None:
    """Note what entities take on the disk and in the log, by the number of them that share a partition."""
    entities = min(SIZED_ENTITIES, bench.plan.postgres)
    for sharing in SHARING:
        bench.say(f"{entities:,} entities, {sharing:,} of a partition")
        database = Database(postgres)
        with start(LAZULITE, pin=False, LAZULITE_ENGINE=database.dsn) as server:
            catalogue, before = bench.create_table(server, entities), database.log_mb()
            bench.store(server, catalogue.insert(partitions=entities // sharing), entities)
            sizes = database.sizes_mb() | {"log": database.log_mb() - before}
            _note_sizes(bench, f"{SIZE}, {sharing:,} to a partition", entities, sizes)


def _note_sizes(bench: Bench, workload: str, entities: int, sizes_mb: Mapping[str, float]) -> None:
    row = Row(bench.section, workload, LAZULITE, entities=entities, requests=0)
    bench.rows += [replace(row, variant=name, disk_mb=mb) for name, mb in sizes_mb.items()]
