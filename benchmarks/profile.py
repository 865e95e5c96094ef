"""`python -m benchmarks.profile`: where the server's time goes, workload by workload, sampled by py-spy.

A sample counts for the innermost function of Lazulite's own on the stack: what the standard library, httptools or
RocksDB's binding do counts for who called them. What no function of Lazulite's has called is the event loop, with the
system calls that it makes. Threads that wait for work do not count. Needs the right to trace a process of one's own
(root, or `kernel.yama.ptrace_scope = 0`).
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.catalogue import PAGES
from benchmarks.database import database
from benchmarks.load import run_asyncio
from benchmarks.measurement import BenchmarkError, Limits
from benchmarks.plan import Plan
from benchmarks.processes import CLIENT_CPU, SERVER_CPU, Server, can_pin, pinned
from benchmarks.stage import stages
from benchmarks.workload import NUMBERS_PER_RUN, Workload
from benchmarks.wrk import run_wrk, wrk_version

SAMPLES_PER_SECOND = 500
EVENT_LOOP = "event loop and its system calls"
STAGES = (
    ("server/", "HTTP: framing, limits, turns, answers"),
    ("protocol/multipart/", "parts of a transaction in and out"),
    ("protocol/", "credentials, addresses, versions"),
    ("auth/", "credentials, addresses, versions"),
    ("records/", "credentials, addresses, versions"),
    ("service/", "credentials, addresses, versions"),
    ("table/payload/", "bodies in and out"),
    ("table/model/", "rows, names, values, limits"),
    ("table/query/row_predicates", "rows, names, values, limits"),
    ("table/names", "rows, names, values, limits"),
    ("table/batch/", "parts of a transaction in and out"),
    ("table/", "operations"),
    ("engine/", "engine: commit, sync, RocksDB"),
)
"""The beginning of a source's path in the package, and what is done there; the first that fits counts."""
_IDLE = re.compile(r";_worker \(\S*/concurrent/futures/thread\.py:\d+\)$")
"""py-spy takes a pool's thread that waits for work for a busy one."""
_OURS = re.compile(r"/lazulite/((?:app|auth|cli|engine|protocol|records|server|service|table)/[^:]+):")


def _stage(stack: str) -> str:
    """Return what a sampled stack, its frames from the outermost on, was about."""
    for frame in reversed(stack.split(";")):
        ours = _OURS.search(frame)
        if ours is not None:
            return next((name for path, name in STAGES if ours[1].startswith(path)), "other")
    return EVENT_LOOP


def shares(raw: str) -> dict[str, float]:
    """Return the share of each stage in what py-spy wrote in its raw format, a stack and a count a line."""
    counts: Counter[str] = Counter()
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        if _IDLE.search(stack):
            continue
        counts[_stage(stack)] += int(count)
    total = counts.total() or 1
    return {name: count / total for name, count in counts.most_common()}


def _sample(server: Server, workload: Workload, seconds: float, first: int, directory: Path) -> tuple[str, float]:
    """Load the server and sample it meanwhile; return the samples, and microseconds of processor for a request."""
    pin = can_pin()
    output = directory / f"{first}.raw"
    command = [_py_spy(), "record", "--pid", str(server.pid), "--rate", str(SAMPLES_PER_SECOND)]
    command += ["--duration", str(max(1, round(seconds) - 1)), "--format", "raw", "--full-filenames"]
    load = run_wrk if wrk_version() else run_asyncio
    with pinned(CLIENT_CPU, pin=pin):
        before_s = server.cpu_seconds() or 0.0
        found = load(workload, server.port, first, Limits(seconds, NUMBERS_PER_RUN))
        cpu_us = ((server.cpu_seconds() or 0.0) - before_s) * 1e6 / found.requests
        with subprocess.Popen(
            [*command, "--output", str(output)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as spy:
            load(workload, server.port, first + NUMBERS_PER_RUN, Limits(seconds, NUMBERS_PER_RUN))
            said, _ = spy.communicate()
    if not output.exists():
        raise BenchmarkError(f"py-spy: {said.decode(errors='replace').strip()}")
    return output.read_text(encoding="utf-8"), cpu_us


def _py_spy() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise BenchmarkError("py-spy is not installed; it comes with the extra `bench`")
    return found


def _print(name: str, cpu_us: float, found: dict[str, float]) -> None:
    print(f"\n{name}: {cpu_us:,.0f} µs of processor a request\n\n| share | where |\n|---:|---|")
    for stage, share in found.items():
        print(f"| {share:.0%} | {stage} |")


def main(arguments: Sequence[str] | None = None) -> int:
    """Profile the workloads that the targets name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description="Where the server's time goes.")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each workload, twice (default: %(default)s)")
    parser.add_argument("--postgres", action="store_true", help="the service on a PostgreSQL server of its own")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this")
    options = parser.parse_args(arguments)
    pin = can_pin()
    plan = Plan(run_asyncio, options.seconds, 1, NUMBERS_PER_RUN, 10_000, 0, 0.0, azurite=False, pin=pin)
    print(f"server on CPU {SERVER_CPU}, client on CPU {CLIENT_CPU}" if pin else "not pinned")
    with tempfile.TemporaryDirectory(prefix="lazulite-profile-") as temporary:
        bench = Bench(plan, Path(temporary), "profile")
        with ExitStack() as stack:
            dsn = stack.enter_context(database(Path(tempfile.gettempdir()))).make() if options.postgres else None
            [ours] = stack.enter_context(stages(bench, emulator=False, dsn=dsn))
            catalogue = ours.catalogue
            workloads = [catalogue.get(), catalogue.get_signed(), catalogue.insert(), catalogue.transaction()]
            workloads.append(catalogue.pages(next(iter(PAGES))))
            for workload in workloads:
                if options.only in workload.name:
                    first = 2 * bench.next_first()
                    raw, cpu_us = _sample(ours.server, workload, options.seconds, first, bench.location)
                    _print(f"{workload.name}, {workload.connections} connections", cpu_us, shares(raw))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
