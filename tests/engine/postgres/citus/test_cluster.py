"""What only a cluster of Citus shows, where the environment names its coordinator: LAZULITE_TEST_CITUS, a DSN.

What touches one partition must go to one shard, and a scan over partitions must push its limit down to the shards. Each
test has a database of its own. The last tests end the workers' processes, so the cluster must be for tests alone.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import pytest

from lazulite.engine.commit import Expect, Precondition, changing
from lazulite.engine.content.contract import WINDOW_BYTES
from lazulite.engine.contract import EngineUnavailableError, KeyRange, StoreUnusableError
from lazulite.engine.postgres import request_batcher, scan, server_settings, sql_statements
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.postgres.sql_scripts import (
    PartitionAddress,
    RowChange,
    RowPrefix,
    RowWrite,
    apply_script,
    write_script,
)
from lazulite.protocol.clock import system_clock
from tests.engine.content.test_contract import get, put
from tests.engine.postgres.adds import Adds
from tests.engine.postgres.conftest import OURS
from tests.engine.postgres.load import Load
from tests.engine.postgres.test_sql_statements import PLANS, reported
from tests.engine.postgres.write_if import WriteIf
from tests.postgres.server import CITUS, SHARDS, Coordinator, Postgres, until

pytestmark = pytest.mark.skipif(not CITUS, reason="LAZULITE_TEST_CITUS names no coordinator")

WHOLE = KeyRange(("", ""), None)
PLACE = PartitionAddress(1, b"p", None)
CHANGES = [RowChange(b"r", None, 9, b"v"), RowChange(b"s", None, 9, None)]
ABSENT = Precondition(Expect.ABSENT)
PRESENT = Precondition(Expect.PRESENT, timestamp=8)
SCRIPTS = {
    "apply": apply_script(PLACE, 8, 9, CHANGES, [RowPrefix(b"t", b"v")]),
    "apply first": apply_script(PLACE, 0, 9, CHANGES),
    "insert": write_script([[RowWrite(PLACE, CHANGES[0], ABSENT)]], 9),
    "write": write_script([[RowWrite(PLACE, CHANGES[0], PRESENT), RowWrite(PLACE, CHANGES[1], PRESENT)]], 9),
}
ONE_SHARD = (sql_statements.GET_EACH, sql_statements.READ_ONE, scan.IN_PARTITION, scan.ROW_GROUP)
ARGUMENTS = dict(PLANS.values())
ALL_SHARDS = (scan.KEYS_IN_SPACE, scan.VALUES_IN_SPACE, scan.PARTITION_GROUP)


@pytest.fixture(name="dsn")
def _dsn() -> Iterator[str]:
    with Coordinator(CITUS).database() as dsn:
        yield dsn


@asynccontextmanager
async def engine_at(dsn: str) -> AsyncIterator[PostgresEngine]:
    engine = PostgresEngine(PostgresSettings(dsn=dsn), system_clock)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()


@pytest.fixture(name="engine")
async def _engine(dsn: str) -> AsyncIterator[PostgresEngine]:
    async with engine_at(dsn) as engine:
        yield engine


async def plan(engine: PostgresEngine, statement: str) -> str:
    async with engine._pool.connection() as connection:
        return "\n".join(line for (line,) in await connection.fetch(f"EXPLAIN (COSTS OFF) {statement}"))


async def test_an_engine_on_it_does_what_engines_do(engine: PostgresEngine) -> None:
    """With arguments, as an EXPLAIN has none: Citus plans a statement only when it knows them."""
    rows = [f"{number:03}" for number in range(30)]
    for partition in ("p", "q", "é" * 1000):
        await engine.commit(1, partition, changing(rows, lambda *_: dict.fromkeys(rows, b"x")))
        await engine.commit(1, partition, changing(["000"], lambda values, _: {"000": b"%s+" % values[0]}))
        assert await engine.get(1, partition, "000") == b"x+"
        for word in (b"one", b"two"):
            await engine.commit(1, partition, Adds(word, "seen").commit())
        assert await engine.commit(1, partition, changing(["seen"], lambda *_: {"seen": None}))
        one = KeyRange((partition, ""), (partition + "\0", ""))
        assert sum([len(part.values) async for part in engine.scan(1, [one])]) == 30
    assert sum([len(part.values) async for part in engine.scan(1, [WHOLE, WHOLE])]) == 180
    await engine.drop(1)
    async with engine._pool.connection() as connection:
        await connection.execute("UPDATE lazulite.dropped SET since = now() - interval '1 minute'")
    assert await engine.reclaim()
    assert not await engine.reclaim(), "it is put off"
    async with engine._pool.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM lazulite.rows") == 0


@pytest.mark.parametrize("name", SCRIPTS)
async def test_each_statement_of_a_script_goes_to_one_shard(engine: PostgresEngine, name: str) -> None:
    for statement in SCRIPTS[name].split(";\n"):
        assert "Task Count: 1\n" in await plan(engine, statement), statement


async def test_so_does_each_statement_of_writes_that_share_a_script(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_batcher, "_IN_FLIGHT_MAX", 1)
    sent: list[str] = []
    run = engine._pool.run

    async def noted(script: str, partition: bytes) -> None:
        sent.append(script)
        await run(script, partition)

    monkeypatch.setattr(engine._pool, "run", noted)
    for expects in (Expect.ABSENT, Expect.PRESENT):
        await asyncio.gather(*(engine.commit(1, str(at), WriteIf("r", b"x", expects).commit()) for at in range(60)))
    assert len(sent) == 2 * len(Coordinator(CITUS).workers())
    for statement in ";\n".join(sent).split(";\n"):
        assert "Task Count: 1\n" in await plan(engine, statement), statement


@pytest.mark.parametrize("statement", ONE_SHARD)
async def test_reads_of_one_partition_go_to_one_shard(engine: PostgresEngine, statement: str) -> None:
    assert "Task Count: 1\n" in await plan(engine, reported(statement, *ARGUMENTS[statement].split(", ")))


@pytest.mark.parametrize("statement", ALL_SHARDS)
async def test_a_scan_over_partitions_pushes_its_limit_down(engine: PostgresEngine, statement: str) -> None:
    text = await plan(engine, reported(statement, *ARGUMENTS[statement].split(", ")))
    assert "Limit" in text.partition("Tasks Shown")[2], text


FILL = """
INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)
SELECT 1, convert_to('p' || number % 50, 'utf8'), convert_to(to_char(number, 'FM000000'), 'utf8'), 1, 'v'
FROM generate_series(1, 6000) AS number
"""


@pytest.mark.parametrize("statement", [scan.KEYS_IN_SPACE, scan.VALUES_IN_SPACE])
async def test_no_shard_sorts_or_reads_more_than_a_page(engine: PostgresEngine, statement: str) -> None:
    """Also if it has no statistics."""
    text = reported(statement, "1", "10", "'p'", "''", "'z'", "''")
    async with engine._pool.connection() as connection:
        await connection.execute(FILL)
        await connection.execute("SET citus.explain_all_tasks = on")
        found = await connection.fetch(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {text}")
    shards = "\n".join(line for (line,) in found).partition("Tasks Shown: All")[2]
    assert shards.count("Limit (actual rows=10 ") == SHARDS, shards
    assert shards.count("Index Scan using rows_pkey_") == SHARDS, shards
    assert "Sort" not in shards
    assert max(int(rows) for rows in re.findall(r"actual rows=(\d+)", shards)) == 10


async def test_a_session_of_the_coordinator_has_one_with_each_worker(engine: PostgresEngine) -> None:
    """Sessions of a transaction are kept until it ends, and without a pause between them Citus opens all it may."""
    async with engine._pool.snapshot() as connection:
        await connection.execute("SET LOCAL citus.executor_slow_start_interval = 0")
        await connection.fetch(scan.KEYS_IN_SPACE, 1, 10, b"", b"", b"\xff", b"")
        name = f"citus_internal gpid={await connection.fetchval('SELECT citus_backend_gpid()')}"
        for worker in Coordinator(CITUS).workers():
            count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
            [[sessions]] = await asyncio.to_thread(worker.execute, count, name)
            assert sessions == 1


async def test_a_role_that_cannot_reach_all_workers_is_warned_about(dsn: str) -> None:
    async with engine_at(dsn) as engine, engine._pool.connection() as connection:
        assert await server_settings.set_worker_plans(connection, 5) == []
        assert not connection.is_closed(), "nothing was missing"
        await connection.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {dsn.rpartition('/')[2]} RESET ALL")
        [warning] = await server_settings.set_worker_plans(connection, 1e-9)
        assert "scans may be slow" in warning


def set_strings(node: Postgres, dsn: str) -> None:
    """Have sessions of a node's part of a database read literals in the old way."""
    node.execute(f"ALTER DATABASE {dsn.rpartition('/')[2]} SET standard_conforming_strings = off")


