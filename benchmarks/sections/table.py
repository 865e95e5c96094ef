"""The workloads that the targets name, at the connections that they name."""

import re

from benchmarks.bench import PRELOAD_SECONDS_MAX, Bench, Contender
from benchmarks.catalogue import PAGES, SCAN_ROWS, Catalogue
from benchmarks.exchange import exchange
from benchmarks.machine import sync_seconds
from benchmarks.measurement import BenchmarkError
from benchmarks.stage import Stage, stages
from benchmarks.subjects import BARE, DISK
from benchmarks.workload import Workload

SYNC = "fdatasync"
_PAGE = next(iter(PAGES))
"""The bare path has no queries."""


def _compared(catalogue: Catalogue) -> list[Workload]:
    """Return what Azurite is asked too."""
    return [
        catalogue.get(),
        catalogue.get_signed(),
        catalogue.insert(64),
        catalogue.insert(1),
        catalogue.transaction(),
        catalogue.pages(_PAGE),
    ]


def run(bench: Bench) -> None:
    """Measure the workloads; those that are not compared with Azurite after those that are."""
    with stages(bench, emulator=True, with_bare=True) as all_stages:
        for workloads in zip(*(_compared(stage.catalogue) for stage in all_stages), strict=True):
            pairs = zip(all_stages, workloads, strict=True)
            contenders = [Contender(stage.subject, stage.server, workload) for stage, workload in pairs]
            bench.compare([each for each in contenders if each.subject != BARE or each.workload.name != _PAGE])
            if workloads[0].connections == 1 and bench.wants(workloads[0]):
                for _ in range(bench.plan.rounds):
                    bench.note(SYNC, DISK, sync_seconds(bench.location))
        ours = all_stages[0]
        scan = ours.catalogue.scan()
        if bench.wants(scan):
            _prepare_scan(bench, ours, scan)
        for workload in [*map(ours.catalogue.pages, list(PAGES)[1:]), scan]:
            bench.compare([Contender(ours.subject, ours.server, workload)])


def _prepare_scan(bench: Bench, stage: Stage, scan: Workload) -> None:
    """Store the partition to scan, and have the server itself say that it is scanned."""
    preload = stage.catalogue.scan_preload()
    bench.store(stage.server, preload, 0, len(preload.requests), PRELOAD_SECONDS_MAX)
    reply = exchange(stage.server.port, scan.requests[0])
    scanned = re.search(r'scanned;desc="?(\d+)', reply.timing)
    if scanned is None or int(scanned[1]) != SCAN_ROWS:
        raise BenchmarkError(f"{scan.name}: not {SCAN_ROWS} rows scanned, but {reply.timing}")
