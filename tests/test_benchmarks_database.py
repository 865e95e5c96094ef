"""The benchmark of the service on PostgreSQL runs, counts all processor time, and refuses to measure nothing."""

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import hot_partitions
from benchmarks.database import Database
from benchmarks.pgbench import loading, point_read, single_insert
from benchmarks.processes import Server
from benchmarks.report import render
from benchmarks.rows import Row, read_sections
from benchmarks.several import allowance, loading_all, throttling
from benchmarks.targets import TARGETS
from benchmarks.workload import NUMBERS_PER_RUN, BenchmarkError, Limits, Measurement, Workload

from lazulite.engine.commit import changing
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.postgres.server import PostgresServer, shared, until
from tests.test_benchmarks import TINY, run_harness

SINGLE = {"point GET, SAS", "durable insert"}
MANY = {
    "entity group transaction",
    "full-page query",
    "range of 100",
    "durable insert into 1,024 partitions",
    "durable merge",
}
ASKED = Workload("test", 1, 4, 200, [])
NOTHING = Measurement(1, 0, 1.0, 0, 0, 0, 0, 0)
BUSY = "while True: pass"
HELD_TO = 0.02  # of a CPU: less than what a busy machine gives a process anyway
VALUE = b"{" + b'"PartitionKey":"r000000000000"' + b"}"


