"""Measuring for one section: subjects take turns, several rounds, so that noise hits all of them."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypedDict, TypeVar, Unpack

from benchmarks.exchange import probe
from benchmarks.load import run_asyncio
from benchmarks.processes import CLIENT_CPU, Server, can_pin, pinned
from benchmarks.requests import Builder
from benchmarks.rows import CLOSED, FIXED, Row
from benchmarks.subjects import AZURITE, BASELINE, LAZULITE, baseline, start
from benchmarks.workload import NUMBERS_PER_RUN, BenchmarkError, Limits, Load, Measurement, Workload, quantiles

T = TypeVar("T")
B = TypeVar("B", bound=Builder)

FIXED_SHARE = 0.5  # of the same subject's rate in the closed loop before
SHARED_NAP_S = 0.0001  # between looks at the clock, where a client of fixed rates leaves its CPU to another one
FILL_SECONDS_MAX = 300.0


def _option(default: T, text: str) -> T:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Plan:
    """The plan of all measurements. A field with a help text is an option of the command."""

    load: Load = run_asyncio  # in closed loops
    azurite: bool = False  # whether it takes part
    pin: bool = field(default_factory=can_pin)  # whether server and client have a CPU each
    only: str = _option("", "workloads whose name contains this; section table")
    seconds: float = _option(6.0, "of a workload and a subject, over all rounds; half of it of the baseline server")
    rounds: int = _option(3, "in which the subjects take turns")
    entities: int = _option(10_000, "stored for the reads, a multiple of 100")
    big: int = _option(10_000_000, "entities in the big table, a multiple of 100; 0: none")
    postgres: int = _option(10_000_000, "entities on PostgreSQL, beside 10,000, a multiple of 1,000; 0: none")
    messages: int = _option(10_000_000, "in the longest queue; section queue_growth")
    blobs: int = _option(1_000_000, "in the larger container, and as many below one prefix; section blob_growth")
    blocks: int = _option(50_000, "of one list; section blob")
    stream_mb: int = _option(5120, "MiB of an upload or a download; section streams")
    ingest_seconds: float = _option(600.0, "of reads beside ingest")
    max_requests: int = _option(10_000_000, "of one run")


class Contender(NamedTuple):
    """A subject, its server and its workload; the store behind the server."""

    subject: str
    server: Server
    workload: Workload
    store: Server | None = None

    def spent(self) -> Sequence[float | None]:
        """Return processor seconds until now: of the server, of this process and its ended clients, of the store."""
        return self.server.cpu_seconds(), sum(os.times()[:4]), self.store and self.store.cpu_seconds()


class Changes(TypedDict, total=False):
    """Fields of a workload."""

    name: str
    connections: int
    requests: Sequence[bytes]
    variant: str
    load: Load


class Stage(NamedTuple, Generic[B]):
    """A subject that runs, the builder of its requests, and the store behind it."""

    subject: str
    server: Server
    build: B
    store: Server | None = None

    def asked(self, workload: Callable[[B], Workload], **changes: Unpack[Changes]) -> Contender:
        """Return the contender for a workload of the builder, with some other fields."""
        return Contender(self.subject, self.server, replace(workload(self.build), **changes), self.store)

    def must(self, request: bytes, status: int = 201) -> bytes:
        """Send one request that is not measured; return the body of its response."""
        return probe(Workload("preparing", 1, 1, status, [request]), self.server.port)


@dataclass
class Bench:
    """Measures for one section; `rows` is what was found, under `conditions` of its own."""

    plan: Plan
    location: Path
    section: str
    rows: list[Row] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    save: Callable[[], None] = lambda: None  # writes down what was found so far
    _runs: int = 0

    def next_first(self) -> int:
        """Return the first number of another run."""
        self._runs += 1
        return self._runs * NUMBERS_PER_RUN

    def say(self, text: str) -> None:
        """Report progress."""
        print(f"{self.section}: {text}", file=sys.stderr, flush=True)

    @contextmanager
    def stage(
        self, subject: str, build: type[B], count: int = 0, *options: str, place: Path | None = None, engine: str = ""
    ) -> Iterator[Stage[B]]:
        """Run a subject on the store at `place`, or on a new one with so many entities: files, or a database."""
        prefix = f"{self.section}-{subject}-"
        where = () if engine else ("--location", place or tempfile.mkdtemp(prefix=prefix, dir=self.location))
        with start(subject, *where, *options, pin=self.plan.pin, service=build.service, engine=engine) as server:
            stage = Stage(subject, server, build(server.host, count))
            if place is None:
                stage.must(stage.build.create())
            if place is None and count and (load := stage.build.preload()):
                self.say(f"{count:,} entities into {subject}")
                self.store(server, load, count // load.units)
            yield stage

    @contextmanager
    def stages(self, build: type[B], *subjects: str, entities: int | None = None) -> Iterator[list[Stage[B]]]:
        """Run those of the subjects that take part, each with so many entities, or as many as the plan says."""
        count = self.plan.entities if entities is None else entities
        present = [each for each in subjects if each != AZURITE or self.plan.azurite]
        with ExitStack() as stack:
            yield [stack.enter_context(self.stage(each, build, count)) for each in present]

    def store(self, server: Server, workload: Workload, count: int = 0, seconds: float = FILL_SECONDS_MAX) -> Row:
        """Send each of `count` (or all) requests once, or raise a `BenchmarkError`; do not add the row returned."""
        count = count or len(workload.requests)
        row = self.run(Contender(LAZULITE, server, replace(workload, load=run_asyncio)), Limits(seconds, count), 0)
        if row.requests != count or row.errors:
            raise BenchmarkError(f"{workload.name}: only {row.requests - row.errors} of {count} could be stored")
        return row

    def compare(
        self, contenders: Sequence[Contender], *, fixed: bool = False, with_baseline: bool = True, warm_s: float = 0.0
    ) -> None:
        """Measure the same workload of several subjects, and of the baseline server, in turn.

        `fixed`: after each closed loop, the same at a fixed rate. `warm_s`: seconds of unmeasured reads before, at
        most ten times as many as of the measurement. A `BenchmarkError` ends it if the responses are not, or do not
        stay, those that the workload counts.
        """
        server, workload = contenders[0].server, contenders[0].workload
        if self.plan.only not in workload.name:
            return
        self.say(" ".join(f"{workload.name} {workload.variant} × {workload.connections}".split()))
        for each in contenders if warm_s and workload.status == 200 else ():
            self.warm(each, min(warm_s, 10 * self.plan.seconds))
        turns = list(contenders)
        with ExitStack() as stack:
            if with_baseline:
                length = len(probe(workload, server.port, self.next_first()))
                server = stack.enter_context(baseline(workload.status, length, pin=self.plan.pin))
                turns.append(Contender(BASELINE, server, replace(workload, witness=b"")))
            for number in range(self.plan.rounds):
                for contender in turns:
                    seconds = self.plan.seconds / self.plan.rounds / (2 if contender.subject == BASELINE else 1)
                    row = self.measure(contender, seconds, number=number)
                    if fixed:
                        self.measure(contender, seconds, number=number, rate=row.requests / row.seconds * FIXED_SHARE)
        self.save()

    def warm(self, contender: Contender, seconds: float) -> None:
        """Send each request of a workload that reads once, unmeasured, and give up after so many seconds."""
        if count := min(len(contender.workload.requests), self.plan.max_requests):
            patient = replace(contender.workload, load=run_asyncio)
            self.run(contender._replace(workload=patient), Limits(seconds, count), 0)

    def measure(
        self, contender: Contender, seconds: float, number: int = 0, rate: float | None = None, *, shared: bool = False
    ) -> Row:
        """Measure one subject in a closed loop, or at a fixed rate of requests a second, in a round of this number.

        `shared`: other load has the client's CPU too, or has it in the measurement with which this one is compared.
        """
        workload, length = contender.workload, 0
        if workload.requests and workload.follow is None:  # The load is single requests by HTTP.
            length = len(probe(workload, contender.server.port, self.next_first()))
        if rate is not None:
            nap_s = 0.0 if self.plan.pin and not shared else SHARED_NAP_S
            workload = replace(workload, load=partial(run_asyncio, rate=rate, nap_s=nap_s))
        limits = Limits(seconds, self.plan.max_requests)
        row = self.run(contender._replace(workload=workload), limits, self.next_first())
        if row.received_bytes < 0.9 * (row.requests - row.errors) * length:
            raise BenchmarkError(f"{workload.name}: the responses under load are shorter than the first one")
        row = replace(row, mode=CLOSED if rate is None else FIXED, asked_rate=rate, round=number)
        self.rows.append(row)
        return row

    def run(self, contender: Contender, limits: Limits, first: int = 0) -> Row:
        """Run one load, and do not add the row returned."""
        workload, before = contender.workload, contender.spent()
        with pinned(CLIENT_CPU, pin=self.plan.pin):
            found = (workload.load or self.plan.load)(workload, contender.server.port, first, limits)
        pairs = zip(before, contender.spent(), strict=True)
        server_s, client_s, store_s = (None if was is None or now is None else now - was for was, now in pairs)
        row = self.row(workload, contender.subject, found, contender.server)
        return replace(row, server_cpu_s=server_s, client_cpu_s=client_s, store_cpu_s=store_s)

    def row(self, workload: Workload, subject: str, found: Measurement, server: Server | None = None) -> Row:
        """Return the row of a measurement, with the memory of a server."""
        row = Row(self.section, workload.name, subject, workload.variant, workload.connections, units=workload.units)
        rss_mb, peak_mb = (server and server.memory_mb()) or (None, None)
        return replace(row, entities=workload.entities, rss_mb=rss_mb, peak_mb=peak_mb, **found._asdict())

    def note(
        self, name: str, subject: str, seconds: Sequence[float] = (), entities: int = 0, server: Server | None = None
    ) -> None:
        """Add a row about something else than load: the seconds of each of some attempts, or the memory of a server."""
        found = Measurement(len(seconds), 0, sum(seconds), 0, *quantiles(seconds or [0.0]))
        self.rows.append(self.row(Workload(name, 1, 1, 0, [], entities=entities), subject, found, server))
