"""`python -m benchmarks`: start a server on a temporary location, measure it against the floor, print the report."""

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine
from benchmarks.comparison import Comparison, Plan, compare, exchange, numbered_runs
from benchmarks.load import run_asyncio
from benchmarks.measurement import BenchmarkError, Limits
from benchmarks.processes import CLIENT_CPU, SERVER_CPU, Server, can_pin, running
from benchmarks.report import render
from benchmarks.workload import TRANSACTION_ROWS, Requests, Workload, preload, workloads
from benchmarks.wrk import run_wrk, wrk_version

PRELOAD_SECONDS_MAX = 60.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Lazulite on this machine.")
    parser.add_argument("--seconds", type=float, default=6.0, help="a row against the service (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="service and floor take turns (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round of one second a row")
    parser.add_argument("--client", choices=["auto", "wrk", "asyncio"], default="auto", help="auto: wrk if installed")
    parser.add_argument("--location", type=Path, help="directory on the disk to measure (default: the temporary one)")
    parser.add_argument("--entities", type=int, default=10_000, help="stored for the reads (default: %(default)s)")
    parser.add_argument("--max-requests", type=int, default=1_000_000, help="of one run (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="the rows whose name contains this")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.rounds = 1.0, 1
    if arguments.entities < TRANSACTION_ROWS or arguments.entities % TRANSACTION_ROWS:
        parser.error(f"--entities must be a multiple of {TRANSACTION_ROWS}")
    if arguments.rounds < 1 or arguments.max_requests < 1:
        parser.error("--rounds and --max-requests must be positive")
    return arguments


def _plan(arguments: argparse.Namespace) -> tuple[Plan, str]:
    """Return how to measure, and by what client, in words."""
    version = wrk_version() if arguments.client != "asyncio" else None
    if arguments.client == "wrk" and version is None:
        raise SystemExit("wrk is not installed; Debian: apt-get install wrk")
    load, client = (run_wrk, f"wrk {version}, 1 thread") if version else (run_asyncio, "benchmarks/load.py (no wrk)")
    slice_s = arguments.seconds / arguments.rounds
    ours, floor = Limits(slice_s, arguments.max_requests), Limits(slice_s / 2, arguments.max_requests)
    return Plan(load, arguments.rounds, ours, floor, can_pin()), client


def _fill(server: Server, requests: Requests, entities: int) -> None:
    """Create the table and store what the reads will find."""
    created = exchange(server.port, requests.create_table())
    if created.status != 201:
        raise BenchmarkError(f"creating the table: status {created.status}: {created.body[:500]!r}")
    batches = preload(requests, entities)
    filling = Workload("preload", "entities", TRANSACTION_ROWS, b"", 4, 202, batches)
    found = run_asyncio(filling, server.port, 0, Limits(PRELOAD_SECONDS_MAX, len(batches)))
    if found.requests != len(batches) or found.errors:
        raise BenchmarkError(f"only {found.requests - found.errors} of {len(batches)} batches could be stored")


def _conditions(arguments: argparse.Namespace, plan: Plan, client: str, location: Path) -> list[str]:
    sync = machine.sync_latency(location)
    kind = machine.filesystem(location)
    synced = f"one fdatasync of {machine.BLOCK_BYTES} bytes takes {sync.p50_ms:.2f} ms (p99 {sync.p99_ms:.2f} ms)"
    pinning = (
        f"server on CPU {SERVER_CPU}, client on CPU {CLIENT_CPU}" if plan.pin else "not pinned: fewer than two CPUs"
    )
    volatile = " (memory: durability costs nothing here; use --location)" if kind == "tmpfs" else ""
    return [
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {machine.processor()}; {pinning}",
        machine.versions(),
        f"client: {client}; rounds of {plan.ours.seconds:.1f} s, the floor after each; medians of {plan.rounds}",
        f"disk: {kind}{volatile}; {synced}",
        f"entities of 1 KB and five properties of five types; {arguments.entities:,} stored before the reads",
    ]


def main() -> int:
    """Run everything; return 1 if a response had a wrong status."""
    arguments = _arguments()
    plan, client = _plan(arguments)
    began = time.perf_counter()
    comparisons: list[Comparison] = []
    with tempfile.TemporaryDirectory(prefix="lazulite-bench-", dir=arguments.location) as directory:
        location = Path(directory)
        conditions = _conditions(arguments, plan, client, location)
        options = ["--table-port", "0", "--location", str(location / "data"), "--silent"]
        with running("lazulite", "serve", *options, pin=plan.pin) as server:
            requests = Requests(f"127.0.0.1:{server.port}", datetime.now(UTC))
            _fill(server, requests, arguments.entities)
            runs = numbered_runs()
            for workload in workloads(requests, arguments.entities):
                if arguments.only in workload.name:
                    print(f"measuring {workload.name} …", file=sys.stderr, flush=True)
                    comparisons.append(compare(workload, server, plan, runs))
    conditions.append(f"the whole run took {time.perf_counter() - began:.0f} s")
    print(render(conditions, comparisons), end="")
    return 1 if any(comparison.errors for comparison in comparisons) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
