"""Server processes: started on one CPU, asked for their processor time and memory, stopped again."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.workload import BenchmarkError

ROOT = Path(__file__).parents[1]
SERVER_CPU, CLIENT_CPU = 0, 1
STOP_SECONDS_MAX = 60


class Server(NamedTuple):
    """A running server: its port on the loopback address and its process.

    `peers` are servers that answer together with it. `tree`: the processor time of its children counts as well.
    """

    port: int
    pid: int
    peers: "tuple[Server, ...]" = ()
    tree: bool = False

    @property
    def host(self) -> str:
        """Host and port, as in a URL."""
        return f"127.0.0.1:{self.port}"

    @property
    def all(self) -> "Sequence[Server]":
        """The server and its peers."""
        return (self, *self.peers)

    def cpu_seconds(self) -> float | None:
        """Return the processor seconds of all threads so far, or None where /proc does not tell."""
        try:
            return sum(_tree_seconds(each.pid) if each.tree else _cpu_times(each.pid)[0] for each in self.all)
        except OSError:
            return None

    def memory_mb(self) -> tuple[float, float] | None:
        """Return the resident memory in 10**6 bytes, and its peak; None of a tree, and where /proc does not tell."""
        try:
            text = "".join(Path(f"/proc/{each.pid}/status").read_text(encoding="utf-8") for each in self.all)
        except OSError:
            return None
        now, peak = (sum(map(int, re.findall(rf"{name}:\s+(\d+) kB", text))) for name in ("VmRSS", "VmHWM"))
        return None if self.tree else (now * 1024 / 1e6, peak * 1024 / 1e6)

    def workers(self) -> "Server":
        """Return the processes that it has started, at least one, as one server at the same port."""
        first, *others = (Server(self.port, pid) for pid in _children(self.pid))
        return first._replace(peers=tuple(others))


def _cpu_times(pid: int) -> tuple[float, float]:
    """Return processor seconds of a process, and of its children that have ended, by proc(5)."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    fields = stat.rpartition(")")[2].split()  # the command's name may hold blanks; utime is field 14 of proc(5)
    own, own_kernel, children, children_kernel = map(int, fields[11:15])
    ticks = os.sysconf("SC_CLK_TCK")
    return (own + own_kernel) / ticks, (children + children_kernel) / ticks


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _tree_seconds(pid: int) -> float:
    """Read again until no child ended meanwhile: it might count twice, or not at all."""
    for _ in range(100):
        ended = _cpu_times(pid)[1]
        with suppress(FileNotFoundError, ProcessLookupError):  # The second, if it ends while it is read.
            running = sum(_cpu_times(child)[0] for child in _children(pid))
            if (after := _cpu_times(pid))[1] == ended:
                return sum(after) + running
    raise ProcessLookupError(f"the children of process {pid} change too often")


def can_pin() -> bool:
    """Tell whether server and client can have a CPU each."""
    return hasattr(os, "sched_setaffinity") and {SERVER_CPU, CLIENT_CPU} <= os.sched_getaffinity(0)


@contextmanager
def pinned(cpu: int, *, pin: bool) -> Iterator[None]:
    """Hold this process, and its new children, on one CPU."""
    before = os.sched_getaffinity(0) if pin else set()
    if pin:
        os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        if pin:
            os.sched_setaffinity(0, before)


@contextmanager
def running(command: Sequence[str], variables: Mapping[str, str], *, pin: bool) -> Iterator[Server]:
    """Run a server until the block ends; raise a `BenchmarkError` if it ends without printing its endpoint."""
    environment = {**os.environ, **variables}
    with pinned(SERVER_CPU, pin=pin):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    with process:
        assert process.stdout is not None
        try:
            announcement = r"(?:listens on|successfully started on|Running on) .*?127\.0\.0\.1:(\d+)"
            ports = (found[1] for line in process.stdout if (found := re.search(announcement, line)))
            port = next(ports, None)
            if port is None:
                raise BenchmarkError(f"{command} ended without printing its endpoint")
            yield Server(int(port), process.pid)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
