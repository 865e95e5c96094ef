"""Plans: each statement goes by a primary key, whatever the statistics say."""

import pytest

from lazulite.engine.postgres import scan, statements
from tests.engine.postgres.conftest import Open

_HEADS = "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY[9::bigint]"
_TOLD = (
    "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea], ARRAY[9::bigint], ARRAY['v'::bytea], ARRAY[NULL::bytea],"
    " ARRAY[NULL::bytea], ARRAY[NULL::bigint]"
)
_SINGLE = f"{_HEADS}, 9, {_TOLD}"

PLANS = {
    "get": (statements.GET, "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea]"),
    "get one": (statements.GET_ONE, "1, 'p', 'r'"),
    "read": (
        statements.READ,
        "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY[1::bigint], ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea]",
    ),
    "read one": (statements.READ_ONE, "1, 'p', ARRAY['r'::bytea]"),
    "lock": (statements.LOCK, "1, 'p'"),
    "insert": (statements.INSERT, _SINGLE),
    "replace": (statements.REPLACE, _SINGLE),
    "update": (statements.UPDATE_PRESENT, _SINGLE),
    "delete": (statements.DELETE_PRESENT, _SINGLE),
    "apply": (
        statements.APPLY,
        "ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY[8::bigint], ARRAY[9::bigint],"
        " ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['s'::bytea],"
        " ARRAY[1::bigint], ARRAY['p'::bytea], ARRAY['r'::bytea], ARRAY[9::bigint], ARRAY['v'::bytea],"
        " ARRAY[NULL::bytea], ARRAY[NULL::bytea]",
    ),
    "page in a partition": (scan.IN_PARTITION, "1, 10, 1000, 'p', '', 'z'"),
    "page in a space": (scan.IN_SPACE, "1, 10, 1000, 'p', '', 'z', ''"),
    "group of rows": (scan.ROW_GROUP, "1, 10, 1000, 'p', 'a', 'b', 'a', 'b'"),
    "group of partitions": (scan.PARTITION_GROUP, "1, 10, 1000, 'a', 'b', 'a', '', 'b', ''"),
}


@pytest.mark.parametrize("name", PLANS)
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
    assert ("Sort" in plan) == name.startswith("group") or name == "get", plan


@pytest.mark.parametrize(("citus", "mode"), [(False, "force_generic_plan"), (True, "auto")])
async def test_plans_are_made_once_but_on_citus(open_engine: Open, citus: bool, mode: str) -> None:
    """Which refuses what it has to plan without the arguments."""
    engine = open_engine()
    await engine.start()
    assert engine._kind is not None
    engine._kind = engine._kind._replace(citus=citus)
    connection = await engine._pool._connect()
    assert await connection.fetchval("SHOW plan_cache_mode") == mode
    assert await connection.fetchval("SHOW enable_seqscan") == "off"
    await connection.close()