def add_backslash(row: str, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
    return {row: (current[0] or b"") + b"\\"}


async def test_keys_and_values_arrive_whatever_the_coordinator_is_set_to(dsn: str) -> None:
    set_strings(Coordinator(CITUS), dsn)
    partitions = [f"\\{number}\\x41" for number in range(20)]  # On every worker.
    value = bytes(range(256))
    async with engine_at(dsn) as engine:
        for partition in partitions:
            for row in ("\\x41", "\\\\"):
                await engine.commit(1, partition, changing([row], lambda *_, row=row: {row: value}))
                await engine.commit(1, partition, changing([row], partial(add_backslash, row)))
                assert await engine.get(1, partition, row) == value + b"\\"
        pages = [part.key(at) async for part in engine.scan(1, [WHOLE]) for at in range(len(part.values))]
        assert sorted(pages) == sorted((partition, row) for partition in partitions for row in ("\\x41", "\\\\"))


async def test_a_worker_that_would_change_keys_is_not_served_from(dsn: str) -> None:
    worker = Coordinator(CITUS).workers()[-1]
    set_strings(worker, dsn)
    with pytest.raises(StoreUnusableError, match=f":{worker.address[1]} has standard_conforming_strings = off"):
        async with engine_at(dsn):
            pass


async def port_of(engine: PostgresEngine, partition: bytes) -> int:
    [[port]] = await engine._pool.fetch("SELECT inet_server_port()", partition=partition)
    return int(port)


async def test_statements_on_one_node_are_sent_to_it(engine: PostgresEngine) -> None:
    shards = (await engine._ensure_started()).shards
    for node, partition in shards.samples().items():
        assert shards.address(node).endswith(f":{await port_of(engine, partition)}")
    assert (await engine._pool.fetch("SELECT inet_server_port()"))[0][0] == Coordinator(CITUS).address[1]


LOST_COORDINATOR = "the coordinator was asked"


async def lost(*, new: bool = False) -> None:
    """Fail where a session of the coordinator would be opened."""
    raise EngineUnavailableError(f"{LOST_COORDINATOR}, {new}")


async def read_pages(engine: PostgresEngine, rows: int) -> Sequence[tuple[str, str]]:
    """Return the keys of a page over partitions."""
    pages = [part async for part in engine.scan(1, [WHOLE], rows)]
    return [part.key(at) for part in pages for at in range(len(part.values))]


async def test_pages_over_partitions_are_read_from_the_workers(
    engine: PostgresEngine, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has one session with a worker, and few are read at a time."""
    rows = [f"{number:02}" for number in range(30)]
    for number in range(20):
        await engine.commit(1, f"p{number:02}", changing(rows, lambda *_: dict.fromkeys(rows, b"x")))
    await (await engine._ensure_started()).periodic.close()
    assert engine._pool._workers is not None
    engine._pool._workers.confirmed(math.inf)
    monkeypatch.setattr(engine._pool._sessions, "open", lost)
    expected = [(f"p{at // 30:02}", f"{at % 30:02}") for at in range(100)]
    assert await asyncio.gather(*(read_pages(engine, 100) for _ in range(16))) == [expected] * 16
    for worker in Coordinator(CITUS).workers():
        [[sessions]] = await asyncio.to_thread(worker.execute, OURS, database=dsn.rpartition("/")[2])
        assert sessions <= engine._settings.connections_max // 4


async def test_so_are_those_on_a_content(engine: PostgresEngine, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the windows of a copy and for deletions, which take long."""
    contents, components = await engine.contents(), await engine._ensure_started()
    await components.periodic.close()
    assert engine._pool._workers is not None
    engine._pool._workers.confirmed(math.inf)

    with monkeypatch.context() as patch:
        patch.setattr(engine._pool._sessions, "open", lost)
        written = [await put(contents, bytes(size)) for size in (0, 1, WINDOW_BYTES + 1) for _ in range(5)]
        assert [await contents.length(content) for content in written] == [0] * 5 + [1] * 5 + [WINDOW_BYTES + 1] * 5
        assert await get(contents, written[-1], 0, WINDOW_BYTES + 1) == bytes(WINDOW_BYTES + 1)
        for content in written:
            contents.keep(content)
        await contents.close()
        with pytest.raises(EngineUnavailableError, match=LOST_COORDINATOR):
            await contents.delete(written)
    states = Coordinator(CITUS).execute("SELECT DISTINCT state FROM lazulite.contents", database=dsn.rpartition("/")[2])
    assert [state for (state,) in states] == ["kept"]
    await contents.delete(written)
    assert not Coordinator(CITUS).execute("SELECT FROM lazulite.contents", database=dsn.rpartition("/")[2])


async def test_a_worker_whose_shard_was_moved_sends_statements_on(engine: PostgresEngine, dsn: str) -> None:
    """As long as this process does not know of that. Pages over partitions go through the coordinator meanwhile."""
    components = await engine._ensure_started()
    await components.periodic.close()
    assert engine._pool._workers is not None
    engine._pool._workers.confirmed(math.inf)
    partition = components.shards.samples()[1]
    for _ in range(8):  # By then, the session has kept the plans.
        await engine.commit(1, partition.decode(), changing(["r"], lambda *_: {"r": b"x"}))
        assert await engine.get(1, partition.decode(), "r") == b"x"
    before, [other, *_] = await port_of(engine, partition), Coordinator(CITUS).workers()[1:]
    found = "SELECT get_shard_id_for_distribution_column('lazulite.rows', $1::bytea)"
    move = f"SELECT citus_move_shard_placement(({found}), '127.0.0.1', $2, $3, $4, 'block_writes')"
    Coordinator(CITUS).execute(move, partition, before, *other.address, database=dsn.rpartition("/")[2])
    assert await port_of(engine, partition) == before
    assert await engine.get(1, partition.decode(), "r") == b"x"
    await engine.commit(1, partition.decode(), WriteIf("s", b"y", Expect.ABSENT).commit())
    await engine.commit(1, partition.decode(), changing(["r"], lambda values, _: {"r": (values[0] or b"") + b"+"}))
    rows = [f"t{number:02}" for number in range(50)]
    for value in (b"1", b"2"):
        await engine.commit(1, partition.decode(), changing(rows, lambda *_, value=value: dict.fromkeys(rows, value)))
    assert engine._pool.all_joined
    for _ in range(2):
        assert [part.values async for part in engine.scan(1, [WHOLE], 1000)] == [[b"x+", b"y", *[b"2"] * 50]]


@contextmanager
def stopping_program() -> Iterator[str]:
    """Yield a program that stops all processes of a worker on this machine, until the end of the block."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        wake = Path(folder, "wake")
        signal_all = "for each in $first $(pgrep -P $first); do kill -{} $each; done"
        yield (
            "first=$(head -1 postmaster.pid);"
            f" (while kill -0 $PPID; do sleep 0.1; done; {signal_all.format('STOP')};"
            f" while [ -d {folder} -a ! -e {wake} ]; do sleep 0.1; done; {signal_all.format('CONT')}) >/dev/null 2>&1 &"
        )
        wake.touch()


@asynccontextmanager
async def silenced(worker: Postgres) -> AsyncIterator[None]:
    """Stop a worker inside the block, as a machine that hangs."""
    try:
        with stopping_program() as program:
            connection = await asyncpg.connect(worker.dsn())
            await connection.execute(f"COPY (SELECT 1) TO PROGRAM '{program}'")
            connection.terminate()  # The program has its socket, too, so it would not see the end of an orderly close.
            yield
    finally:
        await asyncio.to_thread(until, partial(is_up, worker), "the worker to go on")


async def test_a_silent_worker_takes_only_its_partitions_along(dsn: str) -> None:
    engine = PostgresEngine(PostgresSettings(dsn=dsn, node_seconds=0.5, statement_seconds=5), system_clock)
    await engine.start()
    shards = (await engine._ensure_started()).shards
    partitions = {shards.address(node): key.decode() for node, key in shards.samples().items()}
    for partition in partitions.values():
        await engine.commit(1, partition, changing(["r"], lambda *_: {"r": b"x"}))
    worker = Coordinator(CITUS).workers()[0]
    address = "{}:{}".format(*worker.address)
    away = partitions.pop(address)
    async with silenced(worker):
        while not await is_away(engine, away):
            continue
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: engine.get(1, away, "r"),
            lambda: engine.commit(1, away, changing(["r"], lambda *_: {"r": b"y"})),
            lambda: engine.commit(1, away, WriteIf("s", b"y", Expect.ABSENT).commit()),
            lambda: anext(engine.scan(1, [WHOLE])),
            lambda: engine.drop(7),
        ]
        for rejected in calls:
            with pytest.raises(EngineUnavailableError):
                await rejected()
        for partition in partitions.values():
            assert await engine.get(1, partition, "r") == b"x"
            await engine.commit(1, partition, WriteIf("s", b"y", Expect.ABSENT).commit())
        await engine.check_writable()
        assert list(engine.failed_nodes) == [address]
        sessions = OURS.replace("current_database()", f"'{dsn.rpartition('/')[2]}'")
        assert Coordinator(CITUS).execute(sessions)[0][0] <= 2 * engine._settings.connections_max
    while await is_away(engine, away):
        continue
    await engine.check_writable()
    assert not engine.failed_nodes
    assert len([part async for part in engine.scan(1, [WHOLE])]) > 0
    await engine.close()


async def is_away(engine: PostgresEngine, partition: str) -> bool:
    try:
        await engine.get(1, partition, "r")
    except EngineUnavailableError:
        return True
    return False


async def test_a_first_start_is_one_at_the_coordinator(dsn: str) -> None:
    at_worker = Coordinator(CITUS).workers()[0].dsn(dsn.rpartition("/")[2])
    with pytest.raises(StoreUnusableError, match="only the coordinator"):
        async with engine_at(at_worker):
            pass
    async with engine_at(dsn) as engine:
        await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"}))
        async with engine_at(at_worker) as other:
            assert await other.get(1, "p", "r") == b"x"


def kill_backends(worker: Postgres, dsn: str) -> None:
    """Kill a worker's processes for the coordinator, at which the worker recovers as from a crash."""
    found = worker.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'citus_internal%'",
        dsn.rpartition("/")[2],
    )
    pids = " ".join(str(pid) for (pid,) in found)
    with suppress(asyncpg.PostgresError, ConnectionError):  # It ends this session, too.
        worker.execute(f"COPY (SELECT 1) TO PROGRAM 'kill -9 {pids}'")


def is_up(node: Postgres) -> bool:
    try:
        return bool(node.execute("SELECT 1"))
    except (asyncpg.PostgresError, OSError):
        return False


async def test_a_commit_whose_worker_is_killed_is_in_doubt_and_no_failure(engine: PostgresEngine, dsn: str) -> None:
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"}))
    workers = Coordinator(CITUS).workers()

    async def commit() -> None:
        async with engine._pool.transaction() as connection:
            await connection.execute("UPDATE lazulite.partitions SET stamp = 9 WHERE space = 1 AND partition_key = 'p'")
            for worker in workers:
                await asyncio.to_thread(kill_backends, worker, dsn)

    with pytest.raises(EngineUnavailableError, match="worker"):
        await commit()
    for worker in workers:
        await asyncio.to_thread(until, partial(is_up, worker), "the worker to recover")
    assert await engine.get(1, "p", "r") == b"x"


async def test_under_load_nothing_acknowledged_is_lost_with_a_worker(engine: PostgresEngine, dsn: str) -> None:
    """The load knows no other error than that the engine is unavailable."""
    worker = Coordinator(CITUS).workers()[0]
    async with Load.on(engine) as load:
        await load.gets_on()
        await asyncio.to_thread(kill_backends, worker, dsn)
        await asyncio.to_thread(until, partial(is_up, worker), "the worker to recover")
        await load.gets_on()
