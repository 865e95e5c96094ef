"""What only a cluster of Citus shows, where the environment names its coordinator: LAZULITE_TEST_CITUS, a DSN.

What touches one partition must go to one shard, and a scan over partitions must push its limit down to the shards. Each
test has a database of its own. The last tests end the workers' processes, so the cluster must be for tests alone.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import asyncpg
import pytest

from lazulite.engine.contract import EngineUnavailableError, KeyRange, StoreUnusableError
from lazulite.engine.postgres import scan, sql_statements
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.postgres.sql_scripts import Place, RowBeginning, RowChange, apply_script, write_script
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.adds import Adds
from tests.engine.postgres.load import Load
from tests.engine.postgres.test_sql_statements import PLANS, reported
from tests.postgres.server import CITUS, Coordinator, Postgres, until

pytestmark = pytest.mark.skipif(not CITUS, reason="LAZULITE_TEST_CITUS names no coordinator")

WHOLE = KeyRange(("", ""), None)
PLACE = Place(1, b"p", None)
CHANGES = [RowChange(b"r", None, 9, b"v"), RowChange(b"s", None, 9, None)]
SCRIPTS = {
    "apply": apply_script(PLACE, 8, 9, CHANGES),
    "apply expecting": apply_script(PLACE, 8, 9, CHANGES, [RowBeginning(b"%d" % at, b"v") for at in range(100)]),
    "apply first": apply_script(PLACE, 0, 9, CHANGES),
    "apply deletes": apply_script(PLACE, 8, 9, [RowChange(b"%d" % at, None, 9, None) for at in range(100)]),
    "insert": write_script(PLACE, CHANGES[0], None, absent=True, present=False),
    "update": write_script(PLACE, CHANGES[0], 8, absent=False, present=True),
    "delete": write_script(PLACE, CHANGES[1], None, absent=False, present=True),
}
ONE_SHARD = (sql_statements.GET_ONE, sql_statements.READ_ONE, scan.IN_PARTITION, scan.ROW_GROUP)
ARGUMENTS = dict(PLANS.values())
ALL_SHARDS = (scan.IN_SPACE, scan.PARTITION_GROUP)


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
        await engine.commit(1, partition, rows, lambda *_: dict.fromkeys(rows, b"x"))
        await engine.commit(1, partition, ["000"], lambda values, _: {"000": b"%s+" % values[0]})
        assert await engine.get(1, partition, "000") == b"x+"
        for word in (b"one", b"two"):
            await engine.commit(1, partition, ["seen"], Adds(word, "seen"))
        assert await engine.commit(1, partition, ["seen"], lambda *_: {"seen": None})
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


@pytest.mark.parametrize("statement", ONE_SHARD)
async def test_reads_of_one_partition_go_to_one_shard(engine: PostgresEngine, statement: str) -> None:
    assert "Task Count: 1\n" in await plan(engine, reported(statement, *ARGUMENTS[statement].split(", ")))


@pytest.mark.parametrize("statement", ALL_SHARDS)
async def test_a_scan_over_partitions_pushes_its_limit_down(engine: PostgresEngine, statement: str) -> None:
    text = await plan(engine, reported(statement, *ARGUMENTS[statement].split(", ")))
    assert "Limit" in text.partition("Tasks Shown")[2], text


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
                await engine.commit(1, partition, [row], lambda *_, row=row: {row: value})
                await engine.commit(1, partition, [row], partial(add_backslash, row))
                assert await engine.get(1, partition, row) == value + b"\\"
        pages = [part.key(at) async for part in engine.scan(1, [WHOLE]) for at in range(len(part.values))]
        assert sorted(pages) == sorted((partition, row) for partition in partitions for row in ("\\x41", "\\\\"))


async def test_a_worker_that_would_change_keys_is_not_served_from(dsn: str) -> None:
    worker = Coordinator(CITUS).workers()[-1]
    set_strings(worker, dsn)
    with pytest.raises(StoreUnusableError, match=f":{worker.address[1]} has standard_conforming_strings = off"):
        async with engine_at(dsn):
            pass


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
    await engine.commit(1, "p", ["r"], lambda *_: {"r": b"x"})
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
