"""A table of many entities against a small one: load, operations, start, memory, and reads beside scans and ingest."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.background import CLIENTS, beside
from benchmarks.bench import Bench, Contender, Spent
from benchmarks.catalogue import Catalogue
from benchmarks.entities import PAYLOAD_BYTES, TRANSACTION_ROWS
from benchmarks.exchange import exchange, probe
from benchmarks.measurement import BenchmarkError
from benchmarks.processes import Server
from benchmarks.rows import Row
from benchmarks.stage import stages
from benchmarks.subjects import LAZULITE, lazulite
from benchmarks.workload import Workload

SMALL, BIG = "small", "big"
"""Variants of the rows for which the two tables took turns."""
STEPS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Sizes at which the load pauses and the growth curve gets a point."""
BESIDE_CONNECTIONS = 16
BESIDE_RATE = 1000.0
"""Of the runs at a fixed rate beside other load: far from what the service can do alone."""
WARM_SECONDS_MAX = 60.0
SCAN_SECONDS = 60.0
STARTS = 3
LOAD_RATE_MIN = 1000.0
"""A load that is slower than this is given up."""
INGEST_RATE_MAX = 30_000
DISK_BYTES_PER_ENTITY = 2 * PAYLOAD_BYTES
SETTLE_SECONDS_MAX = 120.0
SETTLED_SHARE = 0.1


def run(bench: Bench) -> None:
    """Measure everything that needs the big table."""
    if not bench.plan.big:
        return
    _check_space(bench)
    store = bench.location / "big"
    with lazulite(store, pin=bench.plan.pin) as server:
        _load(bench, server)
    _start(bench, store)
    with lazulite(store, pin=bench.plan.pin) as server:
        catalogue = Catalogue(server.host, bench.plan.big)
        bench.note("idle", LAZULITE, (), entities=bench.plan.big, server=server)
        _compare(bench, server, catalogue)
        _beside(bench, server, catalogue)
        bench.note("after everything", LAZULITE, (), entities=bench.plan.big, server=server)


def _check_space(bench: Bench) -> None:
    entities = bench.plan.big + bench.plan.ingest_seconds * INGEST_RATE_MAX
    needed, free = entities * DISK_BYTES_PER_ENTITY, shutil.disk_usage(bench.location).free
    if free < needed:
        raise BenchmarkError(f"{needed / 1e9:.0f} GB of disk may be needed, {free / 1e9:.0f} are free: see --big")


def _operations(catalogue: Catalogue) -> list[Workload]:
    return [catalogue.get(), catalogue.ranges(), catalogue.insert(), catalogue.transaction()]


def _load(bench: Bench, server: Server) -> None:
    """Fill the table step by step; measure the operations at each step but the last, which `_compare` measures."""
    steps = [*(step for step in STEPS if step < bench.plan.big), bench.plan.big]
    bench.create_table(server, Catalogue(server.host, bench.plan.big))
    stored = 0
    for step in steps:
        bench.say(f"load to {step:,} entities")
        catalogue = Catalogue(server.host, step)
        first, count = stored // TRANSACTION_ROWS, (step - stored) // TRANSACTION_ROWS
        preload = catalogue.preload()
        before = Spent.of(server)
        found = bench.store(server, preload, first, count, 60 + count * TRANSACTION_ROWS / LOAD_RATE_MIN)
        bench.add(Contender(LAZULITE, server, preload), found, before)
        stored = step
        _settle(bench, server)
        if step < bench.plan.big:
            for workload in _operations(catalogue):
                bench.compare([Contender(LAZULITE, server, workload)], with_floor=False)


def _settle(bench: Bench, server: Server) -> None:
    """Wait until the server has done with what it does in the background, so that it is not measured with the rest."""
    bench.say("waiting for compaction")
    gives_up = time.monotonic() + SETTLE_SECONDS_MAX
    spent = server.cpu_seconds()
    while spent is not None and time.monotonic() < gives_up:
        time.sleep(1)
        before, spent = spent, server.cpu_seconds()
        if spent is None or spent - before < SETTLED_SHARE:
            return


def _start(bench: Bench, store: Path) -> None:
    """Measure the time from starting the command to the first entity that it answers."""
    bench.say("starts")
    took = []
    for _ in range(STARTS):
        began = time.perf_counter()
        with lazulite(store, pin=bench.plan.pin) as server:
            workload = Catalogue(server.host, TRANSACTION_ROWS).get()
            reply = exchange(server.port, workload.requests[0])
            took.append(time.perf_counter() - began)
        if reply.status != workload.status:
            raise BenchmarkError(f"after the start: status {reply.status}: {reply.body[:500]!r}")
    bench.note("start to first answer", LAZULITE, took, entities=bench.plan.big)


def _compare(bench: Bench, server: Server, catalogue: Catalogue) -> None:
    """Measure the big table and a small one, of another server, in turn."""
    with stages(bench, emulator=False) as [small]:
        for theirs, ours in zip(_operations(small.catalogue), _operations(catalogue), strict=True):
            contenders = [
                Contender(LAZULITE, small.server, replace(theirs, variant=SMALL)),
                Contender(LAZULITE, server, replace(ours, variant=BIG)),
            ]
            bench.compare(contenders, with_floor=False)


def _beside(bench: Bench, server: Server, catalogue: Catalogue) -> None:
    """Measure point reads alone, beside scans of the whole table, and beside ingest.

    What is asked for is read once before: else it would come from the disk for those alone, and from memory for those
    that are compared with them.
    """
    reads = Contender(LAZULITE, server, catalogue.get(BESIDE_CONNECTIONS))
    bench.say("reads alone")
    bench.warm(reads, WARM_SECONDS_MAX)
    _settle(bench, server)
    _reads(bench, reads, bench.plan.seconds, "alone")
    for kind, seconds in {
        "scan": min(SCAN_SECONDS, bench.plan.ingest_seconds),
        "ingest": bench.plan.ingest_seconds,
    }.items():
        bench.say(f"reads beside {kind} for {seconds:.0f} s")
        with beside(kind, server, bench.plan.big, pin=bench.plan.pin) as background:
            _reads(bench, reads, seconds, f"beside {kind}")
        done = background.done
        bench.rows.append(
            Row(
                bench.section,
                f"{kind} beside point GET",
                LAZULITE,
                connections=CLIENTS,
                entities=bench.plan.big,
                requests=done.requests,
                units=max(1, round(done.rows / max(1, done.requests))),
                seconds=done.seconds,
                variant=f"{done.rounds} whole scans" if done.rounds else "",
            )
        )


def _reads(bench: Bench, reads: Contender, seconds: float, name: str) -> None:
    """Half of the time in a closed loop, half at a fixed rate."""
    title = f"point GET {name}"
    length = len(probe(reads.workload, reads.server, bench.next_first()).body)
    bench.closed(reads, seconds / 2, length=length, name=title)
    bench.fixed(reads, seconds / 2, BESIDE_RATE, name=title, alone=False)
