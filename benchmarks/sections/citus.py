"""The service on a Citus cluster: against pgbench on the cluster, and against the service on one PostgreSQL server.

Only with LAZULITE_TEST_CITUS, the URL of a coordinator. Nothing is held on a CPU: each subject, with its database and
its client, has the whole machine.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from tests.postgres.server import CITUS, Coordinator, Postgres

from benchmarks.bench import B, Bench, Contender, Stage
from benchmarks.blobs import Blobs
from benchmarks.catalogue import RANGE_ROWS, WRITE_PARTITIONS, Catalogue
from benchmarks.cycles import Queues
from benchmarks.database import Database, conditions, served
from benchmarks.entities import PARTITION_ROWS, TRANSACTION_ROWS
from benchmarks.pgbench import loading
from benchmarks.processes import Server
from benchmarks.subjects import LAZULITE, PGBENCH, PLAIN
from benchmarks.workload import Workload

CONNECTIONS, OTHER_CONNECTIONS, BLOBS, WORKERS = (1, 16, 64), 16, 16, 2
INSERTS, FULL, SPREAD = (1 << 40) + 1, (1 << 40) + 2, (1 << 40) + 3
"""Spaces of pgbench: rows that it inserts, in partitions of 1,000, and in partitions of 100."""
Variables: TypeAlias = Mapping[str, str | int]
_PID = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int"


class Side(NamedTuple):
    """A Lazulite process for each service, on one database."""

    table: Stage[Catalogue]
    queue: Stage[Queues]
    blob: Stage[Blobs]


def run(bench: Bench) -> None:
    """Measure on the cluster and on a server of our own, in turn."""
    if not CITUS:
        bench.say("LAZULITE_TEST_CITUS names no coordinator")
        return
    coordinator = Coordinator(CITUS)
    with served(bench, ", plain") as postgres, ExitStack() as stack:
        cluster = Database(coordinator)
        stack.callback(coordinator.drop_database, cluster.name)
        [[version]] = coordinator.execute("SELECT citus_version()", database=cluster.name)
        workers = coordinator.workers()
        bench.conditions.append(f"section citus: {version}; {len(workers)} workers; {conditions(coordinator)}")
        first, *others = (Server(0, _pid(node), tree=True) for node in (coordinator, *workers))
        side = _side(bench, stack, LAZULITE, cluster, first._replace(peers=tuple(others)))
        plain = _side(bench, stack, PLAIN, Database(postgres), Server(0, postgres.pid, tree=True))
        _store_rows(coordinator, cluster, bench.plan.entities)
        _tables(bench, cluster, side.table, plain.table)
        _two_workers(bench, cluster, side.table.store)
        _others(bench, side, plain)


def _pid(node: Postgres) -> int:
    return int(node.execute(_PID)[0][0])


def _side(bench: Bench, stack: ExitStack, subject: str, database: Database, store: Server) -> Side:
    def started(build: type[B], entities: int = 0) -> Stage[B]:
        stage = stack.enter_context(bench.stage(LAZULITE, build, entities, engine=database.dsn))
        return stage._replace(subject=subject, store=store)

    side = Side(started(Catalogue, bench.plan.entities), started(Queues), started(Blobs, BLOBS))
    bench.store(side.table.server, side.table.build.spread_preload())
    return side


def _store_rows(coordinator: Postgres, cluster: Database, entities: int) -> None:
    """Store pgbench's rows, and gather statistics as autovacuum would."""
    for space, sharing in ((FULL, PARTITION_ROWS), (SPREAD, TRANSACTION_ROWS)):
        cluster.run("citus_rows", SPACE=space, SHARING=sharing, BYTES=cluster.stored()[1], ROWS=entities)
    coordinator.execute("ANALYZE", database=cluster.name)


def _tables(bench: Bench, cluster: Database, ours: Stage[Catalogue], plain: Stage[Catalogue]) -> None:
    """Measure each operation of tables, with pgbench on the cluster."""
    value: Variables = {"space": INSERTS, "partitions": WRITE_PARTITIONS, "value": "x" * cluster.stored()[1]}
    full: Variables = {"space": FULL, "entities": bench.plan.entities, "sharing": PARTITION_ROWS}
    spread: Variables = {**full, "space": SPREAD, "sharing": TRANSACTION_ROWS}
    operations: Sequence[tuple[Callable[[Catalogue], Workload], str, Variables, int]] = (
        (Catalogue.get, "citus_read", full, 1),
        (Catalogue.insert, "citus_insert", value, 1),
        (Catalogue.transaction, "citus_insert", value, TRANSACTION_ROWS),
        (Catalogue.spread_pages, "citus_scan", {**spread, "count": PARTITION_ROWS}, 1),
        (Catalogue.pages, "citus_range", {**full, "count": PARTITION_ROWS}, 1),
        (Catalogue.ranges, "citus_range", {**full, "count": RANGE_ROWS}, 1),
    )
    for build, script, variables, rows in operations:
        load = loading(cluster.dsn, script, variables, citus=True, rows=rows)
        contenders: list[Contender] = []
        for connections in CONNECTIONS:
            both = [stage.asked(build, connections=connections) for stage in (ours, plain)]
            theirs = replace(both[0].workload, requests=[], load=load)
            contenders += [*both, Contender(PGBENCH, Server(0, 0), theirs, ours.store)]
        bench.compare(contenders, with_baseline=False)


def _two_workers(bench: Bench, cluster: Database, store: Server | None) -> None:
    """Measure ranges with two worker processes, too: the work of one fills a core, and pgbench has both cores."""
    variables = {"space": FULL, "entities": bench.plan.entities, "sharing": PARTITION_ROWS, "count": RANGE_ROWS}
    options = "--workers", str(WORKERS)
    with bench.stage(
        LAZULITE, Catalogue, bench.plan.entities, *options, place=bench.location, engine=cluster.dsn
    ) as stage:
        server = stage.server._replace(tree=True)
        asked = stage._replace(server=server, store=store).asked(
            Catalogue.ranges, connections=OTHER_CONNECTIONS, variant=f"{WORKERS} workers"
        )
        load = loading(cluster.dsn, "citus_range", variables, citus=True)
        theirs = replace(asked.workload, requests=[], load=load)
        bench.compare([asked, Contender(PGBENCH, Server(0, 0), theirs, store)], with_baseline=False)


def _others(bench: Bench, *sides: Side) -> None:
    """Measure the operations of queues and blobs."""
    for queues in (Queues.put, Queues.cycle):
        asked = [side.queue.asked(queues, connections=OTHER_CONNECTIONS) for side in sides]
        bench.compare(asked, with_baseline=False)
    for name, blobs in (("put blob of 1 KB", Blobs.put), ("get blob of 1 KB", Blobs.get)):
        asked = [side.blob.asked(blobs, name=name, connections=OTHER_CONNECTIONS) for side in sides]
        bench.compare(asked, with_baseline=False)
