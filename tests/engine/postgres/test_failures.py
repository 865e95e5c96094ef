"""The database goes away and comes back, here or elsewhere: nothing acknowledged is lost, and the engine goes on."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

import asyncpg
import pytest

from lazulite.engine.commit import Commit
from lazulite.engine.contract import Engine, EngineError, EngineUnavailableError
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.errors import database_errors, worker_errors
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.load import SPACE, Load, insert
from tests.postgres.server import SECONDS_MAX, PostgresServer, until

CUTS = 5
CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


WORKER = "while executing command on 10.0.0.7:5432"


@pytest.mark.parametrize(
    ("message", "context"),
    [
        ("server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally", WORKER),
        ("could not receive data from server: Connection timed out", WORKER),
        ("could not send data to server: Broken pipe", f"SQL function\n{WORKER}"),
        ("no connection to the server", WORKER),
        ("SSL SYSCALL error: EOF detected", WORKER),
        ("", WORKER),
        ("failure on connection marked as essential: 10.0.0.7:5432", None),
        ("could not commit transaction for shard 102062 on at least one active node", None),
    ],
)
def test_a_worker_that_a_coordinator_lost_is_an_unavailable_database(message: str, context: str | None) -> None:
    with pytest.raises(EngineUnavailableError, match="worker"), database_errors(), worker_errors():
        raise internal_error(message, context)


@pytest.mark.parametrize(
    ("message", "context"),
    [
        ("cache lookup failed for type 17", None),
        ("cache lookup failed for type 17", WORKER),
        ("function said: server closed the connection unexpectedly", WORKER),
        ("server closed the connection unexpectedly", None),
        ("", None),
    ],
)
def test_an_internal_error_otherwise_is_one(message: str, context: str | None) -> None:
    with pytest.raises(EngineError) as caught, database_errors(), worker_errors():
        raise internal_error(message, context)
    assert type(caught.value) is EngineError


def internal_error(message: str, context: str | None) -> asyncpg.PostgresError:
    """What asyncpg makes of a server's XX000."""
    fields = {"S": "ERROR", "C": "XX000", "M": message} | ({} if context is None else {"W": context})
    error = asyncpg.PostgresError.new(fields)
    assert isinstance(error, asyncpg.InternalServerError)
    return error


@asynccontextmanager
async def engine_at(dsn: str, statement_seconds: float = 2, *, scripts: bool = False) -> AsyncIterator[PostgresEngine]:
    settings = PostgresSettings(dsn=dsn, connect_seconds=2, statement_seconds=statement_seconds, scripts=scripts)
    engine = PostgresEngine(settings, system_clock)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


@pytest.fixture(scope="module", name="server")
def _server() -> Iterator[PostgresServer]:
    with PostgresServer.make() as server:
        yield server


class Trouble(NamedTuple):
    """Where it is made."""

    server: PostgresServer
    database: str
    load: Load

    async def execute(self, *statements: str) -> None:
        for each in statements:
            await asyncio.to_thread(self.server.execute, each, database=self.database)


async def connections_are_cut(trouble: Trouble) -> None:
    for _ in range(CUTS):
        await trouble.execute(CUT)
        await trouble.load.gets_on(2)


async def the_server_stops(trouble: Trouble) -> None:
    await asyncio.to_thread(trouble.server.stop)
    await trouble.load.suffers()
    await asyncio.to_thread(trouble.server.start)


async def the_server_crashes(trouble: Trouble) -> None:
    await asyncio.to_thread(trouble.server.kill)
    await trouble.load.suffers()
    await asyncio.to_thread(trouble.server.start)


async def the_server_is_silent(trouble: Trouble) -> None:
    await asyncio.to_thread(trouble.server.pause)
    await trouble.load.suffers()
    await asyncio.to_thread(trouble.server.resume)


async def the_database_is_read_only(trouble: Trouble) -> None:
    await trouble.execute(f"ALTER DATABASE {trouble.database} SET default_transaction_read_only = on", CUT)
    await trouble.load.suffers()
    await asyncio.to_thread(trouble.server.execute, f"ALTER DATABASE {trouble.database} RESET ALL")


async def the_disk_is_full(trouble: Trouble) -> None:
    await trouble.execute(*rejecting("RAISE disk_full"))
    await trouble.load.suffers()
    await trouble.execute("DROP TRIGGER rejection ON lazulite.rows")


def rejecting(statement: str) -> tuple[str, str]:
    """What makes each write of a row run a statement of plpgsql first."""
    return (
        f"CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {statement}; RETURN NEW; END'",
        "CREATE TRIGGER rejection BEFORE INSERT ON lazulite.rows FOR EACH ROW EXECUTE FUNCTION reject()",
    )


