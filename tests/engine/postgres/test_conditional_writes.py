"""Conditional writes as scripts: which share one, and what a row that is not as expected does to the others.

Commits of one row that depend on its value are two statements, if no other process changes the row in between.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from lazulite.engine.commit import Expect, changing, put_rows
from lazulite.engine.contract import KeyRange
from lazulite.engine.postgres import request_batcher
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.sql_statements import APPLY, GET, INSERT, READ, READ_ONE, UPDATE_PRESENT
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.adds import Adds
from tests.engine.postgres.adds import RejectedError as AddRejectedError
from tests.engine.postgres.conftest import Open, by_statements, statements_of
from tests.engine.postgres.gates import Gates
from tests.engine.postgres.write_if import RejectedError, WriteIf

ROWS = [f"{number:02}" for number in range(20)]
OLD = ROWS[:1]
NODES_MAX = 5
"""Of a cluster that the tests may run on."""


class Scripts:
    """The scripts that an engine sends."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        run = engine._pool.run

        async def noted(script: str, partition: bytes) -> None:
            self.sent.append(script)
            await run(script, partition)

        monkeypatch.setattr(engine._pool, "run", noted)


@pytest.fixture(name="started")
async def _started(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> tuple[PostgresEngine, Scripts]:
    """An engine that has one script in flight at a time."""
    monkeypatch.setattr(request_batcher, "_IN_FLIGHT_MAX", 1)
    engine = open_engine(scripts=True)
    await engine.start()
    return engine, Scripts(engine, monkeypatch)


async def test_writes_that_wait_share_a_script(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started

    async def write(row: str, value: bytes | None, expects: Expect) -> None:
        await engine.commit(1, f"p{int(row) % 3}", WriteIf(row, value, expects).commit())

    await asyncio.gather(*(write(row, b"one", Expect.ABSENT) for row in ROWS))
    assert len(scripts.sent) <= NODES_MAX
    scripts.sent.clear()
    kinds = [(b"two", Expect.PRESENT), (None, Expect.PRESENT), (b"three", Expect.ANYTHING)]
    await asyncio.gather(*(write(row, *kinds[int(row) // 3 % 3]) for row in ROWS))
    assert len(scripts.sent) <= NODES_MAX
    for row in ROWS:
        assert await engine.get(1, f"p{int(row) % 3}", row) == kinds[int(row) // 3 % 3][0]


async def test_a_row_that_must_be_present_is_written_in_one_script(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started
    stamp = await engine.commit(1, "p", WriteIf("r", b"stamp", Expect.ABSENT).commit())
    stamp = await engine.commit(1, "p", WriteIf("r", b"stamp", Expect.PRESENT, stamp).commit())
    assert await engine.get(1, "p", "r") == b"%d" % stamp
    await engine.commit(1, "p", WriteIf("r", None, Expect.PRESENT, stamp).commit())
    assert await engine.get(1, "p", "r") is None
    assert [script.count(";") for script in scripts.sent] == [1, 2, 2], "the version, the check and the row"
    with pytest.raises(RejectedError):
        await engine.commit(1, "p", WriteIf("r", b"x", Expect.PRESENT).commit())


async def test_many_rows_of_a_partition_are_written_by_one_statement(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started
    rows = [*(f"{number:03}" for number in range(40)), "\u00e9" * 1000, "\u00e9" * 1001]
    values = {row: row[:number].encode() for number, row in enumerate(rows)}
    for expects, more in ((Expect.ABSENT, b""), (Expect.ANYTHING, b"+")):
        writes = {row: WriteIf(row, value + more, expects) for row, value in values.items()}
        await asyncio.gather(*(engine.commit(1, "p", write.commit()) for row, write in writes.items()))
        assert [await engine.get(1, "p", row) for row in rows] == [value + more for value in values.values()]
    for key_range in (KeyRange(("p", ""), ("p\0", "")), KeyRange(("p", rows[-1]), None)):
        found = [part.key(at)[1] async for part in engine.scan(1, [key_range]) for at in range(len(part.values))]
        assert found == [row for row in rows if row >= key_range[0][1]]
    assert [script.count(";") for script in scripts.sent] == [1, 1], "the version and the rows"


async def test_a_row_that_is_not_as_expected_fails_alone(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started
    for row in OLD:
        await engine.commit(1, row, WriteIf(row, b"old", Expect.ABSENT).commit())
    scripts.sent.clear()
    writes = [WriteIf(row, b"new", Expect.ABSENT) for row in ROWS]
    outcomes = await asyncio.gather(
        *(engine.commit(1, row, write.commit()) for row, write in zip(ROWS, writes, strict=True)),
        return_exceptions=True,
    )
    assert [isinstance(outcome, RejectedError) for outcome in outcomes] == [row in OLD for row in ROWS]
    assert [await engine.get(1, row, row) for row in ROWS] == [b"old" if row in OLD else b"new" for row in ROWS]
    assert len(scripts.sent) < len(ROWS)


async def test_a_write_that_rejects_itself_fails_alone(
    started: tuple[PostgresEngine, Scripts], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = started
    bad = WriteIf("r", b"x", Expect.ABSENT)

    def value(write: WriteIf, timestamp: int) -> bytes | None:
        if write is bad:
            raise ValueError("odd")
        return b"y"

    monkeypatch.setattr(WriteIf, "value", value)
    good = [WriteIf("r", b"y", Expect.ABSENT) for _ in range(3)]
    outcomes = await asyncio.gather(
        *(engine.commit(1, str(at), write.commit()) for at, write in enumerate([*good, bad])), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, int, int, ValueError]


class Adding(NamedTuple):
    """A word that is being added."""

    gates: Gates
    task: "asyncio.Task[int]"


async def _add(engine: PostgresEngine, word: bytes) -> int:
    return await engine.commit(1, "p", Adds(word).commit())


async def _words(engine: PostgresEngine) -> Sequence[bytes]:
    return (await engine.get(1, "p", "r") or b"").split()[1:]


@asynccontextmanager
async def _adding(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, word: bytes) -> AsyncIterator[Adding]:
    """Add a word; what the block does comes between the read and the write of it."""
    await engine.start()
    gates = Gates(engine, monkeypatch)
    gates.hold(GET)
    task = asyncio.create_task(_add(engine, word))
    await gates.come(GET)
    try:
        yield Adding(gates, task)
    finally:
        gates.let(GET)
        await asyncio.wait([task])


@by_statements
async def test_a_row_is_read_and_then_written_on_condition(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    first = await _add(engine, b"one")
    assert await _add(engine, b"two") > first
    assert sent == [GET, INSERT, GET, UPDATE_PRESENT]
    assert await _words(engine) == [b"one", b"two"]


@by_statements
async def test_a_commit_of_several_rows_is_not_optimistic(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    await engine.commit(1, "p", put_rows(dict.fromkeys("rs", b"x")))
    assert sent == [READ, APPLY]


async def test_by_scripts_it_is_committed_with_its_partition(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(scripts=True)
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    for word in (b"one", b"two"):
        await _add(engine, word)
    with pytest.raises(AddRejectedError):
        await _add(engine, b"two")
    assert sent == [READ_ONE] * 3
    assert await _words(engine) == [b"one", b"two"]


async def test_a_row_copied_with_another_stamp_is_written_all_the_same(open_engine: Open) -> None:
    engine = open_engine()
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"7 copied"}))
    await _add(engine, b"two")
    assert await _words(engine) == [b"copied", b"two"]


@pytest.mark.parametrize("rows", [1, 3])
async def test_no_update_of_several_processes_is_lost(open_engine: Open, rows: int) -> None:
    engines = [open_engine(), open_engine(lambda: system_clock() - 10**5), open_engine(), open_engine(scripts=True)]
    words = [b"%d" % number for number in range(120)]

    async def add(number: int) -> int:
        row = f"r{number % rows}"
        return await engines[number % len(engines)].commit(1, "p", Adds(words[number], row).commit())

    stamps = await asyncio.gather(*map(add, range(len(words))))
    assert len(set(stamps)) == len(words)
    found = [(await engines[0].get(1, "p", f"r{row}") or b"").split()[1:] for row in range(rows)]
    assert sorted(word for each in found for word in each) == sorted(words)


async def test_rejection_reaches_the_caller(open_engine: Open) -> None:
    engine = open_engine()
    await _add(engine, b"one")
    with pytest.raises(AddRejectedError):
        await _add(engine, b"one")


@by_statements
@pytest.mark.parametrize("there", [False, True])
async def test_other_rows_of_the_partition_may_change_meanwhile(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    ours, theirs = open_engine(), open_engine()
    if there:
        await _add(ours, b"one")
    async with _adding(ours, monkeypatch, b"two") as adding:
        last = await theirs.commit(1, "p", changing(["s"], lambda *_: {"s": b"x"}))
    assert adding.task.result() > last
    assert adding.gates.answered == [GET, UPDATE_PRESENT if there else INSERT]


@by_statements
@pytest.mark.parametrize("there", [False, True])
async def test_row_that_changed_meanwhile_is_read_anew(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    ours, theirs = open_engine(), open_engine()
    if there:
        await _add(ours, b"one")
    async with _adding(ours, monkeypatch, b"two"):
        await _add(theirs, b"between")
    assert await _words(ours) == [*([b"one"] if there else []), b"between", b"two"]


@by_statements
async def test_several_for_one_row_share_a_partition_commit(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    words = [b"%d" % number for number in range(20)]
    stamps = await asyncio.gather(*(_add(engine, word) for word in words))
    assert len(set(stamps)) == len(words)
    assert sent.count(INSERT) <= 1
    assert sent.count(READ) == sent.count(APPLY) <= 2
    assert sorted(await _words(engine)) == sorted(words)


@by_statements
async def test_rows_read_are_forgotten_after_the_commit(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the caller was cancelled."""
    engine = open_engine()
    await _add(engine, b"one")
    async with _adding(engine, monkeypatch, b"two") as adding:
        adding.task.cancel()
    assert adding.task.cancelled()
    await _add(engine, b"three")
    assert engine._components is not None
    assert not engine._components.optimistic._read_rows
