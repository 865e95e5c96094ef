"""PostgreSQL servers, and databases on them.

Invariant: a server of our own listens on loopback only, wants a password, and keeps what it acknowledged, unless a
test says otherwise.
"""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import cache, partial
from pathlib import Path
from tempfile import gettempdir
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlsplit

import asyncpg

from . import guard
from .programs import programs
from .shelter import shelter

CITUS = os.environ.get("LAZULITE_TEST_CITUS", "")
"""The URL of a Citus coordinator; empty: there is none. Its databases belong to the user that runs the tests."""
USER = "lazulite"
HOST = "127.0.0.2"
"""Connections to it come from 127.0.0.1, so none can have taken a server's port when that starts again."""
SECONDS_MAX = 60
SHARDS = 6
"""Of a table on Citus: enough for several on each worker, and few enough to make for each test."""
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "dynamic_shared_memory_type": "mmap",  # In the server's directory, so it goes with it.
    "shared_buffers": "32MB",
    "fsync": "on",
    "synchronous_commit": "on",
}


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition that no event signals."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"waited {SECONDS_MAX} s for {what}"
        time.sleep(0.01)


class Postgres:
    """A running server; `administration` is a DSN that may create databases."""

    def __init__(self, administration: str) -> None:
        self._url = urlsplit(administration)

    def dsn(self, database: str | None = None, *others: "Postgres") -> str:
        """Return a DSN of a database, on this server or the first of the others that will do."""
        place = ",".join([self._url.netloc, *(other._url.netloc.rpartition("@")[2] for other in others)])
        return self._url._replace(netloc=place, path=self._url.path if database is None else f"/{database}").geturl()

    @property
    def address(self) -> tuple[str, int]:
        """Its host and port."""
        return self._url.hostname or HOST, self._url.port or 5432

    def execute(
        self, statement: str, *arguments: object, database: str | None = None, after: str = ""
    ) -> list[asyncpg.Record]:
        """Execute a statement, on a connection of its own; may be called with or without a running event loop.

        Args:
            statement: in SQL.
            arguments: its parameters.
            database: that of the DSN if it is None.
            after: what the connection executes first.
        """

        async def run() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(self.dsn(database), timeout=SECONDS_MAX)
            try:
                if after:
                    await connection.execute(after)
                return await connection.fetch(statement, *arguments)
            finally:
                await connection.close()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, run()).result()

    def create_database(self) -> str:
        """Create a database; return its name."""
        name = f"test_{secrets.token_hex(8)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def databases(self) -> list[str]:
        """Return the names of the databases that were created so and are there."""
        return [each[0] for each in self.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%'")]

    def drop_database(self, name: str) -> None:
        """Drop a database, and its connections."""
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def database(self) -> Iterator[str]:
        """Yield the DSN of a database that is there for as long as the block."""
        name = self.create_database()
        try:
            yield self.dsn(name)
        finally:
            self.drop_database(name)


class Coordinator(Postgres):
    """A coordinator of Citus that runs. Its databases have the extension, and each worker has its part of them."""

    def create_database(self) -> str:
        """Create a database on every node; return its name.

        Nodes that join several databases at once fail (`failure on connection marked as essential`).
        """
        with Path(gettempdir(), "lazulite-citus.lock").open("w") as alone:
            flock(alone, LOCK_EX)
            return self._create_database()

    def _create_database(self) -> str:
        workers = self.workers()
        name = super().create_database()
        for worker in workers:
            worker.execute(f"CREATE DATABASE {name}")
            worker.execute("CREATE EXTENSION citus", database=name)
        self.execute("CREATE EXTENSION citus", database=name)
        self.execute(f"ALTER DATABASE {name} SET citus.shard_count = {SHARDS}")
        self.execute("SELECT citus_set_coordinator_host($1, $2)", *self.address, database=name)
        for worker in workers:
            self.execute("SELECT citus_add_node($1, $2)", *worker.address, database=name)
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database on every node, and its connections."""
        for each in (self, *self.workers()):
            until(partial(_drop, each, name), "the extension's own sessions to leave the database")

    def workers(self) -> list[Postgres]:
        """Return the workers, in the order of their addresses."""
        nodes = self.execute(
            "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' AND groupid <> 0 ORDER BY 1, 2"
        )
        user = self._url.netloc.rpartition("@")[0]
        return [Postgres(self._url._replace(netloc=f"{user}@{host}:{port}").geturl()) for host, port in nodes]


def _drop(node: Postgres, name: str) -> bool:
    try:
        node.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    except asyncpg.ObjectInUseError:
        return False
    return True


class PostgresServer(Postgres):
    """A server of our own, in a directory of the shelter. The caller of `make` closes it."""

    def __init__(self, directory: Path, password: str) -> None:
        """Take the place of a server whose data is in `directory`, not started yet."""
        with socket.socket() as free:
            free.bind((HOST, 0))
            self._port = int(free.getsockname()[1])
        super().__init__(f"postgresql://{USER}:{quote(password)}@{HOST}:{self._port}/postgres")
        self._password = password
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def make(cls, parent: Path | None = None, *, password: str = "", **settings: str) -> Self:
        """Make a server, and start it.

        Args:
            parent: the directory that its own is made in; None: where temporary files go.
            password: of its user; "": any.
            settings: added to SETTINGS, or override them.
        """
        server = cls(_new_directory(parent), password or secrets.token_urlsafe())
        file = server._directory / "password"
        file.write_text(server._password)
        programs().own(file)
        options = ("--auth=scram-sha-256", "--no-locale", "--encoding=UTF8", "--no-sync", "--no-instructions")
        server._run("initdb", f"--pgdata={server._data}", f"--username={USER}", f"--pwfile={file}", *options)
        file.unlink()
        server._configure({**SETTINGS, **settings})
        server.start()
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def log(self) -> str:
        """What it has said."""
        return (self._directory / "log").read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        """The id of its first process, which all others are children of."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, and return when it accepts connections."""
        self._process = self._popen("postgres", "-D", self._data, "-p", str(self._port))
        until(self._ready, "PostgreSQL to start")

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"PostgreSQL did not start; it said:\n{self.log}"
        try:
            lines = (self._data / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return False
        return lines[0] == str(self._process.pid) and lines[-2].strip() == "ready"

    def stop(self) -> None:
        """Stop in order, without waiting for clients."""
        self._end(lambda process: process.send_signal(signal.SIGINT), 0)

    def kill(self) -> None:
        """Kill every process of it at once."""
        self._end(lambda process: guard.kill(self._data), -signal.SIGKILL)

    def pause(self) -> None:
        """Make it silent without ending it, as a machine whose cable is pulled."""
        guard.send(self._data, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a pause."""
        guard.send(self._data, signal.SIGCONT)

    def _end(self, end: Callable[["subprocess.Popen[bytes]"], None], code: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process)
            assert process.wait(SECONDS_MAX) == code, f"PostgreSQL ended with {process.returncode}:\n{self.log}"

    def make_standby(self) -> "PostgresServer":
        """Make and start a standby, without which this server will acknowledge no commit from now on."""
        standby = type(self)(_new_directory(), self._password)
        slot = f"standby_{standby._port}"
        standby._run(
            "pg_basebackup",
            *(f"--dbname={self.dsn()}", f"--pgdata={standby._data}", f"--slot={slot}"),
            *("--create-slot", "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"),
            PGPASSWORD=self._password,
        )
        standby.start()
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        until(lambda: self._synchronous, "the standby to be synchronous")
        return standby

    @property
    def _synchronous(self) -> bool:
        return bool(self.execute("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def promote(self) -> None:
        """Make this standby a primary; return when it is one."""
        self.execute("SELECT pg_promote(false)")
        until(self._is_primary, "the standby to be a primary")

    def _is_primary(self) -> bool:
        try:
            return not self.execute("SELECT pg_is_in_recovery()")[0][0]
        except asyncpg.SerializationError:  # What it replays can end a query.
            return False

    def close(self) -> None:
        """End it, and remove all that it kept."""
        process, self._process = self._process, None
        guard.remove(self._directory)
        if process is not None:
            process.wait()

    def _configure(self, settings: dict[str, str]) -> None:
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _run(self, program: str, *arguments: str | Path, **variables: str) -> None:
        process = self._popen(program, *arguments, **variables)
        try:
            assert process.wait(SECONDS_MAX) == 0, f"{program} failed:\n{self.log}"
        finally:
            process.kill()  # Or a late one would be found running in a later test.
            process.wait()

    def _popen(self, program: str, *arguments: str | Path, **variables: str) -> "subprocess.Popen[bytes]":
        with (self._directory / "log").open("ab") as log:
            return programs().popen(program, *arguments, log=log, cwd=self._directory, variables=variables)


def _new_directory(parent: Path | None = None) -> Path:
    """A directory for one server, whose data may go into its `data` and nowhere else."""
    directory = shelter(parent) / f"server-{secrets.token_hex(4)}"
    directory.mkdir()
    (directory / "data").mkdir(0o700)
    programs().own(directory / "data")
    return directory


@cache
def shared() -> Postgres:
    """Return the server that all tests of a run share.

    LAZULITE_TEST_CITUS names a coordinator, LAZULITE_TEST_POSTGRES a server; without both it is one of our own.
    """
    if CITUS:
        return Coordinator(CITUS)
    named = os.environ.get("LAZULITE_TEST_POSTGRES")
    return Postgres(named) if named else PostgresServer.make()


def empty_database() -> str:
    """Return the DSN of an empty database, which tests use one after the other: to make one takes much longer."""
    dsn = _reused()
    until(partial(_empty, dsn.rpartition("/")[2]), "the workers to let the tables be dropped")
    return dsn


def _empty(database: str) -> bool:
    try:
        shared().execute("DROP SCHEMA IF EXISTS lazulite CASCADE", database=database)
    except asyncpg.InternalServerError:  # A session of a worker changed a table at that moment.
        return False
    return True


@cache
def _reused() -> str:
    return shared().dsn(shared().create_database())
