"""Commits of one row that depend on its value: two statements, if no other process changes the row in between."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.sql_statements import APPLY, GET, INSERT, READ, READ_ONE, UPDATE_PRESENT
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.adds import Adds, RejectedError
from tests.engine.postgres.conftest import Open, by_statements, statements_of
from tests.engine.postgres.gates import Gates


class Adding(NamedTuple):
    """A word that is being added."""

    gates: Gates
    task: "asyncio.Task[int]"


async def _add(engine: PostgresEngine, word: bytes) -> int:
    return await engine.commit(1, "p", ["r"], Adds(word))


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
async def test_conditional_write_in_a_commit_of_several_rows_is_not_optimistic(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Several(Adds):
        def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
            return dict.fromkeys("rs", self.word)

    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    await engine.commit(1, "p", ["r", "s"], Several(b"x"))
    assert sent == [READ, APPLY]


async def test_by_scripts_it_is_committed_with_its_partition(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(scripts=True)
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    for word in (b"one", b"two"):
        await _add(engine, word)
    with pytest.raises(RejectedError):
        await _add(engine, b"two")
    assert sent == [READ_ONE] * 3
    assert await _words(engine) == [b"one", b"two"]


async def test_a_row_copied_with_another_stamp_is_written_all_the_same(open_engine: Open) -> None:
    engine = open_engine()
    await engine.commit(1, "p", ["r"], lambda *_: {"r": b"7 copied"})
    await _add(engine, b"two")
    assert await _words(engine) == [b"copied", b"two"]


@pytest.mark.parametrize("rows", [1, 3])
async def test_no_update_of_several_processes_is_lost(open_engine: Open, rows: int) -> None:
    engines = [open_engine(), open_engine(lambda: system_clock() - 10**5), open_engine(), open_engine(scripts=True)]
    words = [b"%d" % number for number in range(120)]

    async def add(number: int) -> int:
        row = f"r{number % rows}"
        return await engines[number % len(engines)].commit(1, "p", [row], Adds(words[number], row))

    stamps = await asyncio.gather(*map(add, range(len(words))))
    assert len(set(stamps)) == len(words)
    found = [(await engines[0].get(1, "p", f"r{row}") or b"").split()[1:] for row in range(rows)]
    assert sorted(word for each in found for word in each) == sorted(words)


async def test_rejection_reaches_the_caller(open_engine: Open) -> None:
    engine = open_engine()
    await _add(engine, b"one")
    with pytest.raises(RejectedError):
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
        last = await theirs.commit(1, "p", ["s"], lambda *_: {"s": b"x"})
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
