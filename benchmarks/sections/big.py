"""A table of many entities against a small one: load, operations, start, memory, and reads beside scans and ingest."""

import multiprocessing
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.bench import Bench, Contender, Stage
from benchmarks.catalogue import Catalogue
from benchmarks.entities import PAYLOAD_BYTES, TRANSACTION_ROWS
from benchmarks.load import run_asyncio
from benchmarks.processes import CLIENT_CPU, Server, pinned
from benchmarks.subjects import LAZULITE
from benchmarks.workload import BenchmarkError, Limits

SMALL, BIG = "small", "big"  # variants of the rows for which the two tables took turns
OPERATIONS = (Catalogue.get, Catalogue.ranges, Catalogue.insert, Catalogue.transaction)
BESIDE_CONNECTIONS, BESIDE_RATE = 16, 1000.0  # far from what the service can do alone
WARM_SECONDS_MAX = SCAN_SECONDS_MAX = 60.0
SLACK_SECONDS, SETTLING_SECONDS = 2.0, 2.0
STARTS = 3
LOAD_RATE_MIN = 1000.0  # A load that is slower than this is given up.
INGEST_RATE_MAX, DISK_BYTES_PER_ENTITY = 30_000, 2 * PAYLOAD_BYTES
SETTLE_SECONDS_MAX, SETTLED_SHARE = 120.0, 0.1


def run(bench: Bench) -> None:
    """Measure everything that needs the big table."""
    big, place = bench.plan.big, bench.location / "big"
    if not big:
        return
    check_space(bench, (big + bench.plan.ingest_seconds * INGEST_RATE_MAX) * DISK_BYTES_PER_ENTITY, "--big")
    with bench.stage(LAZULITE, Catalogue, big, place=place) as stage:
        bench.say(f"load of {big:,} entities")
        stage.must(stage.build.create())
        count = big // TRANSACTION_ROWS
        bench.rows.append(bench.store(stage.server, stage.build.preload(), count, 60 + big / LOAD_RATE_MIN))
        settle(bench, stage.server)
    _start(bench, place)
    with bench.stage(LAZULITE, Catalogue, big, place=place) as stage:
        bench.note("idle", LAZULITE, entities=big, server=stage.server)
        with bench.stage(LAZULITE, Catalogue, bench.plan.entities) as few:
            for build in OPERATIONS:
                contenders = [few.asked(build, variant=SMALL), stage.asked(build, variant=BIG)]
                bench.compare(contenders, with_baseline=False, warm_s=WARM_SECONDS_MAX)
        _beside(bench, stage)
        bench.note("after everything", LAZULITE, entities=big, server=stage.server)


def check_space(bench: Bench, needed: float, option: str) -> None:
    """Raise a `BenchmarkError` unless the disk has so many free bytes; `option` is the way to need less."""
    free = shutil.disk_usage(bench.location).free
    if free < needed:
        raise BenchmarkError(f"{needed / 1e9:.0f} GB of disk may be needed, {free / 1e9:.0f} are free: see {option}")


def settle(bench: Bench, server: Server) -> None:
    """Wait until the server's background work ends, so that it is not measured with the rest."""
    bench.say("waiting for compaction")
    gives_up = time.monotonic() + SETTLE_SECONDS_MAX
    spent = server.cpu_seconds()
    while spent is not None and time.monotonic() < gives_up:
        time.sleep(1)
        before, spent = spent, server.cpu_seconds()
        if spent is None or spent - before < SETTLED_SHARE:
            return


def _start(bench: Bench, place: Path) -> None:
    """Measure the time from starting the command to the first entity that it returns."""
    bench.say("starts")
    took = []
    for _ in range(STARTS):
        began = time.perf_counter()
        with bench.stage(LAZULITE, Catalogue, TRANSACTION_ROWS, place=place) as stage:
            stage.must(stage.build.get().requests[0], 200)
            took.append(time.perf_counter() - began)
    bench.note("start to first answer", LAZULITE, took, bench.plan.big)


def _beside(bench: Bench, stage: Stage[Catalogue]) -> None:
    """Measure point reads alone, beside scans of the whole table, and beside ingest; the keys are read once before."""
    reads = stage.asked(Catalogue.get, connections=BESIDE_CONNECTIONS)
    bench.say("reads alone")
    bench.warm(reads, WARM_SECONDS_MAX)
    settle(bench, stage.server)
    measure_how(bench, reads, bench.plan.seconds, "alone")
    ingest_s = bench.plan.ingest_seconds
    loads = ("scan", Catalogue.table_scan, min(SCAN_SECONDS_MAX, ingest_s)), ("ingest", Catalogue.transaction, ingest_s)
    for kind, build, seconds in loads:
        bench.say(f"reads beside {kind} for {seconds:.0f} s")
        with load_beside(bench, stage.asked(build, name=f"{kind} beside point GET"), seconds):
            measure_how(bench, reads, seconds, f"beside {kind}")


@contextmanager
def load_beside(bench: Bench, beside: Contender, seconds: float) -> Iterator[None]:
    """Run a load in another process, which has the client's CPU too, for at least so many seconds of the block.

    The block begins when the load has run for two seconds: it has filled the buffers of its sockets by then. The row of
    the load tells how much the server's memory grew.
    """
    subject, server, workload, _ = beside
    limits = Limits(SETTLING_SECONDS + seconds + SLACK_SECONDS, bench.plan.max_requests)
    with growth(bench, server), ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        with pinned(CLIENT_CPU, pin=bench.plan.pin):  # The process keeps that.
            pool.submit(os.getpid).result()
        load = pool.submit(workload.load or run_asyncio, workload, server.port, bench.next_first(), limits)
        time.sleep(SETTLING_SECONDS)
        yield
        found = load.result()
        bench.rows.append(bench.row(workload, subject, found, server))


@contextmanager
def growth(bench: Bench, server: Server) -> Iterator[None]:
    """Note in the last row of the block how much the server's memory grew."""
    before = server.memory_mb()
    yield
    if before and (peak_mb := bench.rows[-1].peak_mb):
        bench.rows[-1] = replace(bench.rows[-1], grown_mb=peak_mb - before[0])


def measure_how(bench: Bench, contender: Contender, seconds: float, how: str, number: int = 0) -> None:
    """Measure half of the time in a closed loop, half at a fixed rate; the workload's name tells how, such as alone."""
    name = contender.workload.name.partition(",")[0]
    named = contender._replace(workload=replace(contender.workload, name=f"{name} {how}"))
    for rate in (None, BESIDE_RATE):
        bench.measure(named, seconds / 2, number, rate, shared=True)
