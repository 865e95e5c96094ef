"""Dropped spaces are emptied in bounded steps, by one process at a time, and nothing stays stuck."""

import asyncio
from typing import Any

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres import drops as module
from lazulite.engine.postgres.engine import PostgresEngine
from tests.engine.postgres.conftest import Open, execute
from tests.postgres.server import SECONDS_MAX

_AGE = "UPDATE lazulite.dropped SET since = now() - interval '1 minute'"
_EXPIRE = "UPDATE lazulite.dropped SET leased_until = now() - interval '1 second'"


async def fill(engine: PostgresEngine, space: int) -> None:
    for partition in ("", "p", "q", "é" * 1000):
        rows = ["", *(f"{number:03}" for number in range(24))]
        await engine.commit(space, partition, changing(rows, lambda *_, rows=rows: dict.fromkeys(rows, b"x")))


def left(space: int) -> tuple[int, int]:
    rows = execute("SELECT count(*) FROM lazulite.rows WHERE space = $1", space)[0][0]
    heads = execute("SELECT count(*) FROM lazulite.partitions WHERE space = $1", space)[0][0]
    assert isinstance(rows, int)
    assert isinstance(heads, int)
    return rows, heads


@pytest.mark.parametrize("step", [1, 7, 1000])
async def test_a_space_is_emptied_and_its_neighbours_are_not(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(module, "STEP_ROWS", step)
    engine = open_engine()
    for space in (1, 2, 3):
        await fill(engine, space)
    await engine.drop(2)
    assert not await engine.reclaim(), "others may not know yet"
    execute(_AGE)
    assert await engine.reclaim()
    assert [left(space) for space in (1, 2, 3)] == [(100, 4), (0, 0), (100, 4)]


async def test_a_step_is_bounded(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP_ROWS", 10)
    engine = open_engine()
    await fill(engine, 2)
    await engine.drop(2)
    execute(_AGE)
    counts = []
    fetch = engine._pool.fetch

    async def counted(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        before = left(2)[0]
        found = await fetch(statement, *arguments, reads=reads, **more)
        counts.append(before - left(2)[0])
        return found

    monkeypatch.setattr(engine._pool, "fetch", counted)
    await engine.reclaim()
    assert sum(counts) == 100
    assert max(counts) == 10


async def test_last_step_starts_where_the_one_before_ended(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A space that was large would be gone through once more, dead row by dead row, in a single statement."""
    monkeypatch.setattr(module, "STEP_ROWS", 10)
    engine = open_engine()
    await fill(engine, 2)
    await engine.drop(2)
    execute(_AGE)
    deleted: list[tuple[object, ...]] = []
    fetch = engine._pool.fetch

    async def noted(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        if "DELETE FROM lazulite.rows" in statement:
            deleted.append(arguments)
        return await fetch(statement, *arguments, reads=reads, **more)

    monkeypatch.setattr(engine._pool, "fetch", noted)
    await engine.reclaim()
    *_, step, last = deleted
    assert last == (2, *step[3:])


async def test_lease_of_a_dead_process_expires(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP_ROWS", 10)
    one, other = open_engine(), open_engine()
    await fill(one, 2)
    await one.drop(2)
    execute(_AGE)
    fetch, steps = one._pool.fetch, []

    async def die(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        steps.append(statement)
        if len(steps) > 8:
            raise EngineUnavailableError("dead")
        return await fetch(statement, *arguments, reads=reads, **more)

    monkeypatch.setattr(one._pool, "fetch", die)
    with pytest.raises(EngineUnavailableError):
        await one.reclaim()
    assert 0 < left(2)[0] < 100
    assert not await other.reclaim(), "another process holds the lease"
    execute(_EXPIRE)
    assert await other.reclaim()
    assert left(2) == (0, 0)


async def test_late_rows_are_deleted_before_a_space_is_unlisted(open_engine: Open) -> None:
    one, late = open_engine(), open_engine()
    await fill(late, 2)
    await one.drop(2)
    execute(_AGE)
    assert await one.reclaim()
    await late.commit(2, "p", changing(["r"], lambda *_: {"r": b"late"}))
    assert left(2) == (1, 1)
    execute("UPDATE lazulite.dropped SET since = now() - interval '1 hour', leased_until = now() - interval '1 second'")
    assert await one.reclaim()
    assert left(2) == (0, 0)
    assert execute("SELECT space FROM lazulite.dropped") == []
    assert await one.get(2, "p", "r") is None


async def test_emptied_space_waits_until_it_can_be_unlisted(open_engine: Open) -> None:
    """Otherwise many drops would delay the emptying of new ones."""
    engine = open_engine()
    await engine.drop(2)
    execute(_AGE)
    assert await engine.reclaim()
    assert execute("SELECT leased_until > now() + interval '10 minutes' FROM lazulite.dropped") == [(True,)]
    assert not await engine.reclaim()


async def test_the_background_looks_and_empties(open_engine: Open) -> None:
    engine = open_engine()
    await fill(engine, 2)
    await engine.drop(2)
    execute(_AGE)
    looks = open_engine(drop_poll_seconds=0)
    await looks.start()
    parts = await looks._ensure_started()
    while left(2) != (0, 0):
        assert not any(task.done() for task in parts.periodic.tasks)
        await parts.drops.reload()


async def test_drops_are_read_while_a_large_space_is_emptied(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_engine(drop_poll_seconds=0), open_engine()
    await one.start()
    emptying, fetch = asyncio.Event(), one._pool.fetch

    async def long(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        if statement in module._ROWS:
            emptying.set()
            await asyncio.Event().wait()
        return await fetch(statement, *arguments, reads=reads, **more)

    monkeypatch.setattr(one._pool, "fetch", long)
    await other.drop(2)
    execute(_AGE)
    await emptying.wait()
    await other.drop(3)
    drops = (await one._ensure_started()).drops
    async with asyncio.timeout(SECONDS_MAX):
        while 3 not in drops.closed:  # noqa: ASYNC110 - there is no event to wait for.
            await asyncio.sleep(0)


async def test_an_abandoned_engine_survives_the_database_being_away(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(drop_poll_seconds=0)
    await engine.start()
    tasks = (await engine._ensure_started()).periodic.tasks
    asked = asyncio.Semaphore(0)

    async def away(*_: object, **__: object) -> object:
        asked.release()
        raise EngineUnavailableError("away")

    monkeypatch.setattr(engine._pool, "fetch", away)
    for _ in range(3):
        await asked.acquire()
    assert tasks
    assert not any(task.done() for task in tasks)


async def test_of_two_who_find_a_space_due_one_empties_it(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = open_engine(), open_engine()
    await fill(one, 2)
    await one.drop(2)
    execute(_AGE)
    fetch = other._pool.fetch

    async def late(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        found = await fetch(statement, *arguments, reads=reads, **more)
        if statement == module._DUE:
            assert await one.reclaim()
        return found

    monkeypatch.setattr(other._pool, "fetch", late)
    assert not await other.reclaim()
