"""pgbench as load generator: the statements of a point read and of a single insert, each its own transaction.

They are the engine's for one row (`lazulite.engine.postgres.sql_statements`), prepared, with keys and values of the
same sizes, on the engine's own tables (`benchmarks/sql`). pgbench cannot pad numbers with zeros, so those of keys have
one digit more, and the first is cut off. An insert has the next number, and the partition that follows from it, as
`wrk.lua` does it; since clients take turns, none waits for the lock on another's head. A statement that does not
return exactly one row ends the run.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.postgres.programs import programs

from benchmarks.catalogue import KEYS_MAX, WRITE_PARTITIONS
from benchmarks.entities import PARTITION_ROWS
from benchmarks.workload import MARK, BenchmarkError, Limits, Load, Measurement, Workload
from lazulite.engine.postgres.sql_statements import ONE_SESSION_EACH, PLANNED_ONCE, SESSION

THREADS = 2
TRANSACTIONS_MIN = 1000  # A run of fewer is bounded by their number, not by time: pgbench takes one of both.
_ONE_MORE = 10 ** len(MARK)
_SPACE = 1 << 40  # for inserts: no table of the service has this number
_ROW = ":space, 'w:partition', ':number-{:02d}', :number, ':value'"


def point_read(space: int, entities: int) -> Mapping[str, str | int]:
    """Return the variables of a read of one row of a stored table; it visits as many keys as the workload does."""
    keys = min(entities, KEYS_MAX)
    return {"space": space, "keys": keys, "stride": entities // keys, "partition_rows": PARTITION_ROWS}


def single_insert(value_bytes: int) -> Mapping[str, str | int]:
    """Return the variables of the statements that set a partition's head and insert a row."""
    return {"space": _SPACE, "partitions": WRITE_PARTITIONS, "value": "x" * value_bytes}


def loading(dsn: str, script: str, variables: Mapping[str, str | int], *, citus: bool = False, rows: int = 1) -> Load:
    """Return a load that runs a script of `benchmarks/sql` on a database; ROWS in it stands for so many rows.

    It raises a `BenchmarkError` if a statement fails. On Citus, plans are not the same for all arguments. Several
    statements in one message (`\\;`) cannot be prepared.
    """
    session = re.findall(r"SET ([\w.]+) = (\w+)", SESSION + (ONE_SESSION_EACH if citus else PLANNED_ONCE))
    text = (Path(__file__).parent / "sql" / f"{script}.sql").read_text("utf-8")
    text = text.replace("ROWS", ", ".join(f"({_ROW.format(row)})" for row in range(rows)))
    mode = "simple" if "\\;" in text else "prepared"
    environment = {**os.environ, "PGOPTIONS": " ".join(f"-c {name}={value}" for name, value in session)}

    def run(workload: Workload, _port: int, first: int, limits: Limits) -> Measurement:
        clients, seconds = workload.connections, max(1, round(limits.seconds))
        few = limits.requests < TRANSACTIONS_MIN
        bound = f"-t{max(1, limits.requests // clients)}" if few else f"-T{seconds}"
        found = {**variables, "first": _ONE_MORE + first, "clients": clients, "turn": 0}
        command = [_program(), "-n", f"-M{mode}", f"-c{clients}", f"-j{THREADS}", bound]
        command += ["-f", "-", *(f"-D{name}={value}" for name, value in found.items()), dsn]
        done = subprocess.run(
            command, env=environment, input=text, capture_output=True, text=True, check=False, timeout=60 + seconds
        )
        processed = re.search(r"^number of transactions actually processed: (\d+)", done.stdout, re.MULTILINE)
        rate = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
        if done.returncode or processed is None or rate is None:
            raise BenchmarkError(f"pgbench: {done.stdout}{done.stderr}")
        return Measurement(int(processed[1]), 0, int(processed[1]) / float(rate[1]), 0, 0, 0, 0, 0)

    return run


def version() -> str:
    """Return pgbench's version, in words."""
    return subprocess.run([_program(), "--version"], capture_output=True, text=True, check=True).stdout.strip()


def _program() -> str:
    return str(programs().directory / "pgbench")
