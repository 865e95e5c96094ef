"""What a Citus coordinator makes of the statements, where the environment names one: LAZULITE_TEST_CITUS, a DSN.

What touches one partition must go to one shard, and a scan over partitions must push its limit down to the shards. A
database of its own is made and dropped. Without a coordinator these statements are reviewed by hand.
"""

import os
from collections.abc import AsyncIterator

import pytest

from lazulite.engine.contract import KeyRange
from lazulite.engine.postgres import scan, statements
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.script import Place, RowChange, apply_script, write_script
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.adds import Adds
from tests.engine.postgres.test_statements import PLANS
from tests.postgres.server import Postgres

DSN = os.environ.get("LAZULITE_TEST_CITUS", "")
pytestmark = pytest.mark.skipif(not DSN, reason="LAZULITE_TEST_CITUS names no coordinator")

PLACE = Place(1, b"p", None)
CHANGES = [RowChange(b"r", None, 9, b"v"), RowChange(b"s", None, 9, None)]
SCRIPTS = {
    "apply": apply_script(PLACE, 8, 9, CHANGES),
    "apply first": apply_script(PLACE, 0, 9, CHANGES),
    "insert": write_script(PLACE, CHANGES[0], None, absent=True, present=False),
    "update": write_script(PLACE, CHANGES[0], 8, absent=False, present=True),
    "delete": write_script(PLACE, CHANGES[1], None, absent=False, present=True),
}
ONE_SHARD = (statements.GET_ONE, statements.READ_ONE, scan.IN_PARTITION, scan.ROW_GROUP)
ALL_SHARDS = (scan.IN_SPACE, scan.PARTITION_GROUP)


@pytest.fixture(name="engine")
async def _engine() -> AsyncIterator[PostgresEngine]:
    coordinator = Postgres(DSN)
    with coordinator.database() as dsn:
        coordinator.execute("CREATE EXTENSION citus", database=dsn.rpartition("/")[2])
        engine = PostgresEngine(PostgresSettings(dsn=dsn), system_clock)
        await engine.start()
        yield engine
        await engine.close()


async def plan(engine: PostgresEngine, statement: str) -> str:
    async with engine._pool.connection() as connection:
        return "\n".join(line for (line,) in await connection.fetch(f"EXPLAIN (COSTS OFF) {statement}"))


def told(statement: str) -> str:
    """Return a statement with its arguments in their places."""
    arguments = next(arguments for text, arguments in PLANS.values() if text == statement).split(", ")
    for number in range(len(arguments), 0, -1):
        statement = statement.replace(f"${number}", arguments[number - 1])
    return statement


async def test_an_engine_on_it_does_what_engines_do(engine: PostgresEngine) -> None:
    """With arguments, as an EXPLAIN has none: Citus plans a statement only when it knows them."""
    whole = KeyRange(("", ""), None)
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
    assert sum([len(part.values) async for part in engine.scan(1, [whole, whole])]) == 180
    await engine.drop(1)
    async with engine._pool.connection() as connection:
        await connection.execute("UPDATE lazulite.dropped SET since = since - interval '1 minute'")
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
    assert "Task Count: 1\n" in await plan(engine, told(statement))


@pytest.mark.parametrize("statement", ALL_SHARDS)
async def test_a_scan_over_partitions_pushes_its_limit_down(engine: PostgresEngine, statement: str) -> None:
    text = await plan(engine, told(statement))
    assert "Limit" in text.partition("Tasks Shown")[2], text