@pytest.fixture(name="location")
def _location() -> Iterator[Path]:
    """A directory that others can enter too: PostgreSQL started by root runs as another user."""
    directory = Path(tempfile.mkdtemp(prefix="lazulite-test-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(name="dsn", scope="module")
def _dsn() -> Iterator[str]:
    """Of a database with one partition of three rows."""

    async def fill(dsn: str) -> None:
        engine = PostgresEngine(PostgresSettings(dsn=dsn), system_clock)
        rows = [f"{number:06d}" for number in range(3)]
        await engine.commit(7, "r000000000000", changing(rows, lambda values, timestamp: dict.fromkeys(rows, VALUE)))
        await engine.close()

    with shared().database() as dsn:
        asyncio.run(fill(dsn))
        yield dsn


def fetch(dsn: str, statement: str) -> list[tuple[object, ...]]:
    return [tuple(record) for record in shared().execute(statement, database=dsn.rpartition("/")[2])]


def test_everything_is_measured(location: Path) -> None:
    arguments = ["--section", "postgres", "--postgres", "2000", "--results", str(location / "results")]
    harness = run_harness(location, *TINY, *arguments)
    assert harness.code == 0, harness.output
    _, rows = read_sections(location / "results")
    rows = [row for row in rows if row.requests and row.workload != "load by SQL"]
    assert {row.workload for row in rows if row.subject == "lazulite"} == SINGLE | MANY
    for subject in ("lazulite × 2", "lazulite, ¼ CPU", "lazulite × 2, ¼ CPU each"):
        assert {row.workload for row in rows if row.subject == subject} == SINGLE | MANY
    assert {(row.workload, row.connections) for row in rows if row.subject == "pgbench"} == {(w, 16) for w in SINGLE}
    assert {row.entities for row in rows} == {1000, 2000}
    assert [row for row in rows if row.store_cpu_s is None or row.errors] == []
    measured = [target for target in TARGETS if target.measured(rows) is not None]
    assert len(measured) == len([target for target in TARGETS if target.name.startswith("PostgreSQL")]) == 20
    assert re.search(r"fsync on, synchronous_commit on", harness.output)
    assert [each.name for each in location.iterdir()] == ["results"], "what was temporary stays behind"


def test_the_table_grows_by_copies_of_its_first_partition(dsn: str) -> None:
    database = Database(shared(), dsn.rpartition("/")[2])
    assert database.stored() == (7, len(VALUE))
    database.multiply(7, 3000)
    found = shared().execute(
        "SELECT partition_key, value FROM lazulite.rows ORDER BY 1", database=dsn.rpartition("/")[2]
    )
    assert [key for key, _ in found[::3]] == [b"r%012d" % number for number in range(3)]
    assert all(value == VALUE.replace(b"r000000000000", key) for key, value in found)
    heads = shared().execute(
        "SELECT count(*), min(stamp) = max(stamp) FROM lazulite.partitions", database=dsn.rpartition("/")[2]
    )
    assert tuple(heads[0]) == (3, True)
    assert {"rows", "rows_pkey", "partitions", "partitions_pkey"} == set(database.sizes_mb())


def test_pgbench_reads_and_inserts(dsn: str) -> None:
    read = loading(dsn, "point_read", point_read(7, 3))
    assert read(ASKED, 0, 0, Limits(1, 12)).requests == 12
    insert = loading(dsn, "single_insert", single_insert(1000))
    assert insert(ASKED, 0, 5 * NUMBERS_PER_RUN, Limits(1, 32)).requests == 32
    found = fetch(
        dsn,
        "SELECT count(*), count(DISTINCT partition_key), min(octet_length(value)), min(octet_length(row_key))"
        " FROM lazulite.rows WHERE partition_key < 'x' AND partition_key > 'w'",
    )
    assert found == [(32, 16, 1000, 12)]
    heads = fetch(
        dsn,
        "SELECT count(*) FROM lazulite.partitions AS head WHERE stamp = (SELECT max(stamp) FROM lazulite.rows"
        " WHERE (space, partition_key) = (head.space, head.partition_key)) AND partition_key > 'w'",
    )
    assert heads == [(16,)]


def test_pgbench_runs_the_scripts_of_a_cluster(dsn: str) -> None:
    Database(shared(), dsn.rpartition("/")[2]).run("citus_rows", SPACE=9, SHARING=10, BYTES=100, ROWS=100)
    stored = {"space": 9, "entities": 100, "sharing": 10}
    for script, count in (("citus_read", 1), ("citus_range", 10), ("citus_scan", 20)):
        load = loading(dsn, script, {**stored, "count": count}, citus=True)
        assert load(ASKED, 0, 0, Limits(1, 12)).requests == 12
    insert = loading(dsn, "citus_insert", {"space": 10, "partitions": 3, "value": "x" * 100}, citus=True, rows=5)
    assert insert(ASKED, 0, 0, Limits(1, 12)).requests == 12
    assert fetch(dsn, "SELECT count(*), count(DISTINCT stamp) FROM lazulite.rows WHERE space = 10") == [(60, 12)]


def test_pgbench_that_finds_nothing_has_measured_nothing(dsn: str) -> None:
    with pytest.raises(BenchmarkError, match="expected one row"):
        loading(dsn, "point_read", point_read(8, 3))(ASKED, 0, 0, Limits(1, 4))


def test_processes_that_ended_count_as_well() -> None:
    with PostgresServer.make() as server:
        database = Server(0, server.pid, tree=True)
        before = database.cpu_seconds()
        server.execute("SELECT count(*) FROM generate_series(1, 3000000)")
        after = database.cpu_seconds()
    assert before is not None
    assert after is not None
    assert after - before >= 0.1


def test_peers_are_loaded_at_once_and_apart() -> None:
    asked = []

    def load(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
        asked.append((workload.connections, port, first, *workload.requests))
        return Measurement(10 * port, 1, 2.0 * port, 100, port, 2, 3, 4)

    both = Server(1, 0, (Server(2, 0),))
    workload = replace(ASKED, connections=64, requests=[b"a", b"b", b"c"])
    found = loading_all(load, both)(workload, 0, NUMBERS_PER_RUN, Limits(1, 10))
    assert sorted(asked) == [
        (32, 1, NUMBERS_PER_RUN, b"a", b"b", b"c"),
        (32, 2, NUMBERS_PER_RUN + NUMBERS_PER_RUN // 2, b"b", b"c", b"a"),
    ]
    assert found == Measurement(30, 2, 4.0, 200, 2, 2, 3, 4)


def test_a_process_held_to_a_share_of_a_cpu_stops_and_goes_on() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY]) as process:
        server = Server(0, process.pid)

        def stopped() -> bool:
            return Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"

        def load(_workload: Workload, _port: int, _first: int, _limits: Limits) -> Measurement:
            until(stopped, "the process to stop")
            spent = server.cpu_seconds() or 0.0
            until(lambda: (server.cpu_seconds() or 0.0) > spent, "it to go on")
            until(stopped, "it to stop again")
            return NOTHING

        try:
            assert throttling(load, server, HELD_TO)(ASKED, 0, 0, Limits(1, 1)) == NOTHING
            assert not stopped(), "it stays stopped"
        finally:
            process.kill()


def test_counts_of_processes_take_turns_on_hot_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    few = {"--partitions": 2, "--connections": 8, "--commit-ms": 1, "--seconds": 0.2, "--rounds": 1}
    options = ["--processes", "1", "2", *(str(each) for option in few.items() for each in option)]
    hot_partitions.main(options)
    rows = [re.findall(r"[\d.,]+", line) for line in capsys.readouterr().out.splitlines()[3:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert float(rows[0][1].replace(",", "")) > 0
    assert float(rows[0][4]) == 1, "a process alone was overtaken"


def test_the_report_compares_with_pgbench_on_as_many_connections() -> None:
    found = [
        Row("citus", "get", subject, connections=connections, requests=requests, seconds=1.0)
        for connections, ours, plain, theirs in ((1, 30, 40, 60), (16, 80, 100, 100))
        for subject, requests in (("lazulite", ours), ("lazulite, PostgreSQL", plain), ("pgbench", theirs))
    ]
    lines = [line for line in render(found, []).splitlines() if "| lazulite | closed" in line]
    assert [re.findall(r"\| ([\d.]+%?)(?= \|)", line)[-2:] for line in lines] == [["50%", "0.75"], ["80%", "0.80"]]


def test_a_waiting_process_saves_little_of_its_share() -> None:
    left_s = allowance(0.0, 0.25, 0.004, 0.0)
    assert left_s == pytest.approx(0.001)
    left_s = allowance(left_s, 0.25, 0.004, 0.003)
    assert left_s == pytest.approx(-0.001)
    assert allowance(left_s, 0.25, 60.0, 0.0) == 0.002, "a minute's share was saved up"


def test_the_report_tells_the_processor_time_of_each_part() -> None:
    one = Row("postgres", "point GET, SAS", "lazulite", connections=64, entities=1000, requests=1000, seconds=1.0)
    one = replace(one, server_cpu_s=0.05, store_cpu_s=0.02, client_cpu_s=0.01)
    alone = replace(one, subject="pgbench", connections=16, seconds=0.5, server_cpu_s=None, store_cpu_s=0.04)
    two = replace(one, subject="lazulite × 2", seconds=0.8)
    text = render([one, alone, two], [])
    assert "| 64 | lazulite | closed | 1,000 | 50.0 | 20.0 | 10.0 | 5% | 1% | 0.08 | 20,000 | 50,000 | 50% |" in text
    assert "| 16 | pgbench | closed | 2,000 | – | 40.0 | 10.0 | – | 2% | 0.10 | – | 25,000 | – | – |" in text
    assert "| 62% | 1.25 |" in text
    size = Row("postgres", "size", "lazulite", "rows", entities=1000, requests=0, disk_mb=1.5)
    assert "| size rows | 1,000 | 1 | lazulite | closed | 1,500.0 |" in render([size], [])
