"""The cost and the gain of several workers on one store, against one process.

Nothing is held on a CPU: client, workers and primary share all of them. The store's processor time is the primary's.
"""

from contextlib import ExitStack
from dataclasses import replace

from benchmarks.bench import Bench, Contender
from benchmarks.catalogue import Catalogue
from benchmarks.subjects import LAZULITE, WORKERS

REQUESTS = ((Catalogue.get, 32), (Catalogue.get, 1), (Catalogue.insert, 64), (Catalogue.insert, 1))
"""Workloads, and their connections."""


def run(bench: Bench) -> None:
    """Measure point reads and single inserts, many at a time and one at a time."""
    bench.plan = replace(bench.plan, pin=False)
    with ExitStack() as stack:
        stages = {}
        for subject, workers in ({LAZULITE: 1} | WORKERS).items():
            [stages[subject]] = stack.enter_context(bench.stages(LAZULITE, options=("--workers", str(workers))))
        for build, connections in REQUESTS:
            contenders = []
            for subject, (_, server, catalogue) in stages.items():
                answering, store = (server.workers(), server) if subject in WORKERS else (server, None)
                contenders.append(Contender(subject, answering, build(catalogue, connections), store=store))
            bench.compare(contenders, with_baseline=False)
