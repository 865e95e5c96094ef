"""`python -m benchmarks`: measure Lazulite, Azurite and the floor here, and write the report (see README.md)."""

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine, subjects
from benchmarks.bench import Bench
from benchmarks.entities import PARTITION_ROWS, TRANSACTION_ROWS
from benchmarks.load import run_asyncio
from benchmarks.measurement import BenchmarkError
from benchmarks.plan import Plan
from benchmarks.processes import CLIENT_CPU, SERVER_CPU, can_pin
from benchmarks.report import DIRECTORY, REPORT, write_report
from benchmarks.rows import write_conditions, write_rows
from benchmarks.sections import SECTIONS
from benchmarks.wrk import run_wrk, wrk_version

QUICK_SECTIONS = ["table"]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Lazulite on this machine.")
    parser.add_argument(
        "--section", action="append", choices=list(SECTIONS), help="only this; repeatable (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="one round of one second, the section table, no Azurite")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this; section table")
    parser.add_argument("--seconds", type=float, default=6.0, help="a workload and a subject (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="the subjects take turns (default: %(default)s)")
    parser.add_argument("--client", choices=["auto", "wrk", "asyncio"], default="auto", help="auto: wrk if installed")
    parser.add_argument("--no-azurite", action="store_true", help="leave Azurite out")
    parser.add_argument("--location", type=Path, help="directory on the disk to measure (default: the temporary one)")
    parser.add_argument("--entities", type=int, default=10_000, help="stored for the reads (default: %(default)s)")
    parser.add_argument("--big", type=int, default=10_000_000, help="in the big table; 0: none (default: %(default)s)")
    parser.add_argument(
        "--postgres", type=int, default=10_000_000, help="on PostgreSQL, beside 10,000; 0: none (default: %(default)s)"
    )
    parser.add_argument("--ingest-seconds", type=float, default=600.0, help="of reads beside it (default: %(default)s)")
    parser.add_argument("--max-requests", type=int, default=10_000_000, help="of one run (default: %(default)s)")
    parser.add_argument(
        "--results", type=Path, help="where the raw data and the report go (default: benchmarks/results)"
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.rounds, arguments.no_azurite = min(1.0, arguments.seconds), 1, True
    for size in (arguments.entities, arguments.big or TRANSACTION_ROWS):
        if size < TRANSACTION_ROWS or size % TRANSACTION_ROWS:
            parser.error(f"--entities and --big must be multiples of {TRANSACTION_ROWS}")
    if arguments.postgres % PARTITION_ROWS:
        parser.error(f"--postgres must be a multiple of {PARTITION_ROWS}")
    if arguments.rounds < 1 or arguments.max_requests < 1:
        parser.error("--rounds and --max-requests must be positive")
    return arguments


def _plan(arguments: argparse.Namespace, *, azurite: bool) -> tuple[Plan, str]:
    """Return how to measure, and by what client, in words."""
    version = wrk_version() if arguments.client != "asyncio" else None
    if arguments.client == "wrk" and version is None:
        raise BenchmarkError("wrk is not installed; Debian: apt-get install wrk")
    plan = Plan(
        load=run_wrk if version else run_asyncio,
        seconds=arguments.seconds,
        rounds=arguments.rounds,
        requests=arguments.max_requests,
        entities=arguments.entities,
        big=arguments.big,
        ingest_seconds=arguments.ingest_seconds,
        azurite=azurite,
        pin=can_pin(),
        only=arguments.only,
        postgres=arguments.postgres,
    )
    return plan, f"wrk {version}, one thread" if version else "benchmarks/load.py (no wrk)"


def _conditions(plan: Plan, client: str, location: Path, azurite: str | None) -> list[str]:
    kind = machine.filesystem(location)
    pinning = (
        f"server on CPU {SERVER_CPU}, client on CPU {CLIENT_CPU}" if plan.pin else "not pinned: fewer than two CPUs"
    )
    volatile = " (memory: durability costs nothing here; use --location)" if kind == "tmpfs" else ""
    return [
        f"{datetime.now(UTC):%Y-%m-%d} UTC; {machine.processor()}; {pinning}",
        machine.versions(),
        azurite or "without Azurite",
        f"closed loops: {client}; fixed rates: benchmarks/load.py; requests are built and signed beforehand",
        f"{plan.seconds:.1f} s of a workload and subject, half of that of the floor, in {plan.rounds} turns; medians",
        f"disk: {kind}{volatile}",
        f"entities of 1 KB and five properties of five types, incompressible; {plan.entities:,} stored at first",
    ]


def _measure(arguments: argparse.Namespace, directory: Path) -> bool:
    """Measure section after section, each written down as soon as it is complete; tell if all answers were right."""
    azurite = None if arguments.no_azurite else subjects.install_azurite()
    plan, client = _plan(arguments, azurite=azurite is not None)
    right = True
    for name in arguments.section or (QUICK_SECTIONS if arguments.quick or arguments.only else SECTIONS):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="lazulite-bench-", dir=arguments.location) as temporary:
            bench = Bench(plan, Path(temporary), name)
            conditions = _conditions(plan, client, bench.location, azurite)
            try:
                SECTIONS[name](bench)
            except BenchmarkError as error:  # what was found so far counts, and the other sections may still work
                bench.say(f"incomplete: {error}")
                conditions.append(f"section {name} is incomplete: {error}")
                right = False
        if not bench.rows:
            continue
        conditions += bench.conditions
        conditions.append(f"section {name}: {time.perf_counter() - began:.0f} s")
        write_rows(directory / f"{name}.csv", bench.rows)
        write_conditions(directory, name, conditions)
        right = right and not any(row.errors for row in bench.rows)
    return right


def main() -> int:
    """Run everything; return 1 if a response had a wrong status."""
    arguments = _arguments()
    if arguments.results is None and (arguments.quick or arguments.only):
        with tempfile.TemporaryDirectory(prefix="lazulite-bench-") as temporary:  # no numbers of a glance are kept
            directory = Path(temporary)
            right = _measure(arguments, directory)
            print(write_report(directory, directory / REPORT.name, plots=False), end="")
        return 0 if right else 1
    directory = arguments.results or DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    right = _measure(arguments, directory)
    print(write_report(directory, REPORT if arguments.results is None else directory / REPORT.name), end="")
    return 0 if right else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
