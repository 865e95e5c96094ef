"""A PostgreSQL server to measure on: of our own, durable, on the disk that is measured."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg
from tests.postgres.server import PostgresServer

from benchmarks.entities import PARTITION_ROWS, partition_key
from benchmarks.processes import CpuTimes, Memory, cpu_times

SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
}
"""Beside those that make it durable: the run is not to meet a checkpoint."""
TOLD = ("fsync", "synchronous_commit", "full_page_writes", *SETTINGS)
"""The settings that the report names."""
READ_AGAIN_MAX = 100

_TEMPLATE = partition_key(0).encode()
_MORE_ROWS = """
INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)
SELECT space, $1, row_key, stamp, overlay(value PLACING $1 FROM position($2::bytea IN value))
FROM lazulite.rows WHERE space = $3 AND partition_key = $2
"""
_MORE_HEADS = """
INSERT INTO lazulite.partitions (space, partition_key, stamp)
SELECT space, $1, stamp FROM lazulite.partitions WHERE space = $3 AND partition_key = $2
"""
_STORED = "SELECT space, max(octet_length(value)) FROM lazulite.rows WHERE partition_key = $1 GROUP BY space"
_SIZES = """
SELECT relname, pg_relation_size(oid) / 1e6::float8 FROM pg_class
WHERE relnamespace = 'lazulite'::regnamespace AND relname ~ '^(rows|partitions)' ORDER BY relname DESC
"""


class Stored(NamedTuple):
    """What the rows of the table are like: the number of their space, the size of a value."""

    space: int
    value_bytes: int


class Size(NamedTuple):
    """What a table, or an index, takes on the disk."""

    name: str
    mb: float


class Database:
    """The server; its processor time is that of all its processes."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self._server.dsn()).port or 0

    def cpu_seconds(self) -> float | None:
        """See `processes.Counted`."""
        pid = self._server.pid
        if not Path("/proc/self/stat").exists():
            return None
        for _ in range(READ_AGAIN_MAX):
            before = cpu_times(pid)
            children = [_times(int(child)) for child in _children(pid)]
            after = cpu_times(pid)
            if before.ended_children_s == after.ended_children_s:  # or one may be counted twice, or not at all
                return sum(sum(each) for each in (after, *children))
        return None

    def memory(self) -> Memory | None:
        """Say nothing: its processes share most of theirs."""
        return None

    def conditions(self) -> str:
        """Return its version and settings, in words."""
        version = self._server.execute("SHOW server_version")[0][0]
        told = [f"{name} {self._server.execute(f'SHOW {name}')[0][0]}" for name in TOLD]
        return f"PostgreSQL {version}: {', '.join(told)}"

    def make(self) -> str:
        """Make an empty database; return its DSN."""
        return self._server.dsn(self._server.create_database())


@contextmanager
def database(parent: Path) -> Iterator[Database]:
    """Run a server whose directory is made in `parent`."""
    with PostgresServer.make(parent, **SETTINGS) as server:
        yield Database(server)


def stored(dsn: str) -> Stored:
    """Look at a table whose first partition is stored."""
    return Stored(*asyncio.run(_fetch(dsn, _STORED, _TEMPLATE))[0])


def multiply(dsn: str, space: int, entities: int) -> float:
    """Copy the first partition, past the service, until there are so many entities; return the seconds it took."""

    async def run() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            keys = [partition_key(number).encode() for number in range(PARTITION_ROWS, entities, PARTITION_ROWS)]
            for statement in (_MORE_ROWS, _MORE_HEADS):
                await connection.executemany(statement, [(key, _TEMPLATE, space) for key in keys])
            await connection.execute("VACUUM ANALYZE")
            await connection.execute("CHECKPOINT")
        finally:
            await connection.close()

    began = time.perf_counter()
    asyncio.run(run())
    return time.perf_counter() - began


def sizes(dsn: str) -> Sequence[Size]:
    """Return what the tables and their indexes take."""
    return [Size(*each) for each in asyncio.run(_fetch(dsn, _SIZES))]


async def _fetch(dsn: str, statement: str, *arguments: object) -> Sequence[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(statement, *arguments)
    finally:
        await connection.close()


def _children(pid: int) -> Sequence[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()


def _times(pid: int) -> CpuTimes:
    try:
        return cpu_times(pid)
    except OSError:
        return CpuTimes(0.0, 0.0)  # It has ended, and counts as such a child.
