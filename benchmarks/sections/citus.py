"""The service on a Citus cluster: against pgbench on the cluster, and against the service on one PostgreSQL server.

Only with LAZULITE_TEST_CITUS, the URL of a coordinator. Nothing is held on a CPU: each subject, with its database and
its client, has the whole machine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from tests.postgres.server import CITUS, Coordinator, Postgres, PostgresServer

from benchmarks import pgbench
from benchmarks.bench import Bench, Contender
from benchmarks.catalogue import RANGE_ROWS, WRITE_PARTITIONS, Catalogue
from benchmarks.cycles import QUEUE, Queues
from benchmarks.database import SETTINGS, Database, conditions
from benchmarks.entities import PARTITION_ROWS, PAYLOAD_BYTES, TRANSACTION_ROWS
from benchmarks.exchange import exchange
from benchmarks.processes import Server
from benchmarks.requests import Requests
from benchmarks.subjects import LAZULITE, PGBENCH, PLAIN, start
from benchmarks.workload import MARK, Load, Workload

CONNECTIONS, MESSAGE_CONNECTIONS = (1, 16, 64), 16
INSERTS, FULL, SPREAD = (1 << 40) + 1, (1 << 40) + 2, (1 << 40) + 3
"""Spaces of pgbench: rows that it inserts, in partitions of 1,000, and in partitions of 100."""
Variables: TypeAlias = Mapping[str, str | int]
_PID = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int"


class Side(NamedTuple):
    """A database with a Lazulite process for each service, and the database's processes."""

    subject: str
    database: Database
    store: Server
    catalogue: Catalogue
    table: Server
    queue: Server
    blob: Server


def run(bench: Bench) -> None:
    """Measure on the cluster and on a server of our own, in turn."""
    if not CITUS:
        bench.say("LAZULITE_TEST_CITUS names no coordinator")
        return
    bench.plan = replace(bench.plan, pin=False)
    coordinator = Coordinator(CITUS)
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer.make(bench.location.parent, **SETTINGS))
        cluster = Database(coordinator)
        stack.callback(coordinator.drop_database, cluster.name)
        [[version]] = coordinator.execute("SELECT citus_version()", database=cluster.name)
        workers = coordinator.workers()
        bench.conditions += [
            f"section citus, plain: {conditions(postgres)}",
            f"section citus: {version}; {len(workers)} workers; {conditions(coordinator)}",
            f"section citus: {pgbench.version()}",
        ]
        first, *others = (Server(0, _pid(node), tree=True) for node in (coordinator, *workers))
        sides = [
            _side(bench, stack, LAZULITE, cluster, first._replace(peers=tuple(others))),
            _side(bench, stack, PLAIN, Database(postgres), Server(0, postgres.pid, tree=True)),
        ]
        _store_rows(coordinator, cluster, bench.plan.entities)
        for contenders in (*_tables(bench, *sides), *_others(sides)):
            bench.compare(contenders, with_baseline=False)


def _pid(node: Postgres) -> int:
    return int(node.execute(_PID)[0][0])


