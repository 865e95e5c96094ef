"""Request coalescing on the database: which commits share a statement, and which wait."""

import asyncio
from typing import Any

import pytest

from lazulite.engine.commit import Expect, changing
from lazulite.engine.postgres import conditional_writes, request_batcher
from lazulite.engine.postgres.sql_statements import APPLY, INSERT, REPLACE
from tests.engine.postgres.conftest import Open, by_statements, statements_of
from tests.engine.postgres.gates import Gates
from tests.engine.postgres.write_if import RejectedError, WriteIf
from tests.postgres.server import SECONDS_MAX


@by_statements
async def test_commits_of_many_partitions_share_statements(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    await asyncio.gather(*(engine.commit(1, str(at), changing(["r"], lambda *_: {"r": b"x"})) for at in range(64)))
    assert len(sent) <= 8
    rows = [f"{at:04}" for at in range(150)]
    sent.clear()
    await asyncio.gather(
        *(engine.commit(2, str(at), changing(rows, lambda *_: dict.fromkeys(rows, b"x"))) for at in range(4))
    )
    assert len(sent) == 8, "groups are bounded"
    sent.clear()
    large = bytes(1 << 20)
    await asyncio.gather(*(engine.commit(3, str(at), changing(["r"], lambda *_: {"r": large})) for at in range(12)))
    assert sent.count(APPLY) >= 4, "in bytes as well"


@by_statements
async def test_a_single_write_is_one_statement_and_a_batch_two(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    for value, expects in ((b"", Expect.ABSENT), (b"", Expect.ANYTHING), (b"", Expect.PRESENT), (None, Expect.PRESENT)):
        await engine.commit(1, "p", WriteIf("r", value, expects).commit())
        assert len(sent) == 1
        sent.clear()
    rows = [f"{number:03}" for number in range(100)]
    await engine.commit(1, "p", changing(rows, lambda *_: dict.fromkeys(rows, b"x")))
    assert len(sent) == 2
    sent.clear()
    halves: dict[str, bytes | None] = {row: b"y" if number % 2 else None for number, row in enumerate(rows)}
    await engine.commit(1, "p", changing(rows, lambda *_: halves))
    assert len(sent) == 2


@by_statements
async def test_waiting_write_is_committed_with_its_partition(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if no other write follows, and if other commits keep the partition locked."""
    monkeypatch.setattr(request_batcher, "_IN_FLIGHT_MAX", 1)
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    await engine.start()
    gates.hold(INSERT, APPLY)
    first = asyncio.create_task(engine.commit(1, "first", WriteIf("r", b"x", Expect.ABSENT).commit()))
    await gates.come(INSERT)
    insert = asyncio.create_task(engine.commit(1, "p", WriteIf("r", b"x", Expect.ABSENT).commit()))
    await asyncio.sleep(0)
    batch = asyncio.create_task(engine.commit(1, "p", changing(["s"], lambda *_: {"s": b"x"})))
    await gates.come(APPLY)
    gates.let(INSERT)
    await first
    gates.let(APPLY)
    async with asyncio.timeout(SECONDS_MAX):
        assert await insert > await batch


@by_statements
async def test_writes_linger_while_a_batch_is_in_flight(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional_writes, "_LINGER_SECONDS", 3600.0)
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    await engine.start()
    gates.hold(INSERT)

    def write(partition: str) -> "asyncio.Task[int]":
        return asyncio.create_task(engine.commit(1, partition, WriteIf("r", b"x", Expect.ABSENT).commit()))

    writes = [write(f"first {number}") for number in range(4)]
    await gates.come(INSERT)
    for number in range(5):
        writes.append(write(f"later {number}"))
        await asyncio.sleep(0)
    gates.let(INSERT)
    await asyncio.gather(*writes)
    assert gates.answered.count(INSERT) == 2


@by_statements
async def test_writes_to_a_locked_partition_do_not_fill_a_batch(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the write of a cancelled caller is not sent."""
    monkeypatch.setattr(conditional_writes, "_LINGER_SECONDS", 3600.0)
    monkeypatch.setattr(request_batcher, "_REQUESTS_MAX", 6)
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    await engine.start()
    gates.hold(INSERT)

    def write(partition: str, row: int) -> "asyncio.Task[int]":
        return asyncio.create_task(engine.commit(1, partition, WriteIf(f"{row}", b"x", Expect.ABSENT).commit()))

    writes = [write("busy", row) for row in range(4)]
    await gates.come(INSERT)
    writes += [write("busy", row) for row in range(10, 16)]
    gone = write("elsewhere", 1)
    writes.append(write("elsewhere", 2))
    for _ in range(5):
        await asyncio.sleep(0)
    gone.cancel()
    assert gates.answered.count(INSERT) == 1
    gates.let(INSERT)
    await asyncio.gather(*writes)
    assert gates.answered.count(INSERT) == 3
    assert await engine.get(1, "elsewhere", "1") is None


@by_statements
async def test_write_that_waits_for_its_partition_delays_no_others(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    gates.hold(REPLACE)

    def write(partition: str, expects: Expect) -> "asyncio.Task[int]":
        return asyncio.create_task(engine.commit(1, partition, WriteIf("r", b"x", expects).commit()))

    held = write("p", Expect.ANYTHING)
    await gates.come(REPLACE)
    waits = write("p", Expect.ABSENT)
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            await write("q", Expect.ABSENT)
        assert not waits.done()
    finally:
        gates.let(REPLACE)
    await held
    with pytest.raises(RejectedError):
        await waits


@by_statements
async def test_large_values_are_split_into_several_statements(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    await engine.start()
    fetch, sizes = engine._pool.fetch, []

    async def measured(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        values = arguments[8]
        assert isinstance(values, tuple)
        sizes.append(sum(map(len, values)))
        return await fetch(statement, *arguments, reads=reads, **more)

    monkeypatch.setattr(engine._pool, "fetch", measured)
    calls = (engine.commit(1, str(at), WriteIf("r", bytes(1 << 20), Expect.ABSENT).commit()) for at in range(20))
    assert len(set(await asyncio.gather(*calls))) == 20
    assert sizes == [4 << 20] * 5
