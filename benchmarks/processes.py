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
_READY = re.compile(r"(?:listens on|successfully started on|Running on) .*?127\.0\.0\.1:(\d+)")


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
        with suppress(OSError):
            return sum(_tree_seconds(each.pid) if each.tree else _cpu_seconds(each.pid)[0] for each in self.all)
        return None

    def memory_mb(self) -> tuple[float, float] | None:
        """Return the resident memory in 10**6 bytes, and its peak; None of a tree, and where /proc does not tell."""
        with suppress(OSError):
            text = "".join(Path(f"/proc/{each.pid}/status").read_text("utf-8") for each in self.all)
            now, peak = (sum(map(int, re.findall(rf"{name}:\s+(\d+) kB", text))) for name in ("VmRSS", "VmHWM"))
            return None if self.tree else (now * 1024 / 1e6, peak * 1024 / 1e6)
        return None

    def workers(self) -> "Server":
        """Return the processes that it has started, at least one, as one server at the same port."""
        first, *others = (Server(self.port, pid) for pid in _children(self.pid))
        return first._replace(peers=tuple(others))


def _cpu_seconds(pid: int) -> tuple[float, float]:
    """Return processor seconds of a process, and of its children that have ended, by proc(5)."""
    stat = Path(f"/proc/{pid}/stat").read_text("ascii")
    ticks = [int(each) for each in stat.rpartition(")")[2].split()[11:15]]  # The command's name may hold blanks.
    own, ended = (sum(each) / os.sysconf("SC_CLK_TCK") for each in (ticks[:2], ticks[2:]))
    return own, ended


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def _tree_seconds(pid: int) -> float:
    """Read again until no child ended meanwhile: it might count twice, or not at all."""
    for _ in range(100):
        ended = _cpu_seconds(pid)[1]
        with suppress(FileNotFoundError, ProcessLookupError):  # The second, if it ends while it is read.
            running = sum(_cpu_seconds(child)[0] for child in _children(pid))
            if (after := _cpu_seconds(pid))[1] == ended:
                return sum(after) + running
    raise ProcessLookupError(f"the children of process {pid} change too often")


def can_pin() -> bool:
    """Tell whether server and client can have a CPU each."""
    return hasattr(os, "sched_setaffinity") and {SERVER_CPU, CLIENT_CPU} <= os.sched_getaffinity(0)


@contextmanager
def pinned(cpu: int, *, pin: bool) -> Iterator[None]:
    """Hold this process, and its new children, on one CPU."""
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
def running(command: Sequence[str], variables: Mapping[str, str], *, pin: bool) -> Iterator[Server]:
    """Run a server until the block ends; raise a `BenchmarkError` if it ends without printing its endpoint."""
    with pinned(SERVER_CPU, pin=pin):
        environment = {**os.environ, **variables}
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    with process:
        try:
            port = next((found[1] for line in process.stdout or () if (found := _READY.search(line))), None)
            if port is None:
                raise BenchmarkError(f"{command} ended without printing its endpoint")
            yield Server(int(port), process.pid)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
