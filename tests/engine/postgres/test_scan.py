"""Scans of long keys and large rows; what any scan must do is in test_contract and test_model."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite.engine.commit import changing
from lazulite.engine.contract import Engine, EngineUnavailableError, Key, KeyRange
from lazulite.engine.ordinal import ordinal
from lazulite.engine.postgres import scan as module
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.keys import PREFIX_BYTES
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.conftest import statements_of
from tests.engine.postgres.odd_keys import odd_texts

keys = st.tuples(odd_texts, odd_texts)


def order(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])


def ranges_between(bounds: Sequence[Key]) -> list[KeyRange]:
    ends = sorted(bounds, key=order)
    return [KeyRange(ends[at], ends[at + 1] if at + 1 < len(ends) else None) for at in range(0, len(ends), 2)]


async def found(engine: Engine, ranges: Sequence[KeyRange], limit: int | None) -> list[tuple[Key, bytes]]:
    rows = []
    async for part in engine.scan(1, ranges, limit):
        rows += [(part.key(at), value) for at, value in enumerate(part.values)]
    return rows


async def found_keys(engine: Engine, ranges: Sequence[KeyRange], limit: int | None) -> list[Key]:
    keys: list[Key] = []
    async for part in engine.scan(1, ranges, limit, keys_only=True):
        assert not any(part.values)
        keys += zip(*part.columns(), strict=True)
    return keys


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.dictionaries(keys, st.binary(max_size=30), max_size=12),
    bounds=st.lists(keys, min_size=1, max_size=4, unique=True),
    partition=odd_texts,
    limit=st.none() | st.integers(1, 6),
    page_rows=st.sampled_from([1, 2, 3, 1024]),
    page_bytes=st.sampled_from([1, 40, module.PAGE_BYTES]),
    keys_first=st.booleans(),
)
def test_long_keys_come_in_their_order(
    rows: dict[Key, bytes],
    bounds: list[Key],
    partition: str,
    limit: int | None,
    page_rows: int,
    page_bytes: int,
    keys_first: bool,
) -> None:
    ranges = ranges_between(bounds)
    whole = [KeyRange((partition, ""), (partition + "\0", ""))]

    def expected(asked: Sequence[KeyRange]) -> list[tuple[Key, bytes]]:
        kept = [
            (key, value)
            for key, value in sorted(rows.items(), key=lambda item: order(item[0]))
            if any(order(low) <= order(key) and (end is None or order(key) < order(end)) for low, end in asked)
        ]
        return kept[:limit]

    async def run() -> None:
        engine = PostgresEngine(replace(POSTGRES[0], keys_first=keys_first), system_clock)
        try:
            await empty(engine)
            for (partition_key, row_key), value in rows.items():
                await engine.commit(1, partition_key, changing([row_key], lambda *_, r=row_key, v=value: {r: v}))
            for (partition_key, row_key), value in rows.items():
                assert await engine.get(1, partition_key, row_key) == value
            assert await found(engine, ranges, limit) == expected(ranges)
            assert await found(engine, whole, limit) == expected(whole)
            for asked in (ranges, whole):
                assert await found_keys(engine, asked, limit) == [key for key, _ in expected(asked)]
        finally:
            await engine.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAGE_ROWS", page_rows)
        patch.setattr(module, "PAGE_BYTES", page_bytes)
        asyncio.run(run())


POSTGRES: list[PostgresSettings] = []


@pytest.fixture(autouse=True, name="database")
def _database(settings: PostgresSettings) -> None:
    POSTGRES[:] = [settings]


async def empty(engine: PostgresEngine) -> None:
    await engine.start()
    async with engine._pool.connection() as connection:
        await connection.execute("TRUNCATE lazulite.rows, lazulite.partitions")


@pytest.mark.parametrize("keys_first", [False, True])
async def test_a_page_is_bounded_in_bytes_whatever_the_rows(
    settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch, keys_first: bool
) -> None:
    monkeypatch.setattr(module, "PAGE_BYTES", 1000)
    engine = PostgresEngine(replace(settings, keys_first=keys_first), system_clock)
    sizes = [10, 2000, 500, 499, 1, 3000, 1]
    for at, size in enumerate(sizes):
        await engine.commit(1, "p", changing([str(at)], lambda *_, at=at, size=size: {str(at): bytes(size)}))
    pages = []
    take = module._Walk.take

    def noted(walk: module._Walk, page: Sequence[tuple[bytes, bytes, bytes, int]]) -> object:
        pages.append([len(record[2]) for record in page if record[2] is not None])
        return take(walk, page)  # type: ignore[arg-type]  # records

    monkeypatch.setattr(module._Walk, "take", noted)
    rows = await found(engine, [KeyRange(("", ""), None)], None)
    assert [len(value) for _, value in rows] == sizes
    assert pages[1:] == [[10, 2000], [500, 499, 1], [3000], [1]]
    await engine.close()


async def test_a_page_is_one_statement(settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = PostgresEngine(settings, system_clock)
    names = [f"{number:04}" for number in range(1001)]
    await engine.commit(1, "p", changing(names, lambda *_: dict.fromkeys(names, b"x")))
    sent = statements_of(engine, monkeypatch)
    assert len(await found(engine, [KeyRange(("p", ""), ("p\0", ""))], 1001)) == 1001
    assert sent == [module.IN_PARTITION]
    await engine.close()


async def test_a_page_over_partitions_reads_keys_first_and_no_values_that_it_has_no_room_for(
    settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the keys are of one partition, the values are read from that one."""
    engine = PostgresEngine(replace(settings, keys_first=True), system_clock)
    for partition in ("p", "q"):
        rows = [f"{number}" for number in range(6)]
        await engine.commit(1, partition, changing(rows, lambda *_, rows=rows: dict.fromkeys(rows, b"x")))
    monkeypatch.setattr(Pool, "all_joined", False)  # Citus then answers through the coordinator.
    sent = statements_of(engine, monkeypatch)
    assert len(await found(engine, [KeyRange(("", ""), None)], 8)) == 8
    assert sent == [module.KEYS_IN_SPACE, module.VALUES_IN_SPACE]
    del sent[:]
    assert len(await found(engine, [KeyRange(("p", "1"), None)], 5)) == 5
    assert sent == [module.KEYS_IN_SPACE, module.IN_PARTITION]
    del sent[:]
    assert await found(engine, [KeyRange(("r", ""), None)], 8) == []
    assert sent == [module.KEYS_IN_SPACE]
    await engine.close()


