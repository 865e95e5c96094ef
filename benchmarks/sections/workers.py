"""The cost and the gain of several workers on one store, against one process.

Nothing is held on a CPU: client, workers and primary share all of them. The store's processor time is the primary's.
"""

from contextlib import ExitStack
from dataclasses import replace

from benchmarks.bench import Bench
from benchmarks.catalogue import Catalogue
from benchmarks.subjects import LAZULITE, WORKERS

REQUESTS = ((Catalogue.get, 32), (Catalogue.get, 1), (Catalogue.insert, 64), (Catalogue.insert, 1))
"""Workloads, and their connections."""


def run(bench: Bench) -> None:
    """Measure point reads and single inserts, many at a time and one at a time."""
    bench.plan = replace(bench.plan, pin=False)
    with ExitStack() as stack:
        stages = []
        for subject, workers in ({LAZULITE: 1} | WORKERS).items():
            options = "--workers", str(workers)
            stage = stack.enter_context(bench.stage(LAZULITE, Catalogue, bench.plan.entities, *options))
            if workers > 1:
                stage = stage._replace(subject=subject, server=stage.server.workers(), store=stage.server)
            stages.append(stage)
        for build, connections in REQUESTS:
            bench.compare([stage.asked(build, connections=connections) for stage in stages], with_baseline=False)
