"""Measuring for one section: subjects take turns, several rounds, so that noise hits all of them."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.catalogue import Catalogue
from benchmarks.exchange import exchange, probe
from benchmarks.load import run_asyncio, run_fixed
from benchmarks.measurement import BenchmarkError, Limits, Load, Measurement, latency
from benchmarks.plan import Plan
from benchmarks.processes import CLIENT_CPU, Counted, Served, Server, pinned
from benchmarks.rows import CLOSED, FIXED, Row
from benchmarks.subjects import FLOOR, floor
from benchmarks.workload import NUMBERS_PER_RUN, Workload

FIXED_SHARE = 0.5
"""A fixed rate is this share of what the same subject did in the closed loop before."""
SHARED_NAP_S = 0.0001
"""Where the client of fixed rates does not have a CPU of its own, it looks at the clock this often."""
PRELOAD_SECONDS_MAX = 300.0


class Contender(NamedTuple):
    """A subject, what is asked of it, and who asks, if it is not the plan's load generator."""

    subject: str
    server: Served
    workload: Workload
    load: Load | None = None


class Spent(NamedTuple):
    """Processor seconds so far: of a server; of this process and of the clients that it ran and that ended."""

    server_s: float | None
    client_s: float
    database_s: float | None = None
    """Of the database behind the server."""

    @classmethod
    def of(cls, server: Counted, database: Counted | None = None) -> "Spent":
        """Return what was spent until now."""
        return cls(server.cpu_seconds(), sum(os.times()[:4]), None if database is None else database.cpu_seconds())


