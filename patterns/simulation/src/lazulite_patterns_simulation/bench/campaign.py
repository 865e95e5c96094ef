"""A large load with faults, in processes that are killed and started again, and a look at what they left."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from azure.data.tables import TableClient

from lazulite_patterns import FileCheckpoint
from lazulite_patterns.bulk import Limits, State, load
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation.bench.compare import table

STEP = 7919
"""The partitions of rows that follow each other are so far apart."""


class Settings(NamedTuple):
    """What is loaded."""

    rows: int
    partitions: int
    faults: float
    kills: int
    seed: int
    buffer: int = 0
    """Rows in memory; 0 for a quarter of them, and as many as `Limits` says at most."""


class Faults:
    """Failpoints: a part of all requests fails, before or after."""

    def __init__(self, part: float) -> None:
        """Take the part, as 0.05 for 5 %."""
        self._part, self._random, self._lock = part, Random(os.getpid()), threading.Lock()  # noqa: S311

    def before(self, effect: Effect[object]) -> None:  # noqa: ARG002 - any effect
        """Fail a half of them without sending."""
        if self._drawn():
            raise ResultUnknown("503", retry_after_seconds=0)

    def after(self, effect: Effect[object]) -> None:  # noqa: ARG002 - any effect
        """Lose the answer of the other half."""
        if self._drawn():
            raise ResultUnknown("lost")

    def _drawn(self) -> bool:
        with self._lock:
            return self._random.random() < self._part / 2


def source(settings: Settings) -> Iterator[Bag]:
    """Yield the rows: those of a partition are far from each other."""
    for number in range(settings.rows):
        partition = number * STEP % settings.partitions
        yield Bag(
            PartitionKey=f"p{partition:06}",
            RowKey=f"{number:09}",
            Number=number,
            Name="Ann Jones",
            Email=f"ann.jones.{number}@contoso.com",
        )


def load_once(client: TableClient, settings: Settings, checkpoint: Path) -> None:
    """Load, from the checkpoint on, and print what it took."""
    import resource  # noqa: PLC0415 - not on Windows

    rows = Table(client, Bag, runtime=Runtime(failpoints=Faults(settings.faults)))
    limits = Limits(buffer_entities=settings.buffer or max(1000, min(Limits().buffer_entities, settings.rows // 4)))
    report = load(rows, source(settings), limits=limits, checkpoint=FileCheckpoint(checkpoint))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"peak_mib": peak, "failed": len(report.failures), "transactions": report.progress.transactions}))


def run(connection_string: str, settings: Settings) -> bool:
    """Load in processes of which the first ones are killed; print what was found, and return whether it is right."""
    random = Random(settings.seed)  # noqa: S311 - it decides when to kill
    with table(connection_string) as client, tempfile.TemporaryDirectory() as folder:
        checkpoint, started = Path(folder) / "load.json", time.monotonic()
        command = [sys.executable, "-m", "lazulite_patterns_simulation.bench"]
        command += ["load-once", client.table_name, str(checkpoint)]
        command += [f"--{name}={value}" for name, value in settings._asdict().items()]
        environment = {**os.environ, "PATTERNS_CONNECTION_STRING": connection_string}
        for number in range(settings.kills):
            goal = settings.rows * (number + random.random()) / settings.kills
            _kill_at(command, environment, checkpoint, goal)
            print(f"killed after row {State.of(FileCheckpoint(checkpoint).load()).rows_done}", flush=True)
        ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
        seconds = time.monotonic() - started
        lost, strange = _compared(client, settings)
    found = json.loads(ended.stdout.splitlines()[-1])
    print(f"{settings.rows} rows, {seconds:.0f} s, {found}, {lost} lost, {strange} strange", flush=True)
    return not (lost or strange or found["failed"])


def _kill_at(command: list[str], environment: dict[str, str], checkpoint: Path, goal: float) -> None:
    """Start a process, and kill it when its checkpoint is at a row."""
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        while process.poll() is None and State.of(FileCheckpoint(checkpoint).load()).rows_done < goal:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)


def _compared(client: TableClient, settings: Settings) -> tuple[int, int]:
    """Return how many rows are absent, and how many are not as they shall be."""
    seen, strange = bytearray(settings.rows), 0
    for each in client.list_entities(select=["PartitionKey", "RowKey", "Number"]):
        number = each["Number"]
        strange += (each["PartitionKey"], each["RowKey"]) != (
            f"p{number * STEP % settings.partitions:06}",
            f"{number:09}",
        )
        seen[number] = 1
    return settings.rows - sum(seen), strange
