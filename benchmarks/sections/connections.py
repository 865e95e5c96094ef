"""Throughput and latency by connections, in a closed loop and at a fixed rate."""

from dataclasses import replace

from benchmarks.bench import Bench, Contender
from benchmarks.stage import stages

CONNECTIONS = (1, 16, 64, 256)


def run(bench: Bench) -> None:
    """Measure point reads and single inserts."""
    with stages(bench, emulator=True) as all_stages:
        for build in ("get", "insert"):
            workloads = [getattr(stage.catalogue, build)() for stage in all_stages]
            for connections in CONNECTIONS:
                contenders = [
                    Contender(stage.subject, stage.server, replace(workload, connections=connections))
                    for stage, workload in zip(all_stages, workloads, strict=True)
                ]
                bench.compare(contenders, fixed=True)