@dataclass
class Bench:
    """Measures for one section; `rows` is what was found, under `conditions` of its own."""

    plan: Plan
    location: Path
    section: str
    database: Counted | None = None
    rows: list[Row] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    _runs: int = 0

    def next_first(self) -> int:
        """Return the first number of another run."""
        self._runs += 1
        return self._runs * NUMBERS_PER_RUN

    def wants(self, workload: Workload) -> bool:
        """Tell whether a workload is to be measured."""
        return self.plan.only in workload.name

    def say(self, text: str) -> None:
        """Tell the one who waits."""
        print(f"{self.section}: {text}", file=sys.stderr, flush=True)

    def compare(self, contenders: Sequence[Contender], *, fixed: bool = False, with_floor: bool = True) -> None:
        """Measure the same workload of several subjects, and of the floor, in turn.

        `fixed`: after each closed loop, the same at a fixed rate.

        Raises:
            BenchmarkError: the answers are not, or do not stay, what the workload counts.
        """
        workload = contenders[0].workload
        if not self.wants(workload):
            return
        self.say(f"{workload.name} {workload.variant} × {workload.connections}".replace("  ", " "))
        lengths = [self._length(each) for each in contenders]
        with ExitStack() as stack:
            turns = list(zip(contenders, lengths, strict=True))
            if with_floor:
                server = stack.enter_context(floor(workload.status, lengths[0], pin=self.plan.pin))
                turns.append((Contender(FLOOR, server, workload), lengths[0]))
            for number in range(self.plan.rounds):
                for contender, length in turns:
                    self._turn(contender, length, number, fixed=fixed)

    def _length(self, contender: Contender) -> int:
        """Return how long an answer is; 0 where it is not asked by HTTP."""
        workload = contender.workload
        return len(probe(workload, contender.server, self.next_first()).body) if workload.requests else 0

    def _turn(self, contender: Contender, length: int, number: int, *, fixed: bool) -> None:
        seconds = self.plan.slice_s / (2 if contender.subject == FLOOR else 1)
        row = self.closed(contender, seconds, length=length, number=number)
        if fixed:
            rate = row.requests / row.seconds * FIXED_SHARE
            self.fixed(contender, seconds, rate, number=number)

    def warm(self, contender: Contender, seconds: float) -> None:
        """Send each request of a workload that reads once, unmeasured, and give up after so many seconds."""
        limits = Limits(seconds, min(len(contender.workload.requests), self.plan.requests))
        with pinned(CLIENT_CPU, pin=self.plan.pin):
            run_asyncio(contender.workload, contender.server.port, 0, limits)

    def closed(self, contender: Contender, seconds: float, *, length: int = 0, number: int = 0, name: str = "") -> Row:
        """Measure one subject in a closed loop. Answers shorter than 0.9 × `length` on average are refused."""
        limits = Limits(seconds, self.plan.requests)
        first = self.next_first()
        load = contender.load or self.plan.load
        before = Spent.of(contender.server, self.database)
        with pinned(CLIENT_CPU, pin=self.plan.pin):
            found = load(contender.workload, contender.server.port, first, limits)
        # A batch that fails inside still says 202, but in fewer bytes.
        if found.received_bytes < 0.9 * found.requests * length:
            raise BenchmarkError(f"{contender.workload.name}: the answers under load are shorter than the first one")
        return self.add(contender, found, before, Row(self.section, name, "", mode=CLOSED, round=number))

    def fixed(
        self, contender: Contender, seconds: float, rate: float, *, number: int = 0, name: str = "", alone: bool = True
    ) -> Row:
        """Measure one subject at a fixed rate; `alone`: the client has its CPU for itself."""
        limits = Limits(seconds, self.plan.requests)
        nap_s = 0.0 if self.plan.pin and alone else SHARED_NAP_S
        first = self.next_first()
        before = Spent.of(contender.server, self.database)
        with pinned(CLIENT_CPU, pin=self.plan.pin):
            found = run_fixed(contender.workload, contender.server.port, first, limits, rate=rate, nap_s=nap_s)
        return self.add(
            contender, found, before, Row(self.section, name, "", mode=FIXED, asked_rate=rate, round=number)
        )

    def add(self, contender: Contender, found: Measurement, before: Spent, row: Row | None = None) -> Row:
        """Note a run, with what it took since `before`; `row` holds how it was done."""
        if found.requests == 0:
            raise BenchmarkError(f"{contender.workload.name}: no request was answered in {found.seconds:.1f} s")
        after, memory = Spent.of(contender.server, self.database), contender.server.memory()
        workload = contender.workload
        row = row or Row(self.section, "", "")
        row = replace(
            row,
            workload=row.workload or workload.name,
            subject=contender.subject,
            variant=workload.variant,
            connections=workload.connections,
            entities=workload.entities,
            requests=found.requests,
            errors=found.errors,
            units=workload.units,
            seconds=found.seconds,
            server_cpu_s=_since(before.server_s, after.server_s),
            client_cpu_s=after.client_s - before.client_s,
            database_cpu_s=_since(before.database_s, after.database_s),
            rss_mb=memory and memory.now_mb,
            peak_mb=memory and memory.peak_mb,
            **found.latency._asdict(),
        )
        self.rows.append(row)
        return row

    def note(
        self, workload: str, subject: str, seconds: Sequence[float], *, entities: int = 0, server: Server | None = None
    ) -> Row:
        """Add a row about something else than load: how long each of some attempts took, or the memory of a server."""
        memory = server and server.memory()
        row = Row(
            self.section,
            workload,
            subject,
            entities=entities,
            requests=len(seconds),
            seconds=sum(seconds),
            rss_mb=memory and memory.now_mb,
            peak_mb=memory and memory.peak_mb,
            **(latency(seconds)._asdict() if seconds else {}),
        )
        self.rows.append(row)
        return row

    def create_table(self, server: Server, catalogue: Catalogue) -> None:
        """Create the table that everything happens in."""
        created = exchange(server.port, catalogue.requests.create_table())
        if created.status != 201:
            raise BenchmarkError(f"creating the table: status {created.status}: {created.body[:500]!r}")

    def store(self, server: Server, workload: Workload, first: int, count: int, seconds: float) -> Measurement:
        """Send each of `count` transactions once, from number `first` on."""
        with pinned(CLIENT_CPU, pin=self.plan.pin):
            found = run_asyncio(workload, server.port, first, Limits(seconds, count))
        if found.requests != count or found.errors:
            raise BenchmarkError(f"{workload.name}: only {found.requests - found.errors} of {count} could be stored")
        return found


def _since(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
