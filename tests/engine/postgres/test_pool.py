"""Connections: bounded, kept, and replaced when they are lost."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing

import pytest
from asyncpg.transaction import Transaction

from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineError, EngineUnavailableError, KeyRange
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.pool import Pool
from tests.engine.postgres.conftest import OURS, Open, execute, execute_on_nodes
from tests.postgres.server import SECONDS_MAX

Surround = Callable[[Pool], AbstractAsyncContextManager[Connection]]

_OURS = "application_name = 'lazulite' AND datname = current_database() AND pid <> pg_backend_pid()"
COUNT = f"SELECT count(*) FROM pg_stat_activity WHERE {_OURS}"
PIDS = f"SELECT pid FROM pg_stat_activity WHERE {_OURS}"
CUT = f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {_OURS}"


async def test_there_are_never_more_connections_than_allowed(open_engine: Open) -> None:
    engine = open_engine(connections_max=3)
    await engine.start()

    async def work(number: int) -> None:
        await engine.commit(1, f"p{number}", changing(["r"], lambda *_: {"r": b"x"}))
        await engine.get(1, f"p{number}", "r")
        async for _ in engine.scan(1, [KeyRange(("", ""), None)], 5):
            pass

    await asyncio.gather(*(work(number) for number in range(40)))
    assert 1 <= int(str(execute(OURS)[0][0])) <= 3
    await engine.close()
    while execute(OURS)[0][0]:  # The server takes a moment to notice.
        continue


async def test_reads_go_on_by_themselves_when_idle_connections_were_cut(open_engine: Open) -> None:
    engine = open_engine()
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"}))
    for _ in range(3):
        assert all(cut for (cut,) in execute(CUT))
        assert await engine.get(1, "p", "r") == b"x"


async def test_a_failed_statement_costs_no_connection(open_engine: Open) -> None:
    engine = open_engine(connections_max=1)
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"}))
    execute("ALTER TABLE lazulite.rows ADD CONSTRAINT never CHECK (space <> 2)")
    before = execute(PIDS)
    with pytest.raises(Exception, match="the database rejected"):
        await engine.commit(2, "p", changing(["r"], lambda *_: {"r": b"x"}))
    assert await engine.get(1, "p", "r") == b"x"
    assert execute(PIDS) == before


async def test_a_cancelled_statement_costs_no_connection_and_is_not_repeated(open_engine: Open) -> None:
    engine = open_engine(connections_max=1)
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"}))
    before = execute_on_nodes(PIDS)
    async with open_engine()._pool.connection() as other, other.transaction():
        await other.execute("LOCK TABLE lazulite.rows")
        read = asyncio.create_task(engine.get(1, "p", "r"))
        cancel = f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {_OURS} AND wait_event_type = 'Lock'"
        while not execute_on_nodes(cancel):  # noqa: ASYNC110 - there is no event to wait for.
            await asyncio.sleep(0)
        async with asyncio.timeout(SECONDS_MAX):
            with pytest.raises(EngineUnavailableError, match="canceling"):
                await read
        assert set(before) <= set(execute_on_nodes(PIDS))


async def test_an_abandoned_scan_gives_its_connection_back(open_engine: Open) -> None:
    engine = open_engine(connections_max=1)
    rows = [f"{number:04}" for number in range(3000)]
    await engine.commit(1, "p", changing(rows, lambda *_: dict.fromkeys(rows, b"x")))
    before = execute(PIDS)
    for _ in range(3):
        scan = engine.scan(1, [KeyRange(("", ""), None)])
        await anext(scan)
        await scan.aclose()
    assert await engine.get(1, "p", "0000") == b"x"
    assert execute(PIDS) == before


async def test_scans_leave_connections_to_others(open_engine: Open) -> None:
    engine = open_engine(connections_max=4)
    rows = [f"{number:04}" for number in range(3000)]
    await engine.commit(1, "p", changing(rows, lambda *_: dict.fromkeys(rows, b"x")))
    begun = asyncio.Semaphore(0)

    async def dwell() -> None:
        async with aclosing(engine.scan(1, [KeyRange(("", ""), None)])) as scan:
            await anext(scan)
            begun.release()
            await asyncio.Event().wait()

    scans = [asyncio.create_task(dwell()) for _ in range(5)]
    try:
        async with asyncio.timeout(SECONDS_MAX):
            for _ in range(2):
                await begun.acquire()
            await engine.commit(1, "p", changing(["s"], lambda *_: {"s": b"x"}))
            assert await engine.get(1, "p", "s") == b"x"
        assert begun.locked()
    finally:
        for scan in scans:
            scan.cancel()
        await asyncio.wait(scans)


async def test_wait_for_a_connection_is_bounded(open_engine: Open) -> None:
    await open_engine().start()  # To make the tables may take longer than that.
    engine = open_engine(connections_max=1, statement_seconds=0.5)
    await engine.start()
    async with engine._pool.connection(), asyncio.timeout(SECONDS_MAX):
        with pytest.raises(EngineUnavailableError, match="in use"):
            await engine.get(1, "p", "0000")


async def test_a_caller_who_leaves_does_not_take_the_connection_along(open_engine: Open) -> None:
    engine = open_engine(connections_max=1)
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"}))
    for _ in range(20):
        call = asyncio.create_task(engine.get(1, "p", "r"))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
    assert await engine.get(1, "p", "r") == b"x"


async def test_while_the_database_is_away_most_are_reported_at_once(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(dsn="postgresql://nobody@127.0.0.1:1/nothing")
    tried = []
    connect = engine._pool._sessions._opener._connect

    async def counted() -> object:
        tried.append(1)
        return await connect()

    monkeypatch.setattr(engine._pool._sessions._opener, "_connect", counted)
    for _ in range(20):
        with pytest.raises(EngineUnavailableError):
            await engine.get(1, "p", "r")
    assert len(tried) < 20


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("08006", "connection to the remote node failed"),
        ("XX000", "could not commit transaction for shard 102062 on at least one active node"),
        ("XX000", "postmaster was shut down, exiting"),
    ],
)
async def test_a_coordinator_that_cannot_reach_a_worker_is_not_lost(
    open_engine: Open, state: str, message: str
) -> None:
    engine = open_engine()
    await asyncio.gather(
        *(engine.commit(1, f"p{number}", changing(["r"], lambda *_: {"r": b"x"})) for number in range(5))
    )
    before = execute(PIDS)
    reported = f"DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{state}'; END $$"
    for _ in range(3):
        with pytest.raises(EngineUnavailableError, match=message):
            await engine._pool.fetch(reported)
    assert execute(PIDS) == before


async def test_no_statement_is_let_go_of_by_a_clock(open_engine: Open) -> None:
    """The round trip for that has no time limit: on a silent host, the next caller would wait forever."""
    engine = open_engine()
    await engine.get(1, "p", "r")
    async with engine._pool.connection() as connection:
        assert connection._config.max_cached_statement_lifetime == 0  # type: ignore[attr-defined]  # not public


class _Slow:
    """A connection that closes only when all others are about to."""

    def __init__(self, barrier: asyncio.Barrier) -> None:
        self._barrier = barrier

    async def close(self, *, timeout: float) -> None:  # noqa: ASYNC109 - asyncpg's
        async with asyncio.timeout(timeout):
            await self._barrier.wait()


async def test_idle_connections_are_closed_together(open_engine: Open) -> None:
    engine, barrier = open_engine(connect_seconds=SECONDS_MAX), asyncio.Barrier(5)
    engine._pool._sessions._idle = [_Slow(barrier) for _ in range(5)]  # type: ignore[misc]  # all that is asked of them
    async with asyncio.timeout(SECONDS_MAX):
        await engine._pool.close()
    assert barrier.n_waiting == 0


@pytest.mark.parametrize("surround", [Pool.transaction, Pool.snapshot])
async def test_connection_lost_in_a_transaction_is_not_rolled_back(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch, surround: Surround
) -> None:
    pool, kept, reported = open_engine()._pool, list[Connection](), list[Transaction]()

    async def rollback(transaction: Transaction) -> None:
        reported.append(transaction)

    async def lose(failure: BaseException) -> None:
        async with surround(pool) as connection:
            kept.append(connection)
            raise failure

    monkeypatch.setattr(Transaction, "rollback", rollback)
    with pytest.raises(EngineUnavailableError):
        await lose(TimeoutError())
    with pytest.raises(asyncio.CancelledError):
        await lose(asyncio.CancelledError())
    assert all(connection.is_closed() for connection in kept)
    assert not reported


@pytest.mark.parametrize("surround", [Pool.transaction, Pool.snapshot])
async def test_a_transaction_that_is_rejected_is_undone_and_keeps_its_connection(
    open_engine: Open, surround: Surround
) -> None:
    pool = open_engine(connections_max=1)._pool
    pids = []

    async def be_rejected() -> None:
        async with surround(pool) as connection:
            pids.append(await connection.fetchval("SELECT pg_backend_pid()"))
            await connection.fetch("SELECT * FROM nothing_of_that_name")

    for _ in range(3):
        with pytest.raises(EngineError, match="does not exist"):
            await be_rejected()
    assert len(set(pids)) == 1
