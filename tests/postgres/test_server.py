"""The servers that other tests rely on: they keep what they acknowledge, and nothing of them stays behind."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.postgres import guard
from tests.postgres.server import Postgres, PostgresServer, until

MAKE_AND_DIE = """
import os
from tests.postgres.server import PostgresServer
from tests.postgres.shelter import shelter
PostgresServer.make()
print(shelter(), flush=True)
os.kill(os.getpid(), {number})
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer.make() as server:
        yield server


def test_databases_are_apart_and_go(postgres: Postgres) -> None:
    with postgres.database() as one, postgres.database() as other:
        names = [dsn.rpartition("/")[2] for dsn in (one, other)]
        postgres.execute("CREATE TABLE t (n int)", database=names[0])
        with pytest.raises(asyncpg.UndefinedTableError):
            postgres.execute("SELECT * FROM t", database=names[1])
    left = postgres.execute("SELECT FROM pg_database WHERE datname = ANY($1)", names)
    assert left == []


def test_acknowledged_writes_survive_stops_and_kills(server: PostgresServer) -> None:
    server.execute("CREATE TABLE kept (n int)")
    for number, end in enumerate((server.stop, server.kill)):
        server.execute("INSERT INTO kept VALUES ($1)", number)
        end()
        with pytest.raises(ConnectionRefusedError):
            server.execute("SELECT")
        server.start()
    assert [row["n"] for row in server.execute("SELECT n FROM kept ORDER BY n")] == [0, 1]


def test_it_flushes_before_it_acknowledges(server: PostgresServer) -> None:
    assert [server.execute(f"SHOW {name}")[0][0] for name in ("fsync", "synchronous_commit")] == ["on", "on"]


async def test_it_wants_the_password(server: PostgresServer) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(server.dsn(), password="wrong")


def test_a_standby_has_all_that_the_primary_acknowledged() -> None:
    with PostgresServer.make() as primary, primary.make_standby() as standby:
        primary.execute("CREATE TABLE kept (n int)")
        standby.kill()

        async def insert() -> None:
            connection = await asyncpg.connect(primary.dsn())
            with pytest.raises(TimeoutError):
                await connection.execute("INSERT INTO kept VALUES (1)", timeout=0.1)
            connection.terminate()

        asyncio.run(insert())
        standby.start()
        primary.execute("INSERT INTO kept VALUES (2)")
        primary.kill()
        standby.promote()
        standby.execute("INSERT INTO kept VALUES (3)")
        assert {2, 3} <= {row["n"] for row in standby.execute("SELECT n FROM kept")}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_who_made_it(number: signal.Signals) -> None:
    made = subprocess.run(
        [sys.executable, "-c", MAKE_AND_DIE.format(number=int(number))],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert made.returncode == -number
    shelter = Path(made.stdout.strip())
    until(lambda: not shelter.exists(), "the shelter to go")
    assert guard.processes(shelter) == []
