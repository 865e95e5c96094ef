"""Short pages of several partitions: one statement, and the rows of a scan alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import KeyRange
from lazulite.engine.postgres import page_reads
from lazulite.engine.postgres.engine import PostgresEngine
from tests.postgres.server import CITUS

from .conftest import Open

PARTITIONS = 16
LONG = "k" * 2000


@asynccontextmanager
async def filled(open_engine: Open, sizes: Sequence[int]) -> AsyncIterator[tuple[PostgresEngine, list[str]]]:
    """Yield an engine with rows of some sizes in each partition, and the list of statements that read pages."""
    engine = open_engine()
    await engine.start()
    statements: list[str] = []
    for partition in range(PARTITIONS):
        rows = {f"{at:03}": bytes([partition]) * size for at, size in enumerate(sizes)}
        await engine.commit(1, f"{partition:02}", changing(list(rows), lambda *_, rows=rows: rows))
    fetch_page = engine._pool.fetch_page

    async def noted(statement: str, *arguments: object, **more: Any) -> object:
        statements.append(statement)
        return await fetch_page(statement, *arguments, **more)

    engine._pool.fetch_page = noted  # type: ignore[method-assign, assignment]  # as there
    yield engine, statements


async def read(engine: PostgresEngine, partition: int, start: str, stop: str, limit: int) -> list[tuple[str, bytes]]:
    key_range = KeyRange((f"{partition:02}", start), (f"{partition:02}", stop))
    rows: list[tuple[str, bytes]] = []
    async with aclosing(engine.scan(1, [key_range], limit)) as slices:
        async for part in slices:
            rows += [(part.key(at)[1], value) for at, value in enumerate(part.values)]
    return rows


async def read_all(engine: PostgresEngine, start: str, stop: str, limit: int) -> list[list[tuple[str, bytes]]]:
    return await asyncio.gather(*(read(engine, partition, start, stop, limit) for partition in range(PARTITIONS)))


def expected(numbers: range, size: int) -> list[list[tuple[str, bytes]]]:
    return [[(f"{at:03}", bytes([partition]) * size) for at in numbers] for partition in range(PARTITIONS)]


@pytest.mark.skipif(bool(CITUS), reason="Citus reads each partition alone")
async def test_scans_at_once_are_one_statement(open_engine: Open) -> None:
    async with filled(open_engine, [10] * 40) as (engine, statements):
        assert await read_all(engine, "003", "030", 16) == expected(range(3, 19), 10)
        assert statements == [page_reads.PAGES]


@pytest.mark.parametrize("limit", [1, 16, 64, 65, 100])
@pytest.mark.parametrize("size", [0, 10, 40_000])
async def test_pages_are_as_those_of_a_scan_alone(open_engine: Open, limit: int, size: int) -> None:
    """Pages that are too large for their share of a statement are read alone."""
    async with filled(open_engine, [size] * 80) as (engine, _):
        assert await read_all(engine, "003", "075", limit) == expected(range(3, min(75, 3 + limit)), size)
        assert await read_all(engine, "078", "~", limit) == expected(range(78, min(80, 78 + limit)), size)
        assert await read_all(engine, "080", "~", limit) == expected(range(0), size)


async def test_long_keys_between(open_engine: Open) -> None:
    async with filled(open_engine, [10] * 4) as (engine, _):
        long = {"001" + LONG + end: b"x" for end in "cab"}
        await engine.commit(1, "07", changing(list(long), lambda *_: long))
        pages = await read_all(engine, "", "~", 6)
        keys = ["000", "001", "001" + LONG + "a", "001" + LONG + "b", "001" + LONG + "c", "002"]
        assert [key for key, _ in pages[7]] == keys
        assert pages[8] == expected(range(4), 10)[8]
