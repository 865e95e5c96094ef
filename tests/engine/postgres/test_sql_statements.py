"""Plans: each statement goes by a primary key, whatever the statistics say."""

import re

import pytest

from lazulite.engine.commit import Expect, Precondition
from lazulite.engine.postgres import page_reads, scan, sql_scripts, sql_statements
from lazulite.engine.postgres.sql_scripts import (
    PartitionAddress,
    RowChange,
    RowPrefix,
    RowWrite,
    apply_script,
    write_script,
)
from tests.engine.postgres.conftest import Open, by_statements, execute
from tests.postgres.server import CITUS

_VERSION_ROWS = "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY[9::bigint]"
_WRITTEN = (
    "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea], ARRAY[9::bigint], ARRAY['v'::bytea], ARRAY[NULL::bytea],"
    " ARRAY[NULL::bytea], ARRAY[NULL::bigint]"
)
_SINGLE = f"{_VERSION_ROWS}, 9, {_WRITTEN}"

PLANS = {
    "get": (sql_statements.GET, "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea]"),
    "get each": (sql_statements.GET_EACH, "1, 'p', 'r', 0"),
    "read": (
        sql_statements.READ,
        "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY[1::bigint], ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea]",
    ),
    "read one": (sql_statements.READ_ONE, "1, 'p', ARRAY['r'::bytea]"),
    "lock": (sql_statements.LOCK, "1, 'p'"),
    "insert": (sql_statements.INSERT, _SINGLE),
    "replace": (sql_statements.REPLACE, _SINGLE),
    "update": (sql_statements.UPDATE_PRESENT, _SINGLE),
    "delete": (sql_statements.DELETE_PRESENT, _SINGLE),
    "apply": (
        sql_statements.APPLY,
        "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY[8::bigint], ARRAY[9::bigint],"
        " ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['s'::bytea],"
        " ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea], ARRAY[9::bigint], ARRAY['v'::bytea],"
        " ARRAY[NULL::bytea], ARRAY[NULL::bytea],"
        " ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['s'::bytea], ARRAY['v'::bytea]",
    ),
    "short pages": (
        page_reads.PAGES,
        "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY[''::bytea], ARRAY['z'::bytea], ARRAY[10::bigint], 1000",
    ),
    "page in a partition": (scan.IN_PARTITION, "1, 10, 1000, 'p', '', 'z'"),
    "page in a space": (scan.IN_SPACE, "1, 10, 1000, 'p', '', 'z', ''"),
    "keys in a space": (scan.KEYS_IN_SPACE, "1, 10, 'p', '', 'z', ''"),
    "values in a space": (scan.VALUES_IN_SPACE, "1, 10, 'p', '', 'z', ''"),
    "group of rows": (scan.ROW_GROUP, "1, 10, 1000, 'p', 'a', 'b', 'a', 'b'"),
    "group of partitions": (scan.PARTITION_GROUP, "1, 10, 1000, 'a', 'b', 'a', '', 'b', ''"),
}