async def test_rows_that_come_between_keys_and_values_do_not_end_a_page_early(
    settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PostgresEngine(replace(settings, keys_first=True), system_clock)
    for number in range(0, 20, 2):
        await engine.commit(1, f"{number:02}", changing(["r"], lambda *_: {"r": b"x"}))
    monkeypatch.setattr(Pool, "all_joined", False)  # Citus then answers through the coordinator.
    fetch = engine._pool.fetch_page

    async def disturbed(statement: str, *arguments: object, **more: Any) -> object:
        answer = await fetch(statement, *arguments, **more)
        if statement == module.KEYS_IN_SPACE:
            await engine.commit(1, "01", changing(["r"], lambda *_: {"r": b"y"}))
            await engine.commit(1, "02", changing(["r"], lambda *_: {"r": None}))
        return answer

    monkeypatch.setattr(engine._pool, "fetch_page", disturbed)
    assert [key[0] for key, _ in await found(engine, [KeyRange(("", ""), None)], 3)] == ["00", "01", "04"]
    await engine.close()


@pytest.mark.parametrize("long_partition", [False, True])
async def test_a_group_is_found_whatever_its_digests(settings: PostgresSettings, long_partition: bool) -> None:
    """Also if every form in it is above the end of the range, or below its start."""
    start = "z" * PREFIX_BYTES

    def digest(end: str) -> bytes:
        return sha256((start + end).encode()).digest()

    middle = [chr(code) for code in range(0x30, 0x40)]
    high = [end for end in middle if digest(end) > b"\x7f"]
    low = [end for end in middle if digest(end) < b"\x21"]
    engine = PostgresEngine(settings, system_clock)

    def key(end: str) -> Key:
        return (start + end, "r") if long_partition else ("p", start + end)

    for ends in (high, low):
        assert ends
        space = 1 if ends is high else 2
        for end in ends:
            partition_key, row_key = key(end)
            await engine.commit(space, partition_key, changing([row_key], lambda *_, row_key=row_key: {row_key: b"x"}))
        for lower in (("", ""), key("!"), ("p", "a")):
            slices = engine.scan(space, [KeyRange(lower, key("~"))])
            assert [part.key(at) async for part in slices for at in range(len(part.values))] == [
                key(end) for end in ends
            ]
    await engine.close()


async def test_a_scan_that_waits_for_a_connection_keeps_no_page_meanwhile(settings: PostgresSettings) -> None:
    """Many may wait."""
    engine = PostgresEngine(replace(settings, connections_max=1), system_clock)
    rows = [f"{number:04}" for number in range(module.PAGE_ROWS + 1)]
    await engine.commit(1, "p", changing(rows, lambda *_: dict.fromkeys(rows, b"x" * 1000)))
    kept: list[int] = []

    @asynccontextmanager
    async def snapshot() -> AsyncIterator[None]:
        await engine.get(1, "p", "none")  # The connection keeps the last answer.
        kept.append(tracemalloc.get_traced_memory()[0])
        raise EngineUnavailableError("no connection")
        yield

    pages = engine.scan(1, [KeyRange(("", ""), None)])
    tracemalloc.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._pool, "snapshot", snapshot)
        with pytest.raises(EngineUnavailableError):
            await anext(pages)
    tracemalloc.stop()
    await engine.close()
    assert kept[0] < module.PAGE_ROWS * 1000
