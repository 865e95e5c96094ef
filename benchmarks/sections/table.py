"""The workloads that the targets name, at their connections; point reads and inserts by connections."""

import os
import tempfile
import timeit
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.bench import Bench
from benchmarks.catalogue import PAGE, PAGES, Catalogue
from benchmarks.subjects import AZURITE, DISK, LAZULITE, MINIMAL
from benchmarks.workload import Workload

COMPARED: Sequence[tuple[Callable[[Catalogue], Workload], int]] = (
    (Catalogue.get, 32),
    (partial(Catalogue.get, signed=True), 32),
    (Catalogue.insert, 64),
    (Catalogue.insert, 1),
    (Catalogue.transaction, 4),
    (Catalogue.pages, 4),
)
"""Workloads, and their connections, that Azurite gets too, and the minimal server, which has no queries."""
ALONE: Sequence[Callable[[Catalogue], Workload]] = (
    *(partial(Catalogue.pages, name=name) for name in PAGES if name != PAGE),
    Catalogue.scan,
)
SYNCS = 200
CONNECTIONS = (1, 16, 64, 256)


def targets(bench: Bench) -> None:
    """Measure the workloads of the targets; first the ones that Azurite and the minimal server get too."""
    with bench.stages(Catalogue, LAZULITE, AZURITE, MINIMAL) as stages:
        for build, connections in COMPARED:
            asked = [stage.asked(build, connections=connections) for stage in stages]
            bench.compare([each for each in asked if (each.subject, each.workload.name) != (MINIMAL, PAGE)])
            if connections == 1 and bench.plan.only in asked[0].workload.name:
                note_syncs(bench)
        bench.store(stages[0].server, stages[0].build.scan_preload())
        for alone in ALONE:
            bench.compare([stages[0].asked(alone)])


def note_syncs(bench: Bench) -> None:
    """Note the times of `fdatasync` (`fsync` where there is none) of appended 4 KiB blocks on the measured disk."""
    sync = getattr(os, "fdatasync", os.fsync)
    for _ in range(bench.plan.rounds):
        with tempfile.TemporaryFile(dir=bench.location, buffering=0) as file:
            took = timeit.repeat(lambda: file.write(b"x" * 4096) and sync(file), number=1, repeat=SYNCS)
        bench.note("fdatasync", DISK, took)


def connections(bench: Bench) -> None:
    """Measure point reads and single inserts by connections, in a closed loop and at a fixed rate."""
    with bench.stages(Catalogue, LAZULITE, AZURITE) as stages:
        for build in (Catalogue.get, Catalogue.insert):
            for number in CONNECTIONS:
                bench.compare([stage.asked(build, connections=number) for stage in stages], fixed=True)
