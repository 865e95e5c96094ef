"""pgbench as load generator: the statements of a point read and of a single insert, each its own transaction.

They are those of the engine for one row (`lazulite.engine.postgres.sql_statements`), prepared, with keys and values of
the same sizes, on the engine's own tables. Numbers make the keys: what pgbench cannot do, to pad with zeros, is done by
numbers with one digit more than the key, which is cut off. An insert has the next number, and the partition that
follows from it, as `wrk.lua` does it; since clients take turns, none waits for the lock on another's head.

A statement that does not return exactly one row ends the run.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from tests.postgres.programs import programs

from benchmarks.catalogue import KEYS_MAX, WRITE_PARTITIONS
from benchmarks.entities import PARTITION_ROWS
from benchmarks.measurement import BenchmarkError, Limits, Measurement, latency
from benchmarks.workload import MARK, Workload
from lazulite.engine.postgres.sql_statements import PLANNED_ONCE, SESSION

THREADS = 2
SAMPLED = 0.1
"""The share of transactions whose latency is written down, which costs time."""
TRANSACTIONS_MIN = 1000
"""A run of fewer is bounded by their number, not by time: pgbench takes one of both."""
_ONE_MORE = 10 ** len(MARK)
_SPACE = 1 << 40
"""Where it inserts: no table of the service has this number."""


_READ = f"""\
\\set number random(0, :keys - 1) * :stride
\\set partition 1000000000000 + :number / {PARTITION_ROWS}
\\set row 1000000 + :number % {PARTITION_ROWS}
SELECT value FROM lazulite.rows WHERE space = :space
    AND partition_key = 'r'::bytea || substring(:partition::bytea FROM 2)
    AND row_key = substring(:row::bytea FROM 2) \\gset
"""
_INSERT = f"""\
\\set turn :turn + 1
\\set number :first + :turn * :clients + :client_id
\\set partition 100 + :number % {WRITE_PARTITIONS}
WITH head AS (
    INSERT INTO lazulite.partitions AS known (space, partition_key, stamp)
    VALUES (:space, 'w'::bytea || substring(:partition::bytea FROM 2), :number)
    ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp WHERE known.stamp < :number
    RETURNING space, partition_key
)
INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)
SELECT space, partition_key, substring(:number::bytea FROM 2), :number::bigint, :value::bytea FROM head
ON CONFLICT (space, partition_key, row_key) DO NOTHING
RETURNING stamp \\gset
"""


class Script(NamedTuple):
    """What each transaction does, and the variables of it."""

    text: str
    variables: Mapping[str, str | int]


def point_read(space: int, entities: int) -> Script:
    """Return what reads one row of a table that is stored; it visits as many keys as the workload does."""
    keys = min(entities, KEYS_MAX)
    return Script(_READ, {"space": space, "keys": keys, "stride": entities // keys})


def single_insert(value_bytes: int) -> Script:
    """Return what sets a partition's head and inserts a row."""
    return Script(_INSERT, {"space": _SPACE, "value": "x" * value_bytes})


@dataclass(frozen=True)
class Pgbench:
    """A `Load` that runs a script.

    Attributes:
        dsn: of the database.
        script: what it runs.
    """

    dsn: str = field(repr=False)
    script: Script

    def __call__(self, workload: Workload, _port: int, first: int, limits: Limits) -> Measurement:
        """Run the script on as many connections as the workload has.

        Raises:
            BenchmarkError: a statement failed, or did not return one row.
        """
        clients = workload.connections
        variables = {**self.script.variables, "first": _ONE_MORE + first, "clients": clients, "turn": 0}
        with tempfile.TemporaryDirectory(prefix="lazulite-bench-") as directory:
            script = Path(directory) / "script.sql"
            script.write_text(self.script.text, encoding="ascii")
            few = limits.requests < TRANSACTIONS_MIN
            bound = f"-t{max(1, limits.requests // clients)}" if few else f"-T{max(1, round(limits.seconds))}"
            options = ["-n", "-Mprepared", f"-c{clients}", f"-j{THREADS}", bound, "-f", str(script)]
            options += ["-l", f"--log-prefix={directory}/log", f"--sampling-rate={1 if few else SAMPLED}"]
            options += [f"-D{name}={value}" for name, value in variables.items()]
            done = subprocess.run(
                [_program(), *options],
                env=_environment(self.dsn),
                capture_output=True,
                text=True,
                check=False,
                timeout=limits.seconds + 60,
            )
            latencies = [
                int(line.split()[2]) / 1e6
                for log in Path(directory).glob("log.*")
                for line in log.read_text(encoding="ascii").splitlines()
            ]
        processed = re.search(r"^number of transactions actually processed: (\d+)", done.stdout, re.MULTILINE)
        rate = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
        if done.returncode or processed is None or rate is None or not latencies:
            raise BenchmarkError(f"pgbench: {done.stdout}{done.stderr}")
        requests = int(processed[1])
        return Measurement(requests, 0, requests / float(rate[1]), 0, latency(latencies))


def version() -> str:
    """Return pgbench's version, in words."""
    return subprocess.run([_program(), "--version"], capture_output=True, text=True, check=True).stdout.strip()


def _program() -> Path:
    return programs().directory / "pgbench"


def _environment(dsn: str) -> Mapping[str, str]:
    """Return the environment of a client: where to, and the session's settings that the engine has."""
    url = urlsplit(dsn)
    session = " ".join(f"-c {name}={value}" for name, value in re.findall(r"SET (\w+) = (\w+)", SESSION + PLANNED_ONCE))
    return {
        **os.environ,
        "PGHOST": url.hostname or "",
        "PGPORT": str(url.port),
        "PGUSER": unquote(url.username or ""),
        "PGPASSWORD": unquote(url.password or ""),
        "PGDATABASE": url.path.removeprefix("/"),
        "PGOPTIONS": session,
    }
