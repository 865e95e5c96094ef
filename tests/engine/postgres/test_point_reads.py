"""PointReads that go together: without a database, but for the last test."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.postgres import point_reads as module
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.point_reads import PointReads
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.sql_statements import GET, GET_EACH
from tests.engine.postgres.citus.test_shard_map import answer
from tests.engine.postgres.conftest import Open


class Asked:
    """A pool's place: notes statements, and answers with the row keys that were asked for once `gate` is set."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.row_keys: list[Sequence[bytes]] = []
        self.gate = asyncio.Event()

    async def fetch(
        self, statement: str, _spaces: object, _keys: object, row_keys: Sequence[bytes], *, reads: bool
    ) -> Sequence[tuple[object, ...]]:
        assert reads
        self.statements.append(statement)
        self.row_keys.append(row_keys)
        await self.gate.wait()
        return [(row_key,) for row_key in row_keys]

    async def fetch_each(
        self, statement: str, arguments: Sequence[tuple[int, bytes, bytes, int]], *, partition: bytes
    ) -> Sequence[tuple[int, bytes]]:
        """Answer in another order, and without the row `0`."""
        assert partition in [each[1] for each in arguments]
        self.statements.append(statement)
        self.row_keys.append([each[2] for each in arguments])
        await self.gate.wait()
        return [(place, row_key) for _, _, row_key, place in reversed(arguments) if row_key != b"0"]


async def _ask(reads: PointReads, *numbers: int, partition: bytes = b"p") -> list[asyncio.Future[bytes | None]]:
    asked = (reads.get(1, partition, b"%d" % number) for number in numbers)
    tasks: list[asyncio.Future[bytes | None]] = list(map(asyncio.ensure_future, asked))
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize(
    ("each", "statement", "first", "counts"), [(False, GET, b"0", [4, 6]), (True, GET_EACH, None, [1, 3, 1, 5])]
)
async def test_reads_that_come_while_others_are_on_their_way_wait_and_go_together(
    monkeypatch: pytest.MonkeyPatch, *, each: bool, statement: str, first: bytes | None, counts: Sequence[int]
) -> None:
    monkeypatch.setattr(module, "_LINGER_SECONDS", 3600.0)
    asked = Asked()
    reads = PointReads(cast("Pool", asked), ShardMap(), each=each)
    tasks = await _ask(reads, *range(4))
    for number in range(4, 10):
        tasks += await _ask(reads, number)
    asked.gate.set()
    assert await asyncio.gather(*tasks) == [first, *(b"%d" % number for number in range(1, 10))]
    assert list(map(len, asked.row_keys)) == counts
    assert set(asked.statements) == {statement}


async def test_reads_of_one_node_do_not_wait_for_those_of_another() -> None:
    asked, shards = Asked(), ShardMap()
    shards.update(answer())
    reads = PointReads(cast("Pool", asked), shards, each=True)
    one, other = shards.samples().values()
    tasks = [*await _ask(reads, *range(1, 5), partition=one), *await _ask(reads, *range(5, 9), partition=other)]
    assert [len(row_keys) for row_keys in asked.row_keys] == [1, 3, 1, 3]
    asked.gate.set()
    assert await asyncio.gather(*tasks) == [b"%d" % number for number in range(1, 9)]


async def test_a_database_answers_each_of_many(open_engine: Open) -> None:
    engine = open_engine()
    rows = [f"{number:02}" for number in range(0, 40, 2)]
    await engine.commit(1, "p", changing(rows, lambda *_: {row: row.encode() for row in rows}))
    reads = PointReads(engine._pool, ShardMap(), each=True)
    asked = [b"%02d" % number for number in range(40)]
    found = await asyncio.gather(*(reads.get(1, b"p", row_key) for row_key in asked))
    assert found == [row_key if row_key.decode() in rows else None for row_key in asked]
