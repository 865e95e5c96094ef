"""Writers of indexes with copies and of lists, in processes that are killed; readers and the auditor look meanwhile.

Each writer changes entities at random, until it is killed and another process takes its place. Meanwhile each entity
must be found by each of its indexes, with the copies that were committed. An audit may find superfluous rows only. At
the end, repairs must leave no finding.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from azure.data.tables import TableClient

from lazulite_patterns import Column, Index, Listing, column, entity, partition, row
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.entities import stored_of
from lazulite_patterns.indexes import check as kinds
from lazulite_patterns.outcomes import Conflict, OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.grace import GRACE_SECONDS
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation.bench.compare import table

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient  # An extra: only these writers have lists in blobs.

SUPERFLUOUS = frozenset({kinds.NO_FIT, kinds.NO_FIT_LISTED, kinds.OLD_MARK})
"""What a killed writer may leave: a reader drops it, or reads the entity."""
_REPAIRS_MAX = 3
_IDLE_SECONDS_MAX = 120
"""The longest that the start of processes takes on a busy machine."""


class Settings(NamedTuple):
    """What is done.

    Attributes:
        writers: processes at one time.
        people: entities that they change.
        kills: processes that are killed before the end.
        interval_seconds: between two kills, at most.
        seed: of the times of kills.
    """

    writers: int
    people: int
    kills: int
    interval_seconds: float
    seed: int


class Found(NamedTuple):
    """How often entities were looked up, and what was wrong."""

    looked: int
    wrong: Counter[str]


CONTAINER = "bench-squads"
INDEXES = [
    Index("city", "city", copy=["salary", "team"]),
    Index("pay", "salary", within_partition=True, copy=["city"]),
    Listing("teams", "team", place="table"),
    Listing("cities", "city"),
    Listing("squads", "team", place="blob", container=CONTAINER),
]


@entity(type="BenchWorker", indexes=INDEXES)
class Worker:
    """What is written."""

    department: Column[str] = partition()
    id: Column[int] = row(width=4)
    city: Column[str] = column(default="Rome")
    team: Column[str] = column(default="red")
    salary: Column[int] = column(default=0)


class Clients(NamedTuple):
    """The SDK's clients of the table of workers, and of the container of a list."""

    table: TableClient
    container: "ContainerClient"

    @classmethod
    def of(cls, connection_string: str, client: TableClient) -> "Clients":
        """Return both by the client of the table."""
        from azure.storage.blob import ContainerClient  # noqa: PLC0415 - an extra, as above

        return cls(client, ContainerClient.from_connection_string(connection_string, CONTAINER))


def staff(clients: Clients, runtime: Runtime | None = None) -> Table[Worker]:
    """Return the table of workers."""
    return Table(clients.table, Worker, clients=[clients.container], runtime=runtime)


def everyone(people: int) -> list[Worker]:
    """Return the workers as they are at first."""
    return [Worker("Sales" if number % 2 else "IT", number) for number in range(people)]


def write(clients: Clients, people: int, seed: int) -> None:
    """Change workers until the process is killed."""
    random, workers, rows = Random(seed), everyone(people), staff(clients)  # noqa: S311 - a seed repeats the changes
    while True:
        city, team = random.choice(["Rome", "Oslo", "Bonn"]), random.choice(["red", "blue"])
        change = partial(replace, city=city, team=team, salary=random.randrange(4))
        try:
            rows.update(random.choice(workers), change)
        except (Conflict, OutcomeUnknown, Unavailable):
            continue


