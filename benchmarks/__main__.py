"""`python -m benchmarks`: measure Lazulite and what it is compared with, and write the report (see README.md)."""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from benchmarks.bench import Bench, Plan
from benchmarks.entities import PARTITION_ROWS, TRANSACTION_ROWS
from benchmarks.load import run_asyncio, run_wrk, wrk_version
from benchmarks.report import DIRECTORY, REPORT, write_report
from benchmarks.rows import write_section
from benchmarks.sections import SECTIONS
from benchmarks.subjects import install_azurite
from benchmarks.workload import BenchmarkError, Load

CLIENTS: dict[str, Load] = {"wrk": run_wrk, "asyncio": run_asyncio}
OPTIONS = {field.name: field for field in fields(Plan) if field.metadata}
STEPS = {"entities": TRANSACTION_ROWS, "big": TRANSACTION_ROWS, "postgres": PARTITION_ROWS}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Lazulite on this machine.")
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this; repeatable")
    parser.add_argument("--quick", action="store_true", help="one round of one second, the section table, no Azurite")
    installed = "wrk" if wrk_version() else "asyncio"
    parser.add_argument("--client", choices=list(CLIENTS), default=installed, help="default: wrk if it is installed")
    parser.add_argument("--no-azurite", action="store_true", help="leave Azurite out")
    parser.add_argument("--location", type=Path, help="directory on the disk to measure (default: the temporary one)")
    parser.add_argument("--results", type=Path, help="directory of raw data and report (default: benchmarks/results)")
    for name, field in OPTIONS.items():
        flag, text = f"--{name.replace('_', '-')}", f"{field.metadata['help']} (default: %(default)s)"
        parser.add_argument(flag, type=type(field.default), default=field.default, help=text)
    found = parser.parse_args()
    if wrong := [name for name, step in STEPS.items() if getattr(found, name) % step]:
        parser.error(f"--{wrong[0]} must be a multiple of {STEPS[wrong[0]]}")
    if min(found.entities, found.rounds, found.max_requests) < 1:
        parser.error("--entities, --rounds and --max-requests must be positive")
    if found.quick:
        found.seconds, found.rounds, found.no_azurite = min(1.0, found.seconds), 1, True
        found.stream_mb = min(64, found.stream_mb)
    return found


def _conditions(plan: Plan, location: Path) -> list[str]:
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    mounts = [line.split()[1:3] for line in _lines("/proc/mounts")]
    holding = [(len(point), kind) for point, kind in mounts if location.resolve().is_relative_to(point)]
    disk = max(holding, default=(0, "unknown"))[1]
    packages = ", ".join(f"{each} {version(each)}" for each in ("lazulite", "rocksdict", "uvloop", "httptools", "isal"))
    client = f"wrk {wrk_version()}, one thread" if plan.load is run_wrk else "benchmarks/load.py (no wrk)"
    volatile = " (memory: durability costs nothing here; use --location)" if disk == "tmpfs" else ""
    pinned = "server on CPU 0, client on CPU 1" if plan.pin else "not pinned: fewer than two CPUs"
    return [
        f"{datetime.now(UTC):%Y-%m-%d} UTC; {os.cpu_count()} × {names[0] if names else platform.machine()}; {pinned}",
        f"Python {platform.python_version()}, {packages}",
        f"closed loops: {client}; fixed rates: benchmarks/load.py; requests are built and signed beforehand",
        f"{plan.seconds:.1f} s of a workload and subject, half of it of the baseline, in {plan.rounds} turns; medians",
        f"disk: {disk}{volatile}",
        f"entities of 1 KB and five properties of five types, incompressible; {plan.entities:,} stored at first",
    ]


def _lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").splitlines() if Path(path).exists() else []


def _measure(arguments: argparse.Namespace, directory: Path) -> bool:
    """Measure section after section, written down after each comparison; return whether all responses were right."""
    azurite = None if arguments.no_azurite else install_azurite()
    options = {name: getattr(arguments, name) for name in OPTIONS}
    plan = Plan(load=CLIENTS[arguments.client], azurite=azurite is not None, **options)
    right = True
    for name in arguments.section or (["table"] if arguments.quick or arguments.only else SECTIONS):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="lazulite-bench-", dir=arguments.location) as temporary:
            bench = Bench(plan, Path(temporary), name)
            conditions = [*_conditions(plan, bench.location), azurite or "without Azurite"]
            bench.save = partial(_save, bench, directory, [*conditions, f"section {name} is incomplete: interrupted"])
            try:
                SECTIONS[name][1](bench)
            except BenchmarkError as error:  # the findings so far count, and the other sections may still work
                bench.say(f"incomplete: {error}")
                conditions.append(f"section {name} is incomplete: {error}")
                right = False
        _save(bench, directory, conditions, f"section {name}: {time.perf_counter() - began:.0f} s")
        right = right and not any(row.errors for row in bench.rows)
    return right


def _save(bench: Bench, directory: Path, conditions: Sequence[str], *more: str) -> None:
    if bench.rows:
        write_section(directory / f"{bench.section}.jsonl", [*conditions, *bench.conditions, *more], bench.rows)


def main() -> int:
    """Run everything; return 1 if a response had a wrong status."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="lazulite-bench-") as temporary:
        glance = Path(temporary) if arguments.quick or arguments.only else DIRECTORY  # its numbers are not kept
        directory = arguments.results or glance
        directory.mkdir(parents=True, exist_ok=True)
        right = _measure(arguments, directory)
        print(write_report(directory, REPORT if directory == DIRECTORY else directory / REPORT.name), end="")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
