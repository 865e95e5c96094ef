"""Server processes: started on one CPU, asked for their processor time and memory, stopped again."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.measurement import BenchmarkError

ROOT = Path(__file__).parents[1]
SERVER_CPU, CLIENT_CPU = 0, 1
STOP_SECONDS_MAX = 60


class Memory(NamedTuple):
    """Resident memory in MB (of 10**6 bytes): now, and the most so far."""

    now_mb: float
    peak_mb: float


class Counted(Protocol):
    """What uses processor time and memory."""

    def cpu_seconds(self) -> float | None:
        """Return the processor time of all its threads so far, or None where /proc does not tell."""

    def memory(self) -> Memory | None:
        """Return its resident memory, or None where /proc does not tell."""


class Served(Counted, Protocol):
    """Who answers: one server or several."""

    @property
    def port(self) -> int:
        """Where, on the loopback address."""


class Server(NamedTuple):
    """A running server: its port on the loopback address and its process id."""

    port: int
    pid: int

    @property
    def host(self) -> str:
        """Host and port, as in a URL."""
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float | None:
        """See `Counted`."""
        try:
            return cpu_times(self.pid).own_s
        except OSError:
            return None

    def children(self) -> "list[Server]":
        """Return the processes that it has started, at the same port."""
        pids = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split()
        return [Server(self.port, int(pid)) for pid in pids]

    def memory(self) -> Memory | None:
        """See `Counted`."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return None
        found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", status, re.MULTILINE))
        return Memory(int(found["VmRSS"]) * 1024 / 1e6, int(found["VmHWM"]) * 1024 / 1e6)


class CpuTimes(NamedTuple):
    """Processor seconds of a process, and of its children that have ended."""

    own_s: float
    ended_children_s: float


def cpu_times(pid: int) -> CpuTimes:
    """Return what proc(5) says of a process.

    Raises:
        OSError: it does not say anything.
    """
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    fields = stat.rpartition(")")[2].split()  # the command's name may hold blanks; utime is field 14 of proc(5)
    own, own_kernel, children, children_kernel = map(int, fields[11:15])
    ticks = os.sysconf("SC_CLK_TCK")
    return CpuTimes((own + own_kernel) / ticks, (children + children_kernel) / ticks)


def can_pin() -> bool:
    """Tell whether server and client can have a CPU each."""
    return hasattr(os, "sched_setaffinity") and {SERVER_CPU, CLIENT_CPU} <= os.sched_getaffinity(0)


@contextmanager
def pinned(cpu: int, *, pin: bool) -> Iterator[None]:
    """Hold this process, and what it starts meanwhile, on one CPU."""
    if not pin:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def running(command: Sequence[str], *, pin: bool, variables: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run a server until the block ends. The last address in the line where it says that it is up tells the port.

    Args:
        command: the program and its arguments.
        pin: whether it is held on a CPU.
        variables: added to its environment.

    Raises:
        BenchmarkError: it ended without saying so.
    """
    with pinned(SERVER_CPU, pin=pin):
        environment = {**os.environ, **(variables or {})}
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    with process:
        try:
            yield Server(_announced_port(process), process.pid)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


def _announced_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"(?:listens on|successfully started on) .*?127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise BenchmarkError(f"{process.args!r} ended without printing its endpoint")