def look(rows: Table[Worker], people: int) -> Found:
    """Look each worker up by each index. What was written meanwhile is not compared."""
    found = Found(0, Counter())
    kinds_found = (finding.kind for finding in audit(rows, repair=True))
    found.wrong.update(kind for kind in kinds_found if kind not in SUPERFLUOUS)
    for each in everyone(people):
        before = rows.get(each)
        if before is None:
            found.wrong["entity that is absent"] += 1
            continue
        hits = {
            "city": list(rows.by(index="city", city=before.city)),
            "pay": list(rows.by(index="pay", salary=before.salary, department=before.department)),
            "teams": list(rows.by(index="teams", team=before.team)),
            "squads": list(rows.by(index="squads", team=before.team)),
            "cities": list(rows.by(index="cities", city=before.city, department=before.department)),
        }
        copies = {one.key: one.fields for one in rows.by(index="city", city=before.city).copies()}
        after = rows.get(each)
        stored, later = stored_of(before), stored_of(after)
        if stored is None or later is None or stored.etag != later.etag:
            continue
        found = found._replace(looked=found.looked + 1)
        found.wrong.update(f"not found by {name}" for name, workers in hits.items() if workers.count(before) != 1)
        found.wrong["another copy"] += copies.get(stored.key) != {"salary": before.salary, "team": before.team}
    return Found(found.looked, +found.wrong)


def run(connection_string: str, settings: Settings) -> bool:
    """Let processes write and kill them; print what was found, and return whether it is right."""
    random, started = Random(settings.seed), time.monotonic()  # noqa: S311 - it decides when to kill
    with _created(connection_string) as clients:
        client, rows = clients.table, staff(clients)
        for each in everyone(settings.people):
            rows.insert(each)
        total = Found(0, Counter())
        with _killed_at_the_end(_Processes(connection_string, client.table_name, settings)) as processes:
            for _ in range(settings.kills):
                until = time.monotonic() + random.random() * settings.interval_seconds
                before = _etags(client)
                while True:
                    seen = look(rows, settings.people)
                    total = Found(total.looked + seen.looked, total.wrong + seen.wrong)
                    if time.monotonic() > until and _etags(client) != before:
                        break
                    if time.monotonic() > until + _IDLE_SECONDS_MAX:
                        raise TimeoutError("no process writes")
                processes.replace(random.randrange(settings.writers))
        left = Counter(each.kind for each in audit(rows))
        repaired = _repaired(clients)
        seen = look(rows, settings.people)
        looked, wrong = total.looked + seen.looked, total.wrong + seen.wrong
        wrong.update({kind: number for kind, number in left.items() if kind not in SUPERFLUOUS})
    seconds = time.monotonic() - started
    print(f"{settings.writers} writers, {settings.kills} killed, {seconds:.0f} s, {looked} look-ups", flush=True)
    print(f"left behind: {dict(left)}, after repairs: {repaired}, wrong: {dict(wrong)}", flush=True)
    return not wrong and not repaired and looked > 0


@contextmanager
def _created(connection_string: str) -> Iterator[Clients]:
    with table(connection_string) as client, Clients.of(connection_string, client).container as container:
        container.create_container()
        try:
            yield Clients(client, container)
        finally:
            container.delete_container()


def _etags(client: TableClient) -> set[str]:
    """Return the ETags of the workers: other ones tell that a process writes."""
    return {str(each.metadata["etag"]) for each in client.query_entities("_Type eq 'BenchWorker'")}


def _repaired(clients: Clients) -> int:
    """Repair after the grace; return the number of findings that stay."""
    runtime = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=GRACE_SECONDS + 100))
    rows = staff(clients, runtime)
    for _ in range(_REPAIRS_MAX):
        list(audit(rows, repair=True))
    return len(list(audit(rows)))


class _Processes:
    """The writers."""

    def __init__(self, connection_string: str, name: str, settings: Settings) -> None:
        self._environment = {**os.environ, "PATTERNS_CONNECTION_STRING": connection_string}
        program = [sys.executable, "-m", "lazulite_patterns_simulation.bench"]
        self._command = [*program, "write", name, str(settings.people)]
        self._seeds = count(settings.seed)
        self._running = [self._started() for _ in range(settings.writers)]

    def _started(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([*self._command, str(next(self._seeds))], env=self._environment)  # noqa: S603 - our own

    def replace(self, number: int) -> None:
        """Kill a process, and start another one."""
        _kill(self._running[number])
        self._running[number] = self._started()

    def kill(self) -> None:
        """Kill all of them."""
        for each in self._running:
            _kill(each)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@contextmanager
def _killed_at_the_end(processes: _Processes) -> Iterator[_Processes]:
    try:
        yield processes
    finally:
        processes.kill()
