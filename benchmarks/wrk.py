"""`wrk` as load generator: C and LuaJIT, an order of magnitude cheaper than anything in Python."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.measurement import BenchmarkError, Latency, Limits, Measurement
from benchmarks.workload import Workload

_SCRIPT = Path(__file__).with_name("wrk.lua")


def wrk_version() -> str | None:
    """Return the installed wrk's version, or None without wrk."""
    if shutil.which("wrk") is None:
        return None
    banner = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False)
    found = re.search(r"^wrk (\S+)", banner.stdout + banner.stderr, re.MULTILINE)
    return found[1] if found else "of unknown version"


def run_wrk(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
    """Load the server on `port` by one thread; see `measurement.Load`. Runs for whole seconds.

    Raises:
        BenchmarkError: wrk failed or connections were lost.
    """
    seconds = max(1, round(limits.seconds))
    with tempfile.NamedTemporaryFile(prefix="lazulite-bench-") as file:
        for request in workload.requests:
            file.write(b"%d\n" % len(request) + request)
        file.flush()
        options = ["-t1", f"-c{workload.connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(_SCRIPT)]
        arguments = [f"http://127.0.0.1:{port}", "--", file.name]
        arguments += map(str, (first, limits.requests, workload.start(first)))
        output = subprocess.run(
            ["wrk", *options, *arguments], capture_output=True, text=True, check=False, timeout=seconds + 60
        )
    found = re.search(r"^RESULT (.+)$", output.stdout, re.MULTILINE)
    if found is None:
        raise BenchmarkError(f"wrk: {output.stdout}{output.stderr}")
    requests, bad_status, lost, microseconds, received, *latencies_us = map(float, found[1].split())
    if lost:
        raise BenchmarkError(f"{lost:.0f} connections failed or timed out")
    return Measurement(
        requests=int(requests),
        errors=int(bad_status),
        seconds=microseconds / 1e6,
        received_bytes=int(received),
        latency=Latency(*(each / 1000 for each in latencies_us)),
    )
