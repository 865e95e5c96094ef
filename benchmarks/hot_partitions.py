"""`python -m benchmarks.hot_partitions`: several processes that insert into the same partitions of a database.

Each count of processes is a service of `lazulite serve --workers` on a database of its own. They take turns, and the
median of the rounds counts. The load is the same for all: so many connections, which insert into the partitions in
turn. The database is one PostgreSQL on this machine. Each commit to a partition takes the time of `--commit-ms` longer,
as with a distant standby: on a fast disk, the wait of processes for each other's commits would not be seen.

A row is *overtaken* if it was sent in vain, because another process had changed its partition meanwhile.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple
from urllib.request import urlopen

from tests.postgres.server import Postgres, PostgresServer

from benchmarks.catalogue import Catalogue
from benchmarks.exchange import exchange
from benchmarks.load import run_asyncio
from benchmarks.processes import Server
from benchmarks.subjects import LAZULITE, free_port, start
from benchmarks.workload import NUMBERS_PER_RUN, Limits

COUNTED = ("overtaken_rows", "forwarded_rows", "transactions")
_TRANSACTIONS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
_SLOW_COMMITS = (
    """
CREATE FUNCTION lazulite.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('lazulite.waited', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        PERFORM set_config('lazulite.waited', pg_current_xact_id()::text, true);
        PERFORM pg_sleep(SECONDS);
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE CONSTRAINT TRIGGER wait AFTER INSERT OR UPDATE ON lazulite.partitions DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION lazulite.wait()
""",
)
"""Each transaction that changes a version row waits once before it commits, and holds its locks."""
_COUNTER = re.compile(r"^lazulite_(\w+)_total (\S+)$", re.MULTILINE)


class Service(NamedTuple):
    """Processes on one database."""

    server: Server
    store: Server
    metrics_port: int
    database: str
    """Its DSN."""

    def counters(self) -> dict[str, float]:
        """Return the counters without labels, by name, summed over the processes; and the database's transactions."""
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as page:
            found = {name: float(value) for name, value in _COUNTER.findall(page.read().decode())}
        [[transactions]] = Postgres(self.database).execute(_TRANSACTIONS)
        return found | {"transactions": float(transactions)}

    def cpu_seconds(self) -> tuple[float, float]:
        """Return the processor time of the processes so far, and that of the database."""
        return self.server.cpu_seconds() or 0.0, self.store.cpu_seconds() or 0.0


class Found(NamedTuple):
    """What one round found."""

    per_second: float
    p99_ms: float
    cpu_us: float
    """Processor time of the service's processes for each row."""
    store_cpu_us: float
    """That of the database."""
    counted: dict[str, float]
    """Of each counter, how much it grew for each row that was written."""


def slow_down(dsn: str, commit_seconds: float) -> None:
    """Have each commit to a partition of a database wait, with its locks. Processes overtake each other the more."""
    for statement in _SLOW_COMMITS:
        Postgres(dsn).execute(statement.replace("SECONDS", str(commit_seconds)))


@contextmanager
def serving(postgres: PostgresServer, processes: int, commit_seconds: float) -> Iterator[Service]:
    """Run so many processes on a database of their own, which has the table, and whose commits take so long."""
    port = free_port()
    options = ("--metrics-port", port, "--workers", processes)
    dsn = postgres.dsn(postgres.create_database())
    with start(LAZULITE, *map(str, options), pin=False, engine=dsn) as server:
        status, body = exchange(server.port, Catalogue(server.host, 0).create())
        assert status == 201, body
        if commit_seconds:
            slow_down(dsn, commit_seconds)
        yield Service(server._replace(tree=True), Server(0, postgres.pid, tree=True), port, dsn)


def measured(service: Service, connections: int, partitions: int, seconds: float, number: int) -> Found:
    """Insert for some seconds; raise an error if one request failed."""
    workload = Catalogue(service.server.host, 0).insert(connections, partitions)
    before, began = service.counters(), service.cpu_seconds()
    found = run_asyncio(workload, service.server.port, number * NUMBERS_PER_RUN, Limits(seconds, 10**8))
    after, ended = service.counters(), service.cpu_seconds()
    if found.errors:
        raise SystemExit(f"{found.errors} of {found.requests} requests failed")
    grown = {name: (after.get(name, 0) - before.get(name, 0)) / found.requests for name in COUNTED}
    cpu_us, store_cpu_us = ((end - begin) * 1e6 / found.requests for begin, end in zip(began, ended, strict=True))
    return Found(found.requests / found.seconds, found.p99_ms, cpu_us, store_cpu_us, grown)


def table(rounds: dict[int, list[Found]]) -> Iterator[str]:
    """Yield the lines of a table: a row for each count of processes, by its median rounds."""
    yield (
        "| processes | rows/s | × first | p99 ms | rows sent per row | forwarded | rows per transaction"
        " | CPU µs per row | database's |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    first = 0.0
    for processes, found in rounds.items():
        rate = median(each.per_second for each in found)
        first = first or rate
        overtaken, forwarded, transactions = (median(each.counted[name] for each in found) for name in COUNTED)
        p99_ms = median(each.p99_ms for each in found)
        shares = f"{rate / first:.2f} | {p99_ms:.0f} | {1 + overtaken:.2f} | {forwarded:.0%}"
        cpu = [median(times) for times in zip(*((each.cpu_us, each.store_cpu_us) for each in found), strict=True)]
        costs = f"{1 / transactions:.1f} | {cpu[0]:.0f} | {cpu[1]:.0f}"
        yield f"| {processes} | {rate:,.0f} | {shares} | {costs} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hot_partitions", description="See the module.")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 8], help="the counts that take turns")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--connections", type=int, default=256, help="of clients, whatever the count")
    parser.add_argument("--commit-ms", type=float, default=10, help="by which each commit is slower")
    parser.add_argument("--seconds", type=float, default=6, help="of each round")
    parser.add_argument("--warm-seconds", type=float, default=4, help="of a first round that does not count")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(arguments)
    with PostgresServer.make(max_connections="300", max_wal_size="8GB") as postgres, ExitStack() as stack:
        services = {
            count: stack.enter_context(serving(postgres, count, args.commit_ms / 1000)) for count in args.processes
        }
        rounds: dict[int, list[Found]] = {count: [] for count in services}
        for number in range(args.rounds + 1):
            for count, service in services.items():
                seconds = args.seconds if number else args.warm_seconds
                found = measured(service, args.connections, args.partitions, seconds, number)
                if number:
                    rounds[count].append(found)
    print(f"{datetime.now(UTC):%Y-%m-%d}: {args.partitions} partitions, {args.connections} connections,", end=" ")
    print(f"commits slower by {args.commit_ms:g} ms, {args.rounds} rounds of {args.seconds:g} s")
    print("\n".join(table(rounds)))


if __name__ == "__main__":
    main()
