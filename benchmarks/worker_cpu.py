"""`python -m benchmarks.worker_cpu`: the processor time of one request, of the primary and of its workers.

With `--against`, this checkout and the other take turns, each turn with a new location. Of the turns the median counts.
Rates mean nothing here: client, workers and primary share the processors.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.catalogue import Catalogue
from benchmarks.cycles import Queues
from benchmarks.exchange import probe
from benchmarks.load import run_asyncio
from benchmarks.processes import ROOT, Server, running
from benchmarks.workload import NUMBERS_PER_RUN, BenchmarkError, Limits, Workload

WORKERS = 2
ENTITIES = 10_000
MESSAGES = 10_000
TABLES: Mapping[str, Callable[[Catalogue], Workload]] = {
    "point GET": Catalogue.get,
    "page of 1,000": Catalogue.pages,
    "durable insert": Catalogue.insert,
    "durable merge": Catalogue.merge,
    "transaction of 100": Catalogue.transaction,
}
QUEUES: Mapping[str, Callable[[Queues], Workload]] = {
    "queue put": Queues.put,
    "queue get and delete": Queues.cycle,
}
_UNLIMITED = 10**9


class Cost(NamedTuple):
    """Microseconds of processor time for one request."""

    primary: float
    workers: float
    """Of all workers together."""


def _send(workload: Workload, server: Server, first: int, limits: Limits) -> int:
    """Send requests; return how many were answered, all of them well."""
    found = run_asyncio(workload, server.port, first, limits)
    if found.errors:
        raise BenchmarkError(f"{workload.name}: {found.errors} errors")
    return found.requests


def _cost(workload: Workload, primary: Server, workers: Server, first: int, seconds: float) -> Cost:
    """Measure one workload."""
    before = [each.cpu_seconds() or 0.0 for each in (primary, workers)]
    requests = _send(workload, primary, first, Limits(seconds, _UNLIMITED))
    after = [each.cpu_seconds() or 0.0 for each in (primary, workers)]
    return Cost(*((now - was) / requests * 1e6 for was, now in zip(before, after, strict=True)))


@contextmanager
def _server(checkout: Path, service: str) -> Iterator[Server]:
    """Run the primary and the workers of one service, with a new location."""
    path = os.pathsep.join(str(checkout.resolve() / part) for part in ("src", ""))
    with tempfile.TemporaryDirectory() as location:
        options = ("--silent", "--services", service, f"--{service}-port", "0", "--location", location)
        command = [sys.executable, "-m", "lazulite", "serve", *options, "--workers", str(WORKERS)]
        with running(command, {"PYTHONPATH": path}, pin=False) as primary:
            yield primary


def _costs(primary: Server, workloads: Mapping[str, Workload], seconds: float) -> dict[str, Cost]:
    workers, numbers = primary.workers(), count(NUMBERS_PER_RUN, NUMBERS_PER_RUN)
    found: dict[str, Cost] = {}
    for name, workload in workloads.items():
        _send(workload, primary, next(numbers), Limits(seconds / 4, _UNLIMITED))
        found[name] = _cost(workload, primary, workers, next(numbers), seconds)
    return found


def costs(checkout: Path, seconds: float, only: str) -> dict[str, Cost]:
    """Return the cost of each workload with new servers of a checkout."""
    found: dict[str, Cost] = {}
    if any(only in name for name in TABLES):
        with _server(checkout, "table") as primary:
            tables = Catalogue(primary.host, ENTITIES)
            probe(Workload("preparing", 1, 1, 201, [tables.create()]), primary.port)
            load = tables.preload()
            _send(load, primary, 0, Limits(_UNLIMITED, ENTITIES // load.units))
            found |= _costs(primary, {name: asked(tables) for name, asked in TABLES.items() if only in name}, seconds)
    if any(only in name for name in QUEUES):
        with _server(checkout, "queue") as primary:
            queues = Queues(primary.host, MESSAGES)
            probe(Workload("preparing", 1, 1, 201, [queues.create()]), primary.port)
            _send(queues.put(), primary, 0, Limits(_UNLIMITED, MESSAGES))
            found |= _costs(primary, {name: asked(queues) for name, asked in QUEUES.items() if only in name}, seconds)
    return found


def table(turns: Mapping[str, Sequence[Mapping[str, Cost]]]) -> list[str]:
    """Return the lines of a table, given the turns of each checkout."""
    lines = ["| µs of processor for a request | checkout | primary | workers |", "|---|---|---|---|"]
    for name in next(iter(turns.values()))[0]:
        for checkout, found in turns.items():
            primary, workers = (median(cost) for cost in zip(*(turn[name] for turn in found), strict=True))
            lines.append(f"| {name} | {checkout} | {primary:.1f} | {workers:.1f} |")
    return lines


def main() -> None:
    """Measure this checkout, or two by turns."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker_cpu", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="compare by turns")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each workload in a turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of each checkout (%(default)s)")
    given = parser.parse_args()
    checkouts = {"this": ROOT} | ({} if given.against is None else {"other": given.against})
    turns: dict[str, list[Mapping[str, Cost]]] = {name: [] for name in checkouts}
    for _ in range(given.turns):
        for name, checkout in checkouts.items():
            turns[name].append(costs(checkout, given.seconds, given.only))
    print("\n".join(table(turns)))


if __name__ == "__main__":
    main()
