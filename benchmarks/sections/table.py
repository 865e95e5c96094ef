"""The workloads that the targets name, at their connections; point reads and inserts by connections."""

import os
import re
import tempfile
import timeit
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench, Contender
from benchmarks.catalogue import PAGE, PAGES, SCAN_ROWS, Catalogue
from benchmarks.exchange import exchange
from benchmarks.subjects import AZURITE, DISK, LAZULITE, MINIMAL
from benchmarks.workload import BenchmarkError, Workload

COMPARED: Sequence[Callable[[Catalogue], Workload]] = (
    Catalogue.get,
    partial(Catalogue.get, signed=True),
    Catalogue.insert,
    partial(Catalogue.insert, connections=1),
    Catalogue.transaction,
    Catalogue.pages,
)
"""The workloads that Azurite gets too, and the minimal server, which has no queries."""
SYNCS = 200
CONNECTIONS = (1, 16, 64, 256)


def targets(bench: Bench) -> None:
    """Measure the workloads of the targets; first the ones that Azurite and the minimal server get too."""
    with bench.stages(LAZULITE, AZURITE, MINIMAL) as stages:
        for build in COMPARED:
            contenders = [Contender(subject, server, build(catalogue)) for subject, server, catalogue in stages]
            workload = contenders[0].workload
            bench.compare([each for each in contenders if each.subject != MINIMAL or workload.name != PAGE])
            if workload.connections == 1 and bench.plan.only in workload.name:
                for _ in range(bench.plan.rounds):
                    bench.note("fdatasync", DISK, sync_seconds(bench.location))
        subject, server, catalogue = stages[0]
        scan = catalogue.scan()
        if bench.plan.only in scan.name:
            bench.store(server, catalogue.scan_preload())
            timing = exchange(server.port, scan.requests[0]).timing
            if re.findall(r'scanned;desc="?(\d+)', timing) != [str(SCAN_ROWS)]:
                raise BenchmarkError(f"{scan.name}: not {SCAN_ROWS} rows scanned, but {timing}")
        for workload in (*(catalogue.pages(name) for name in PAGES if name != PAGE), scan):
            bench.compare([Contender(subject, server, workload)])


def sync_seconds(directory: Path) -> list[float]:
    """Time `fdatasync` (`fsync` where there is none) of appended 4 KiB blocks in a temporary file in `directory`."""
    sync = getattr(os, "fdatasync", os.fsync)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        return timeit.repeat(lambda: file.write(b"x" * 4096) and sync(file), number=1, repeat=SYNCS)


def connections(bench: Bench) -> None:
    """Measure point reads and single inserts by connections, in a closed loop and at a fixed rate."""
    with bench.stages(LAZULITE, AZURITE) as stages:
        for build in (Catalogue.get, Catalogue.insert):
            for number in CONNECTIONS:
                contenders = [Contender(name, server, build(catalogue, number)) for name, server, catalogue in stages]
                bench.compare(contenders, fixed=True)
