"""`python -m benchmarks.front_ends`: what several front ends on one store cost, and what they could give.

First the border alone (`benchmarks.border`). Then whole requests, by wrk where it is installed, with one process and
with workers. From the second: how many requests one core of the owner's bears, and so how many front ends pay off.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.bench import Bench, Contender
from benchmarks.border import print_border
from benchmarks.catalogue import Catalogue
from benchmarks.exchange import probe
from benchmarks.load import run_asyncio
from benchmarks.measurement import BenchmarkError
from benchmarks.plan import Plan
from benchmarks.processes import Server
from benchmarks.stage import stages
from benchmarks.subjects import LAZULITE
from benchmarks.workload import NUMBERS_PER_RUN, Workload
from benchmarks.wrk import run_wrk, wrk_version

CORES = (2, 4, 8, 16, 32)
WORKERS = (1, 2, 3)
REQUESTS = {"get": Catalogue.get, "insert": Catalogue.insert}


class Load(NamedTuple):
    """What was found: requests a second, and processor time of a request in microseconds."""

    rate: float
    owner: float
    front_ends: float


def _cpu_seconds(servers: Sequence[Server]) -> float:
    return sum(server.cpu_seconds() or 0.0 for server in servers)


def load(bench: Bench, server: Server, workload: Workload) -> Load:
    """Load a service. What one process takes, without front ends, counts as a front end's.

    Raises:
        BenchmarkError: it answered something else than what was asked for.
    """
    length = len(probe(workload, server, bench.next_first()).body)
    front_ends = server.children() or [server]
    before_s = _cpu_seconds(front_ends)
    row = bench.closed(Contender(LAZULITE, server, workload), bench.plan.seconds, length=length)
    if row.errors:
        raise BenchmarkError(f"{workload.name}: {row.errors} wrong answers")
    owner_s = 0.0 if server in front_ends else row.server_cpu_s or 0.0
    front_ends_s = _cpu_seconds(front_ends) - before_s
    return Load(row.rate, owner_s / row.requests * 1e6, front_ends_s / row.requests * 1e6)


def requests(plan: Plan, place: Path) -> None:
    """Print what whole requests cost with one process and with workers, and what front ends could give."""
    found: dict[tuple[str, int], list[Load]] = {}
    for number in range(plan.rounds):
        for workers in WORKERS:
            bench = Bench(plan, place / f"{number}-{workers}", "front ends")
            with stages(bench, emulator=False, options=["--workers", str(workers)]) as [stage]:
                for what, workload in REQUESTS.items():
                    loads = found.setdefault((what, workers), [])
                    loads.append(load(bench, stage.server, workload(stage.catalogue)))
    print("\n| request | workers | requests/s here | owner, µs | front ends, µs | all, µs |\n|---|---|---|---|---|---|")
    medians: dict[tuple[str, int], Load] = {}
    for (what, workers), loads in sorted(found.items()):
        median = Load(*(statistics.median(each) for each in zip(*loads, strict=True)))
        medians[what, workers] = median
        rate, owner, front_ends = median
        print(f"| {what} | {workers} | {rate:,.0f} | {owner:.1f} | {front_ends:.1f} | {owner + front_ends:.1f} |")
    print("\n| request | one process, requests/s a core | the owner's core bears | front ends that fill it |", end="")
    print("".join(f" {cores} cores |" for cores in CORES))
    print("|---" * (4 + len(CORES)) + "|")
    for what in REQUESTS:
        alone = 1e6 / medians[what, 1].front_ends
        _, owner, front_end = medians[what, 2]
        gains = [min((cores - 1) * 1e6 / front_end, 1e6 / owner) / alone for cores in CORES]
        print(f"| {what} | {alone:,.0f} | {1e6 / owner:,.0f} | {front_end / owner:.1f} |", end="")
        print("".join(f" {gain:.1f} × |" for gain in gains))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.front_ends", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="in which what is compared takes turns (3)")
    parser.add_argument("--seconds", type=int, default=4, help="of one run of load (4)")
    parser.add_argument("--gets", type=int, default=20_000, help="of one run (20000)")
    parser.add_argument("--commits", type=int, default=3_000, help="of one run (3000)")
    parser.add_argument("--location", type=Path, help="directory on the disk to measure (the temporary one)")
    arguments = parser.parse_args()
    generator = run_wrk if wrk_version() else run_asyncio
    plan = Plan(
        generator, arguments.seconds, arguments.rounds, NUMBERS_PER_RUN, 10_000, 0, 0.0, azurite=False, pin=False
    )
    with tempfile.TemporaryDirectory(prefix="lazulite-front-ends-", dir=arguments.location) as place:
        uvloop.run(print_border(Path(place), arguments.rounds, arguments.gets, arguments.commits))
        requests(plan, Path(place))


if __name__ == "__main__":
    try:
        main()
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
