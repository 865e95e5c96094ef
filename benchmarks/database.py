"""A database on a PostgreSQL server of our own: durable, on the disk that is measured."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.postgres.server import Postgres, PostgresServer

from benchmarks.bench import Bench
from benchmarks.entities import PARTITION_ROWS, partition_key
from benchmarks.pgbench import version

SQL = Path(__file__).with_name("sql")
# Beside those that make it durable: the run is not to meet a checkpoint.
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "16GB", "checkpoint_timeout": "30min", "max_connections": "200"}
REPORTED = ("fsync", "synchronous_commit", "full_page_writes", *SETTINGS)


@contextmanager
def served(bench: Bench, name: str = "") -> Iterator[PostgresServer]:
    """Run a server, and note its conditions. Nothing is held on a CPU from now on."""
    bench.plan = replace(bench.plan, pin=False)
    with PostgresServer.make(bench.location.parent, **SETTINGS) as server:
        bench.conditions.append(f"section {bench.section}{name}: {conditions(server)}")
        bench.conditions.append(f"section {bench.section}: {version()}; nothing is held on a CPU")
        yield server


def conditions(server: Postgres) -> str:
    """Return a server's version and settings, in words."""
    settings = [f"{name} {server.execute(f'SHOW {name}')[0][0]}" for name in REPORTED]
    return f"PostgreSQL {server.execute('SHOW server_version')[0][0]}: {', '.join(settings)}"


class Database:
    """A new database on a server, or the one of this name."""

    def __init__(self, server: Postgres, name: str = "") -> None:
        self._server, self.name = server, name or server.create_database()
        self.dsn = server.dsn(self.name)

    def run(self, script: str, **values: object) -> list[tuple[object, ...]]:
        """Execute the statements in a file of `benchmarks/sql`, with values in the place of their names."""
        text = (SQL / f"{script}.sql").read_text("utf-8")
        for name, value in values.items():
            text = text.replace(name, str(value))
        return [tuple(row) for row in self._server.execute(text, database=self.name)]

    def stored(self) -> tuple[int, int]:
        """Return the number of the space, and the bytes of a value, of a table whose first partition is stored."""
        statement = "SELECT space, max(octet_length(value)) FROM lazulite.rows WHERE partition_key = $1 GROUP BY space"
        [(space, value_bytes)] = self._server.execute(statement, partition_key(0).encode(), database=self.name)
        return int(space), int(value_bytes)

    def multiply(self, space: int, entities: int) -> float:
        """Copy the first partition, past the service, until there are so many entities; return the seconds it took."""
        began = time.perf_counter()
        self.run("multiply", SPACE=space, LAST=entities // PARTITION_ROWS - 1)
        for statement in ("VACUUM ANALYZE", "CHECKPOINT"):
            self._server.execute(statement, database=self.name)
        return time.perf_counter() - began

    def sizes_mb(self) -> dict[str, float]:
        """Return the MB of the tables and their indexes on the disk, by name."""
        return {str(name): float(str(mb)) for name, mb in self.run("sizes")}
