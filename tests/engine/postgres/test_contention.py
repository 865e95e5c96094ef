"""Partitions that several processes write to: what is overtaken is counted, and then bound late."""

import asyncio
from typing import Any

import pytest

from lazulite.engine.commit import Expect, changing
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres.contention import CONTENDED_SECONDS, LATE_SECONDS, PARTITIONS_MAX, Contention
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.partition_io import PartitionRead, PartitionState
from tests.engine.postgres.conftest import OURS, SCRIPTS, Open, execute
from tests.engine.postgres.write_if import RejectedError, WriteIf

STATEMENTS = 200
"""Enough for a share to be that of the statements."""


def insert(row: str) -> WriteIf:
    return WriteIf(row, b"x", Expect.ABSENT)


def overtaken(engine: PostgresEngine) -> float:
    return engine.counters()["overtaken_rows_total"]


async def two_clocks(open_engine: Open, *, scripts: bool) -> tuple[PostgresEngine, PostgresEngine]:
    """Return an engine, and one whose clock is behind, so that all its first statements are overtaken."""
    ahead, behind = open_engine(lambda: 10**15 + 10**6), open_engine(lambda: 10**15, scripts=scripts)
    await ahead.commit(1, "p", insert("first").commit())
    assert behind.counters() == {}, "counted before it was started"
    await behind.start()
    return ahead, behind


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_rows_that_were_overtaken_are_counted(open_engine: Open, scripts: bool) -> None:
    ahead, behind = await two_clocks(open_engine, scripts=scripts)
    await behind.commit(1, "q", insert("r").commit())
    assert overtaken(behind) == 0
    await behind.commit(1, "p", insert("r").commit())
    assert overtaken(behind) == (2 if scripts else 3), "a script and the commit after it, or each try"
    assert overtaken(ahead) == 0
    assert await ahead.get(1, "p", "r") == b"x"


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_rows_that_were_read_and_then_overtaken_are_counted(
    open_engine: Open, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_engine(scripts=scripts), open_engine()
    io = (await one._ensure_started()).partitions._io
    read = io.read

    async def beaten(request: PartitionRead) -> PartitionState:
        found = await read(request)
        await other.commit(1, "p", insert(f"r{found.version}").commit())
        return found

    monkeypatch.setattr(io, "read", beaten)
    await one.commit(1, "p", changing(["s", "t"], lambda *_: {"s": b"x", "t": b"x"}))
    assert (overtaken(one), overtaken(other)) == (2, 0)


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_rows_that_are_not_as_expected_are_not_counted(open_engine: Open, scripts: bool) -> None:
    engine = open_engine(scripts=scripts)
    await engine.commit(1, "p", insert("r").commit())
    for missing in (insert("r"), WriteIf("s", b"x", Expect.PRESENT)):
        with pytest.raises(RejectedError):
            await engine.commit(1, "p", missing.commit())
    assert overtaken(engine) == 0


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_commits_bound_late_are_taken_once_the_partition_is_locked(
    open_engine: Open, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(scripts=scripts)
    first = await engine.commit(1, "p", insert("first").commit())
    io = (await engine._ensure_started()).partitions._io
    apply_locked, calls = io.apply_locked, []

    async def noted(*arguments: Any) -> object:
        calls.append(arguments)
        return await apply_locked(*arguments)

    monkeypatch.setattr(io, "apply_locked", noted)
    monkeypatch.setattr(Contention, "binds_late", lambda *_: True)
    ahead = first + 10**9
    async with engine._pool.connection() as connection, connection.transaction():
        await connection.execute(f"UPDATE lazulite.partitions SET stamp = {ahead} WHERE partition_key = 'p'")
        commits = [asyncio.create_task(engine.commit(1, "p", insert("early").commit()))]
        while not execute(f"{OURS} AND wait_event_type = 'Lock'")[0][0]:  # noqa: ASYNC110 - there is no event to wait for.
            await asyncio.sleep(0)
        commits += [asyncio.create_task(engine.commit(1, "p", insert(f"late {at}").commit())) for at in range(5)]
        commits.append(asyncio.create_task(engine.commit(1, "p", changing(["both"], lambda *_: {"both": b"x"}))))
        await asyncio.sleep(0)
    stamps = [await commit for commit in commits]
    assert stamps == sorted(set(stamps))
    assert stamps[0] > ahead
    assert len(calls) == 1
    assert overtaken(engine) == 0


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_commits_that_wait_for_the_lock_fail_with_it(
    open_engine: Open, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(scripts=scripts)
    io = (await engine._ensure_started()).partitions._io

    async def fails(*_: object) -> object:
        await asyncio.sleep(0)
        raise EngineUnavailableError("no database")

    monkeypatch.setattr(Contention, "binds_late", lambda *_: True)
    with monkeypatch.context() as patched:
        patched.setattr(io, "apply_locked", fails)
        writes = (engine.commit(1, "p", insert(row).commit()) for row in "abc")
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(each) for each in outcomes] == [EngineUnavailableError] * 3
    await engine.commit(1, "p", insert("a").commit())


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_processes_overtake_each_other_no_more_once_they_bind_late(open_engine: Open, scripts: bool) -> None:
    engines = [open_engine(scripts=scripts) for _ in range(4)]

    async def write(engine: PostgresEngine, number: int) -> None:
        await engine.commit(1, "p", insert(f"{id(engine)} {number}").commit())

    for engine in engines:
        await engine.start()
    await asyncio.gather(*(write(engine, number) for engine in engines for number in range(20)))
    before = sum(map(overtaken, engines))
    for engine in engines:
        contention = (await engine._ensure_started()).contention
        for _ in range(STATEMENTS):
            contention.note_overtaken((1, b"p"), 0)
        assert contention.binds_late((1, b"p"))
    await asyncio.gather(*(write(engine, number) for engine in engines for number in range(20, 40)))
    assert sum(map(overtaken, engines)) == before


# What is remembered.


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


P = (1, b"p")


def test_a_partition_is_contended_for_some_time() -> None:
    time = Time()
    contention = Contention(time)
    contention.note_overtaken(P, 3)
    assert not contention.is_contended(P), "a single statement was overtaken"
    statements(contention, 1)
    assert contention.is_contended(P)
    assert not contention.is_contended((2, b"p"))
    time.now += CONTENDED_SECONDS[0]
    assert not contention.is_contended(P)
    contention.note_overtaken(P, 4)
    assert contention.is_contended(P), "it goes on"
    assert contention.counters() == {"overtaken_rows_total": 7 + STATEMENTS, "forwarded_rows_total": 0}


@pytest.mark.parametrize(("seconds", "contended"), [(0.01, 5.0), (0.2, 20.0), (4.0, 60.0)])
def test_the_longer_statements_take_the_longer_a_partition_is_contended(seconds: float, contended: float) -> None:
    time = Time()
    contention = Contention(time)
    for _ in range(STATEMENTS):
        contention.note_overtaken(P, 1, seconds)
    time.now += contended - 0.5
    assert contention.is_contended(P)
    time.now += 0.5
    assert not contention.is_contended(P)


def statements(contention: Contention, overtaken: float, count: int = STATEMENTS) -> None:
    """Note statements, of which a share is overtaken, evenly."""
    for number in range(count):
        if int((number + 1) * overtaken) > int(number * overtaken):
            contention.note_overtaken(P, 1)
        else:
            contention.note_written([P])


@pytest.mark.parametrize(("share", "many"), [(0, False), (0.05, False), (0.1, False), (0.5, True), (1, True)])
def test_a_partition_is_contended_where_many_statements_are_overtaken(share: float, many: bool) -> None:
    contention = Contention(Time())
    statements(contention, share)
    assert (contention.binds_late(P), contention.is_contended(P)) == (many, many)


def test_a_partition_that_is_overtaken_no_more_is_forgotten() -> None:
    contention = Contention(Time())
    contention.note_overtaken(P, 1)
    statements(contention, 0)
    assert not contention._overtaken


def test_commits_are_bound_late_for_some_time() -> None:
    time = Time()
    contention = Contention(time)
    statements(contention, 0.5)
    time.now += LATE_SECONDS
    assert not contention.binds_late(P)
    statements(contention, 0, 10)
    assert not contention.binds_late(P)
    statements(contention, 0.5)
    assert contention.binds_late(P)


def test_what_is_remembered_is_bounded() -> None:
    contention = Contention(Time())
    for number in range(PARTITIONS_MAX + 1):
        contention.note_overtaken((number, b"p"), 1)
    assert len(contention._overtaken) == PARTITIONS_MAX
    assert (0, b"p") not in contention._overtaken