TROUBLES = (
    connections_are_cut,
    the_server_stops,
    the_server_crashes,
    the_server_is_silent,
    the_database_is_read_only,
    the_disk_is_full,
)


@pytest.mark.parametrize("make", TROUBLES)
async def test_the_engine_goes_on_by_itself(server: PostgresServer, make: Callable[[Trouble], Awaitable[None]]) -> None:
    with server.database() as dsn:
        async with engine_at(dsn) as engine, Load.on(engine) as load:
            await load.gets_on()
            await make(Trouble(server, dsn.rpartition("/")[2], load))
            await load.gets_on()


@pytest.mark.parametrize("condition", ["serialization_failure", "deadlock_detected"])
async def test_statement_that_the_database_undid_is_repeated(server: PostgresServer, condition: str) -> None:
    with server.database() as dsn:
        async with engine_at(dsn) as engine, Load.on(engine) as load:
            trouble = Trouble(server, dsn.rpartition("/")[2], load)
            await trouble.execute(*rejecting(f"IF random() < 0.01 THEN RAISE {condition}; END IF"))
            await load.gets_on(50)
            assert not any(load.unavailable)


@pytest.mark.parametrize("end", [PostgresServer.kill, PostgresServer.pause])
async def test_a_failover_loses_nothing_acknowledged(end: Callable[[PostgresServer], None]) -> None:
    """The primary dies, or its machine is cut off; the standby is promoted. `-rP` shows how long it takes."""
    with PostgresServer.make() as primary, primary.make_standby() as standby:
        async with engine_at(primary.dsn(None, standby)) as engine, Load.on(engine) as load:
            await load.gets_on()
            began = time.monotonic()
            await asyncio.to_thread(end, primary)
            await load.suffers()
            await asyncio.to_thread(standby.promote)
            promoted = time.monotonic()
            await load.gets_on(1)
            over = time.monotonic()
            print(f"everybody writes {over - began:.2f} s after the end, {over - promoted:.2f} s after the promotion")
            await load.gets_on()


def read_first(rows: Sequence[str]) -> Commit[int]:
    """Do the same, decided on what is there."""
    return replace(insert(rows), preconditions=None)


@pytest.fixture(scope="module", name="pair")
def _pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and its standby."""
    with PostgresServer.make() as primary, primary.make_standby() as standby:
        yield primary, standby


Pair = tuple[PostgresServer, PostgresServer]
KINDS: dict[str, Callable[[Sequence[str]], Commit[int]]] = {"unread": insert, "read": read_first}


@pytest.mark.parametrize("scripts", [False, True])
async def test_reads_do_not_show_commits_that_the_standby_lacks(pair: Pair, scripts: bool) -> None:
    """Giving up on a commit must not cancel it: PostgreSQL would show what a failover then takes back."""
    primary, standby = pair
    space = SPACE + scripts
    async with engine_at(primary.dsn(), scripts=scripts) as engine:
        standby.kill()
        assert await outcomes(engine, space) == [EngineUnavailableError] * 2
        assert [await engine.get(space, name, "r") for name in KINDS] == [None, None]
        assert len(waiting(primary)) == 2
        standby.start()
        await asyncio.to_thread(until, lambda: not waiting(primary), "the standby to have it")
        assert None not in [await engine.get(space, name, "r") for name in KINDS]


@pytest.mark.parametrize("scripts", [False, True])
async def test_commit_with_an_unknown_outcome_is_not_repeated(pair: Pair, scripts: bool) -> None:
    """Where a connection is cut under a commit that waits for the standby, it is done, and that is not reported."""
    primary, standby = pair
    space = SPACE + 2 + scripts
    async with engine_at(primary.dsn(), SECONDS_MAX, scripts=scripts) as engine:
        standby.kill()
        ends = asyncio.create_task(outcomes(engine, space))
        await asyncio.to_thread(until, lambda: len(waiting(primary)) == 2, "the commits to wait for the standby")
        for pid in waiting(primary):
            primary.execute("SELECT pg_terminate_backend($1)", pid)
        await asyncio.to_thread(standby.start)
        assert await ends == [EngineUnavailableError] * 2
        assert None not in [await engine.get(space, name, "r") for name in KINDS]


async def outcomes(engine: Engine, space: int) -> list[type]:
    """Commit a row in each way; return what came of it."""
    calls = [engine.commit(space, name, kind(["r"])) for name, kind in KINDS.items()]
    return [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)]


def waiting(primary: PostgresServer) -> list[int]:
    """The processes that wait for the standby."""
    return [row[0] for row in primary.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")]
