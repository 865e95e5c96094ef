"""The service on PostgreSQL: against pgbench on the same server, two processes against one, a large table and a small.

Two processes are compared with one twice: with all of the machine, which then is full; and each held to a share of a
CPU, so that neither the machine nor the database is. Nothing is held on a CPU: each subject, with the database and the
client that it needs, has the whole machine.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple, Unpack

from tests.postgres.server import PostgresServer

from benchmarks import pgbench
from benchmarks.bench import Bench, Changes, Contender, Stage
from benchmarks.catalogue import MANY_PARTITIONS, Catalogue
from benchmarks.database import Database, served
from benchmarks.entities import PARTITION_ROWS, PAYLOAD_BYTES
from benchmarks.processes import Server
from benchmarks.rows import Row
from benchmarks.sections.big import BIG, SMALL, check_space
from benchmarks.several import loading_all, throttling
from benchmarks.subjects import HELD, LAZULITE, PGBENCH, TWO, TWO_HELD, start
from benchmarks.workload import Workload
from lazulite.engine.postgres.settings import PostgresSettings

FEWER_CONNECTIONS = 16  # of single requests by HTTP, beside 64
POOL = PostgresSettings(dsn="").connections_max  # to the database: of pgbench, and of both Lazulite processes together
WARM_SECONDS_MAX = 3.0
DISK_BYTES_PER_ENTITY = 4 * PAYLOAD_BYTES  # a row, its part of the index, the log, and later inserts
HELD_TO = 0.25  # of a CPU
WORKLOADS: Sequence[tuple[Callable[[Catalogue], Workload], Sequence[str], str]] = (
    (partial(Catalogue.get, connections=64), (SMALL, BIG), "point_read"),
    (Catalogue.insert, (SMALL, BIG), "single_insert"),
    (partial(Catalogue.insert, partitions=MANY_PARTITIONS), (BIG,), ""),
    (Catalogue.merge, (BIG,), ""),
    (Catalogue.transaction, (SMALL, BIG), ""),
    (Catalogue.pages, (SMALL, BIG), ""),
    (Catalogue.ranges, (SMALL, BIG), ""),
)
"""Workloads, the databases by their size, and the script of pgbench that does the same."""


class Side(NamedTuple):
    """A database of some size, and two Lazulite processes on it as one server."""

    variant: str
    database: Database
    stage: Stage[Catalogue]

    def asked(self, subject: str, build: Callable[[Catalogue], Workload], **changes: Unpack[Changes]) -> Contender:
        """Return a subject's contender: one process, or both with a load generator for each."""
        one = self.stage.server._replace(peers=())
        server = self.stage.server if subject in (TWO, TWO_HELD) else one
        changes["variant"] = self.variant
        return self.stage._replace(subject=subject, server=server).asked(build, **changes)

    def pgbench(self, script: str, build: Callable[[Catalogue], Workload]) -> Contender:
        """Return pgbench with the script of a point read or a single insert."""
        space, value_bytes = self.database.stored()
        reads = script == "point_read"
        entities = self.stage.build.entities
        variables = pgbench.point_read(space, entities) if reads else pgbench.single_insert(value_bytes)
        load = pgbench.loading(self.database.dsn, script, variables)
        return self.asked(PGBENCH, build, connections=POOL, requests=[], load=load)._replace(server=Server(0, 0))


def run(bench: Bench) -> None:
    """Measure on a database with the plan's entities, and on a larger one, in turn."""
    if not bench.plan.postgres:
        return
    check_space(bench, bench.plan.postgres * DISK_BYTES_PER_ENTITY, "--postgres")
    with served(bench) as postgres, ExitStack() as stack:
        connections = f"{POOL // 2} connections of each Lazulite process, {POOL} of pgbench"
        bench.conditions.append(f"section postgres: {connections}")
        sizes = {SMALL: bench.plan.entities, BIG: bench.plan.postgres}
        sides = {variant: _side(bench, stack, postgres, variant, entities) for variant, entities in sizes.items()}
        for build, variants, script in WORKLOADS:
            contenders = list(_contenders(bench, build, [sides[each] for each in variants], script))
            bench.compare(contenders, with_baseline=False, warm_s=WARM_SECONDS_MAX)


def _side(bench: Bench, stack: ExitStack, postgres: PostgresServer, variant: str, entities: int) -> Side:
    """Fill a database: the first partition, or the whole of a small table, through the service."""
    database, store = Database(postgres), Server(postgres.address[1], postgres.pid, tree=True)
    options = ("--engine-connections", str(POOL // 2))
    first = PARTITION_ROWS if variant == BIG else entities
    stage = stack.enter_context(bench.stage(LAZULITE, Catalogue, first, *options, engine=database.dsn))
    peer = stack.enter_context(start(LAZULITE, *options, pin=False, engine=database.dsn))
    if variant == BIG:
        bench.note("load by SQL", PGBENCH, [database.multiply(database.stored()[0], entities)], entities)
    for relation, mb in database.sizes_mb().items():
        bench.rows.append(Row(bench.section, "size", LAZULITE, relation, entities=entities, requests=0, disk_mb=mb))
    both = stage.server._replace(peers=(peer,))
    return Side(variant, database, Stage(LAZULITE, both, Catalogue(both.host, entities), store))


def _contenders(
    bench: Bench, build: Callable[[Catalogue], Workload], sides: Sequence[Side], script: str
) -> Iterator[Contender]:
    """Yield the service, pgbench where it can, two processes; one and two that are held to a share of a CPU."""
    yield from (side.asked(LAZULITE, build) for side in sides)
    if script:
        yield from (side.asked(LAZULITE, build, connections=FEWER_CONNECTIONS) for side in sides)
        yield from (side.pgbench(script, build) for side in sides)
    side, server = sides[-1], sides[-1].stage.server
    one, both = bench.plan.load, loading_all(bench.plan.load, server)
    twice = 2 * build(side.stage.build).connections
    yield side.asked(TWO, build, load=both)
    yield side.asked(HELD, build, connections=twice, load=throttling(one, server._replace(peers=()), HELD_TO))
    yield side.asked(TWO_HELD, build, connections=twice, load=throttling(both, server, HELD_TO))