def _side(bench: Bench, stack: ExitStack, subject: str, database: Database, store: Server) -> Side:
    bench.say(f"{bench.plan.entities:,} entities into {subject}")
    services = [
        stack.enter_context(start(LAZULITE, pin=False, service=name, LAZULITE_ENGINE=database.dsn))
        for name in ("table", "queue", "blob")
    ]
    table = services[0]
    catalogue = bench.create_table(table, bench.plan.entities)
    bench.store(table, catalogue.preload(), bench.plan.entities // TRANSACTION_ROWS)
    bench.store(table, catalogue.spread_preload())
    return Side(subject, database, store, catalogue, *services)


def _store_rows(coordinator: Postgres, cluster: Database, entities: int) -> None:
    """Store pgbench's rows, and gather statistics as autovacuum would."""
    for space, sharing in ((FULL, PARTITION_ROWS), (SPREAD, TRANSACTION_ROWS)):
        cluster.run("citus_rows", SPACE=space, SHARING=sharing, BYTES=cluster.stored()[1], ROWS=entities)
    coordinator.execute("ANALYZE", database=cluster.name)


def _tables(bench: Bench, cluster: Side, plain: Side) -> Iterator[Sequence[Contender]]:
    """Yield the contenders of each operation of tables, with pgbench on the cluster."""
    entities = bench.plan.entities
    value: Variables = {"space": INSERTS, "partitions": WRITE_PARTITIONS, "value": "x" * cluster.database.stored()[1]}
    full: Variables = {"space": FULL, "entities": entities, "sharing": PARTITION_ROWS}
    spread: Variables = {"space": SPREAD, "entities": entities, "sharing": TRANSACTION_ROWS}
    operations: Sequence[tuple[Callable[[Catalogue], Workload], str, Variables, int]] = (
        (Catalogue.get, "citus_read", full, 1),
        (Catalogue.insert, "citus_insert", value, 1),
        (Catalogue.transaction, "citus_insert", value, TRANSACTION_ROWS),
        (Catalogue.spread_pages, "citus_scan", {**spread, "count": PARTITION_ROWS}, 1),
        (Catalogue.pages, "citus_range", {**full, "count": PARTITION_ROWS}, 1),
        (Catalogue.ranges, "citus_range", {**full, "count": RANGE_ROWS}, 1),
    )
    for build, script, variables, rows in operations:
        load = pgbench.loading(cluster.database.dsn, script, variables, citus=True, rows=rows)
        yield list(_contenders(build, cluster, plain, load))


def _contenders(build: Callable[[Catalogue], Workload], cluster: Side, plain: Side, load: Load) -> Iterator[Contender]:
    for connections in CONNECTIONS:
        for side in (cluster, plain):
            workload = replace(build(side.catalogue), connections=connections)
            yield Contender(side.subject, side.table, workload, store=side.store)
        theirs = replace(build(cluster.catalogue), connections=connections, requests=[])
        yield Contender(PGBENCH, Server(0, 0), theirs, load, cluster.store)


def _others(sides: Sequence[Side]) -> Iterator[Sequence[Contender]]:
    """Yield the contenders of operations of queues and blobs."""
    queues = [Queues(side.queue) for side in sides]
    blobs = [Requests(side.blob.host, datetime.now(UTC), "b", "rwdlac") for side in sides]
    for side, queue, blob in zip(sides, queues, blobs, strict=True):
        exchange(side.queue.port, queue.create()).must("creating the queue", 201)
        container = blob.raw("PUT", QUEUE, "restype=container", Content_Length="0")
        exchange(side.blob.port, container).must("creating the container", 201)
        exchange(side.blob.port, _put_blob(blob, "known")).must("putting a blob", 201)
    both = list(zip(sides, queues, blobs, strict=True))
    yield [
        Contender(side.subject, side.queue, queue.put(MESSAGE_CONNECTIONS), store=side.store) for side, queue, _ in both
    ]
    yield [
        Contender(side.subject, side.queue, *queue.cycle(MESSAGE_CONNECTIONS), side.store) for side, queue, _ in both
    ]
    for build in (_put_blobs, _get_blobs):
        yield [Contender(side.subject, side.blob, build(blob), store=side.store) for side, _, blob in both]


def _put_blobs(requests: Requests) -> Workload:
    return Workload("put blob of 1 KB", 1, MESSAGE_CONNECTIONS, 201, [_put_blob(requests, MARK.decode())])


def _get_blobs(requests: Requests) -> Workload:
    request = requests.raw("GET", f"{QUEUE}/known")
    return Workload("get blob of 1 KB", 1, MESSAGE_CONNECTIONS, 200, [request])


def _put_blob(requests: Requests, name: str) -> bytes:
    return requests.raw("PUT", f"{QUEUE}/{name}", body=b"x" * PAYLOAD_BYTES, x_ms_blob_type="BlockBlob")
