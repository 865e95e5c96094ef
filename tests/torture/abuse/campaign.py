"""The campaign of hostile clients: what a good client keeps of its throughput beside each of them.

Server and clients have a processor each, where there are two. The good client is measured alone and beside a scenario,
in turns; what counts of a scenario is the median ratio of such pairs. A pair is *quiet* if the server was busy nearly
all the time while the good client was alone: else the machine had other things to do, and the ratio proves nothing.
"""

import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

from benchmarks.entities import entity
from benchmarks.load import run_asyncio, run_wrk, wrk_version
from benchmarks.processes import CLIENT_CPU, SERVER_CPU, can_pin, pinned
from benchmarks.processes import Server as Process
from benchmarks.requests import TABLE
from benchmarks.workload import MARK, BenchmarkError, Limits, Load, Workload

from tests.certificates import Authority
from tests.server_process import serving
from tests.torture.campaign import Budget, Campaign, Report

from .probes import preload, stored_keys
from .scenarios import SCENARIOS, UNAUTHENTICATED
from .target import Target

KEPT_RATIO = 0.8
"""What the good client keeps at least."""

QUIET_RATIO = 0.85
"""The server's part of a processor, while the good client is alone, in a quiet pair."""

UNAUTHENTICATED_MB_MAX = 200.0
"""What clients without credentials may add to the server's memory: 128 MiB, and what Python needs beside."""

PAIRS_MIN = 3
CONNECTIONS = 16
ENTITIES = 20_000
GETS_PER_INSERT = 20
SECONDS = 1.5
FLAGS = ("--header-read-seconds", "5", "--body-stall-seconds", "5", "--https-port", "0")


class Sample(NamedTuple):
    """What the good client got: requests a second, and the server's part of a processor meanwhile."""

    rate: float
    busy: float
    p99_ms: float