NOT_ON_CITUS = ("get", "read", "insert", "replace", "update", "delete", "apply", "short pages", "page in a space")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[by_statements] if name in NOT_ON_CITUS else []) for name in PLANS]
)
async def test_a_statement_goes_by_the_primary_key(open_engine: Open, name: str) -> None:
    statement, arguments = PLANS[name]
    engine = open_engine()
    await engine.start()
    async with engine._pool.connection() as connection:
        await connection.execute(f"PREPARE asked AS {statement}")
        plan = "\n".join(line for (line,) in await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE asked ({arguments})"))
        await connection.execute("DEALLOCATE asked")
    assert "Seq Scan" not in plan, plan
    assert "Hash" not in plan, plan
    assert "_pkey" in plan or name in ("insert", "replace"), plan
    of_shards = plan.partition("Task Count")[2] if CITUS else plan  # A coordinator sorts the pages of the shards.
    assert ("Sort" in of_shards) == name.startswith("group") or name in ("get", "short pages"), plan


FILL = (
    "INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)"
    " SELECT 1, {partition}, convert_to(to_char(number, 'FM000000'), 'utf8'), 1, repeat('x', 200)::bytea"
    " FROM generate_series(1, {rows}) AS number"
)
_BIG = PartitionAddress(1, b"big", None)
_TWO = [RowChange(key, None, 9, None) for key in (b"000007", b"019999")]
_PRESENT = Precondition(Expect.PRESENT, timestamp=1)
_DELETE = RowWrite(_BIG, _TWO[0], Precondition(Expect.PRESENT, deletes=True))
_WRITE = RowWrite(_BIG, RowChange(b"000008", None, 9, b"v"), _PRESENT)
_SCRIPT = apply_script(_BIG, 8, 9, [*_TWO, _WRITE.change], [RowPrefix(b"000009", b"xx")])


def reported(statement: str, *arguments: str) -> str:
    """Return a statement with its arguments in their places."""
    for number, argument in reversed(list(enumerate(arguments, 1))):
        statement = statement.replace(f"${number}", argument)
    return statement


UNSET = {
    "get each": [reported(sql_statements.GET_EACH, "1", "'big'", "'000007'", "0")],
    "read one": [reported(sql_statements.READ_ONE, "1", "'big'", "ARRAY['000007'::bytea, '019999']")],
    "lock": [reported(sql_statements.LOCK, "1", "'big'")],
    "page in a partition": [reported(scan.IN_PARTITION, "1", "9", "1000000", "'big'", "'000007'", "'019999'")],
    "apply": _SCRIPT.split(";\n"),
    "write": write_script([[_WRITE, _DELETE]], 9).split(";\n"),
}
"""The statements that reach a worker of Citus, where a session's settings do not."""


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", UNSET)
async def test_with_stale_statistics_and_no_settings_only_the_rows_asked_for_are_read(
    open_engine: Open, name: str, mode: str
) -> None:
    """The statistics are of a time when each partition had one row; then one of them grew."""
    await open_engine().start()
    for table in ("rows", "partitions"):
        execute(f"ALTER TABLE lazulite.{table} SET (autovacuum_enabled = off)")
    execute(FILL.format(partition="convert_to('p' || number, 'utf8')", rows=6000))
    execute(
        "INSERT INTO lazulite.partitions (space, partition_key, stamp) SELECT DISTINCT 1, partition_key, 8"
        " FROM lazulite.rows UNION ALL SELECT 1, 'big'::bytea, 8"
    )
    execute("ANALYZE lazulite.rows, lazulite.partitions")
    execute(FILL.format(partition="'big'::bytea", rows=20000))
    for statement in UNSET[name]:
        analyzed = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {statement}"
        found = execute(analyzed, after=f"SET plan_cache_mode = {mode}; {sql_scripts.PREPARE}")
        plan = "\n".join(str(line) for (line,) in found)
        read = [float(rows) * int(loops) for rows, loops in re.findall(r"actual rows=([\d.]+) loops=(\d+)", plan)]
        removed = [float(rows) for rows in re.findall(r"Rows Removed by .*: (\d+)", plan)]
        assert read, plan
        assert max(read + removed) <= 10, plan


@pytest.mark.parametrize(("citus", "mode"), [(False, "force_generic_plan"), (True, "auto")])
async def test_plans_are_made_once_but_on_citus(open_engine: Open, citus: bool, mode: str) -> None:
    """Which rejects what it has to plan without the arguments."""
    engine = open_engine()
    await engine.start()
    assert engine._kind is not None
    engine._kind = engine._kind._replace(citus=citus)
    connection = await engine._pool._sessions._opener._connect()
    assert await connection.fetchval("SHOW plan_cache_mode") == mode
    assert await connection.fetchval("SHOW enable_seqscan") == "off"
    await connection.close()
