"""Pages over partitions from the shards of workers: the statement on tables that stand for shards, and the merge."""

from collections.abc import Mapping, Sequence
from typing import cast

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.postgres import scan
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.citus.shard_pages import ShardPageReads, from_shards, merge_pages
from lazulite.engine.postgres.errors import SHARDS_CHANGED
from lazulite.engine.postgres.pool import Pool
from tests.engine.postgres.citus.test_workers import rows as looked
from tests.engine.postgres.conftest import Open, by_statements, execute

SHARDS = (7, 12)
ARGUMENTS = (1, 10, b"a", b"", b"d", b"")
STAND_INS = """
CREATE TABLE lazulite.pg_dist_local_group AS SELECT 3 AS groupid;
CREATE TABLE lazulite.pg_dist_placement AS
    SELECT * FROM (VALUES (12, 3, 1), (7, 3, 1), (8, 4, 1), (9, 3, 1), (10, 3, 4))
    AS each (shardid, groupid, shardstate);
CREATE TABLE lazulite.pg_dist_shard AS
    SELECT shardid::bigint, (CASE shardid WHEN 9 THEN 'lazulite.partitions' ELSE 'lazulite.rows' END)::regclass
    AS logicalrelid FROM lazulite.pg_dist_placement;
CREATE TABLE lazulite.rows_7 (LIKE lazulite.rows INCLUDING ALL);
CREATE TABLE lazulite.rows_12 (LIKE lazulite.rows INCLUDING ALL)
"""
"""A worker with two shards of rows and one of other rows, and a shard of rows that was moved away."""
FILL = """
INSERT INTO lazulite.rows_{} (space, partition_key, row_key, stamp, value)
SELECT 1, convert_to(partition, 'utf8'), convert_to(number::text, 'utf8'), 1, convert_to(partition || number, 'utf8')
FROM unnest('{{{}}}'::text[]) AS partition, generate_series(1, 4) AS number
"""


@pytest.fixture(name="worker")
async def _worker(open_engine: Open) -> Pool:
    engine = open_engine()
    await engine.start()
    for statement in (*STAND_INS.split(";"), FILL.format(7, "b"), FILL.format(12, "a,c")):
        execute(statement)
    return engine._pool


async def fetch(worker: Pool, statement: str, shards: tuple[int, ...], known: tuple[int, ...]) -> list[asyncpg.Record]:
    """Run the statement for some shards, while others are known."""
    async with worker.connection() as connection:
        text = from_shards(statement, shards).replace("pg_catalog.", "lazulite.")
        return await connection.fetch(text, *ARGUMENTS, known)


@by_statements
async def test_a_statement_reads_the_shards_of_a_worker_in_the_order_of_keys(worker: Pool) -> None:
    keys = [(partition, row) for partition in (b"a", b"b", b"c") for row in (b"1", b"2", b"3", b"4")][:10]
    found = await fetch(worker, scan.KEYS_IN_SPACE, SHARDS, SHARDS)
    assert [tuple(each) for each in found] == [(*key, 2) for key in keys]
    found = await fetch(worker, scan.VALUES_IN_SPACE, SHARDS, SHARDS)
    assert [tuple(each) for each in found] == [(*key, b"".join(key)) for key in keys]


@by_statements
@pytest.mark.parametrize("shards", [(7,), (12,), (7, 8, 12), (7, 9, 12), (7, 10, 12), ()])
async def test_it_fails_if_the_worker_has_other_shards(worker: Pool, shards: tuple[int, ...]) -> None:
    with pytest.raises(SHARDS_CHANGED):
        await fetch(worker, scan.KEYS_IN_SPACE, SHARDS, shards)


@by_statements
@pytest.mark.parametrize("statement", [scan.KEYS_IN_SPACE, scan.VALUES_IN_SPACE])
async def test_no_shard_is_sorted(worker: Pool, statement: str) -> None:
    """Also without statistics, and whatever the arguments are."""
    text = from_shards(statement, SHARDS).replace("pg_catalog.", "lazulite.")
    async with worker.connection() as connection:
        await connection.execute(f"PREPARE page AS {text}")
        found = await connection.fetch("EXPLAIN (COSTS OFF) EXECUTE page (1, 10, 'a', '', 'd', '', '{7, 12}')")
    plan = "\n".join(line for (line,) in found)
    _, _, page = plan.partition("Merge Append")
    assert page.count("Index Scan using rows_") == len(SHARDS), plan
    assert "->  Sort" not in page, plan


@by_statements
async def test_it_fails_if_the_worker_has_none_or_no_table(worker: Pool) -> None:
    with pytest.raises(SHARDS_CHANGED):
        await fetch(worker, scan.KEYS_IN_SPACE, (7, 8, 12), SHARDS)
    execute("DELETE FROM lazulite.pg_dist_placement")
    with pytest.raises(SHARDS_CHANGED):
        await fetch(worker, scan.KEYS_IN_SPACE, SHARDS, SHARDS)


KEYS = st.tuples(st.sampled_from([b"p", b"q", b"r"]), st.binary(max_size=2))


@given(st.lists(st.tuples(KEYS, st.integers(0, 2)), unique_by=lambda each: each[0]), st.integers(1, 12))
def test_a_merge_has_the_first_rows_of_all(keys: Sequence[tuple[tuple[bytes, bytes], int]], rows: int) -> None:
    pages = [sorted((*key, b"v") for key, node in keys if node == each)[:rows] for each in range(3)]
    merged = merge_pages(cast(Sequence[Sequence[asyncpg.Record]], pages), rows)
    assert list(map(tuple, merged)) == sorted((*key, b"v") for key, _ in keys)[:rows]


class Nodes:
    """A pool whose nodes answer with one row each, or fail."""

    def __init__(self, *, all_joined: bool, failure: Exception | None = None) -> None:
        self.all_joined = all_joined
        self.asked: Mapping[int, tuple[str, Sequence[object]]] = {}
        self._failure = failure

    async def fetch_from_nodes(self, asked: Mapping[int, tuple[str, Sequence[object]]]) -> object:
        self.asked = asked
        if self._failure:
            raise self._failure
        return [[(b"p", b"%d" % -node, node)] for node in asked]

    async def fetch_page(self, statement: str, *arguments: object) -> object:
        assert (statement, arguments) == (scan.KEYS_IN_SPACE, ARGUMENTS)
        return [(b"p", b"", 0)]


@pytest.mark.parametrize("all_joined", [True, False])
@pytest.mark.parametrize("failure", [None, asyncpg.DivisionByZeroError(), asyncpg.UndefinedTableError()])
async def test_the_coordinator_is_asked_where_the_workers_cannot_be(
    failure: Exception | None, all_joined: bool
) -> None:
    shards = ShardMap()
    shards.update(looked())
    nodes = Nodes(all_joined=all_joined, failure=failure)
    found = await ShardPageReads(cast(Pool, nodes), shards).fetch(scan.KEYS_IN_SPACE, ARGUMENTS, 10)
    assert [each[2] for each in found] == ([1, 2] if all_joined and failure is None else [0])
    of_nodes = {1: (102000, 102002), 2: (102001, 102003)} if all_joined else {}
    assert nodes.asked == {
        node: (from_shards(scan.KEYS_IN_SPACE, each), (*ARGUMENTS, each)) for node, each in of_nodes.items()
    }