@dataclass
class Findings:
    """Of one scenario: pairs of samples, alone and beside it, what came of what it did, and the memory that it took."""

    pairs: list[tuple[Sample, Sample]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    grown_mb: float = 0.0

    def ratio(self) -> float | None:
        """Return the median of the quiet pairs; None if there are too few."""
        ratios = [beside.rate / alone.rate for alone, beside in self.pairs if alone.busy >= QUIET_RATIO]
        return median(ratios) if len(ratios) >= PAIRS_MIN else None

    def summary(self) -> str:
        """Return the ratio and the 99th percentiles, in brackets what was measured beside other work."""
        quiet = self.ratio()
        ratio = median(beside.rate / alone.rate for alone, beside in self.pairs) if quiet is None else quiet
        alone, beside = (median(pair[side].p99_ms for pair in self.pairs) for side in (0, 1))
        text = f"{ratio:.2f} p99 {alone:.1f} → {beside:.1f} ms"
        return text if quiet is not None else f"({text})"

    def problems(self, name: str) -> Iterator[str]:
        """Yield what must not be."""
        unexpected = {
            outcome: count for outcome, count in self.outcomes.items() if outcome not in SCENARIOS[name].outcomes
        }
        if unexpected:
            yield f"{name}: ended as {unexpected}, expected of {sorted(SCENARIOS[name].outcomes)}"
        ratio = self.ratio()
        if ratio is not None and ratio < KEPT_RATIO:
            yield f"{name}: the good client keeps {ratio:.2f} of its throughput"
        if name in UNAUTHENTICATED and self.grown_mb > UNAUTHENTICATED_MB_MAX:
            yield f"{name}: the server's memory grew by {self.grown_mb:.0f} MB"


class GoodClient:
    """Point GETs and some inserts, each answered before the next."""

    def __init__(self, target: Target, process: Process, random: Random) -> None:
        self._target, self._process = target, process
        self._load: Load = run_asyncio if wrk_version() is None else run_wrk
        requests = target.requests
        keys = random.sample(stored_keys(ENTITIES), 2000)
        good = [requests.raw("GET", f"{TABLE}(PartitionKey='{first}',RowKey='{second}')") for first, second in keys]
        if self._load is run_wrk:  # which counts only what is rejected as an error
            good[::GETS_PER_INSERT] = [requests.insert(entity("good", MARK.decode()))] * len(good[::GETS_PER_INSERT])
        self._workload = Workload("good", 1, CONNECTIONS, 200, good)
        self._sent = 0
        self.answered = 0

    def sample(self) -> Sample:
        """Ask for a while.

        Raises:
            BenchmarkError: a request was not answered, or not well.
        """
        began, used = time.monotonic(), self._process.cpu_seconds() or 0.0
        found = self._load(self._workload, self._target.port, self._sent, Limits(SECONDS, 10**9))
        used = (self._process.cpu_seconds() or 0.0) - used
        self._sent += found.requests + CONNECTIONS
        self.answered += found.requests
        if found.errors:
            raise BenchmarkError(f"{found.errors} of {found.requests} requests were rejected")
        return Sample(found.requests / found.seconds, used / (time.monotonic() - began), found.p99_ms)

    def rest(self) -> None:
        """Return when the server is done with what was left to it, or after a while."""
        for _ in range(100):
            used = self._process.cpu_seconds() or 0.0
            time.sleep(0.1)
            if (self._process.cpu_seconds() or 0.0) - used < 0.02:
                return


@contextmanager
def _beside(name: str, target: Target, outcomes: Counter[str]) -> Iterator[None]:
    """Run a scenario, in a process of its own."""
    command = [sys.executable, "-m", "tests.torture.abuse.scenarios", name, str(target.port), str(target.https_port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", f"{name} did not begin"
        try:
            yield
        finally:
            said, _ = process.communicate(timeout=60)
            outcomes.update(json.loads(said))


def _prepare(target: Target) -> None:
    created = Workload("table", 1, 1, 201, [target.requests.create_table()])
    filled = Workload("rows", 1, 4, 202, preload(target.requests, ENTITIES))
    for workload in (created, filled):
        count = len(workload.requests)
        if run_asyncio(workload, target.port, 0, Limits(120, count)).errors:
            raise BenchmarkError("the table could not be filled")


def _memory_mb(pid: int) -> float:
    memory_mb = Process(0, pid).memory_mb()
    return 0.0 if memory_mb is None else memory_mb[0]


def _run(budget: Budget, seed: int, directory: Path) -> Report:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    pin = can_pin()
    findings: dict[str, Findings] = {name: Findings() for name in SCENARIOS}
    problems: list[str] = []
    done = 0
    try:
        with pinned(SERVER_CPU, pin=pin):
            running = serving(directory / "data", *Authority(directory).issue().flags, *FLAGS)
            server = running.__enter__()
        try:
            https = re.search(r"https://[^/]*:(\d+)/", server.line())
            assert https is not None
            target = Target(int(server.account.host.split(":")[1]), int(https[1]))
            with pinned(CLIENT_CPU, pin=pin):
                _prepare(target)
                client = GoodClient(target, Process(target.port, server.pid), Random(seed))
                while budget.more(done):
                    name = list(SCENARIOS)[done % len(SCENARIOS)]
                    found = findings[name]
                    client.rest()
                    try:
                        alone = client.sample()
                        held_mb = _memory_mb(server.pid)
                        with _beside(name, target, found.outcomes):
                            found.pairs.append((alone, client.sample()))
                            found.grown_mb = max(found.grown_mb, _memory_mb(server.pid) - held_mb)
                    except BenchmarkError as error:
                        problems.append(f"{name}: {error}")
                    done += 1
        finally:
            running.__exit__(None, None, None)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    counts: dict[str, int | str] = {"rounds": done, "good requests": client.answered}
    counts |= {name: found.summary() for name, found in findings.items() if found.pairs}
    problems += [problem for name, found in findings.items() for problem in found.problems(name)]
    return Report(counts, tuple(problems))


ABUSE = Campaign(
    promise="Beside hostile clients the good one is answered, and keeps 80 % of its throughput.",
    unit="rounds",
    weight=2,
    run=_run,
)
