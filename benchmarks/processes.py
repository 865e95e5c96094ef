"""Server processes: started on one CPU, asked for their processor time, stopped again."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.measurement import BenchmarkError

ROOT = Path(__file__).parents[1]
SERVER_CPU, CLIENT_CPU = 0, 1
STOP_SECONDS_MAX = 20


class Server(NamedTuple):
    """A running server: its port on the loopback address and its process id."""

    port: int
    pid: int

    def cpu_seconds(self) -> float | None:
        """Return the processor time of all its threads so far, or None where /proc does not tell."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii")
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()  # the command's name may hold blanks; utime is field 14 of proc(5)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
def running(*arguments: str, pin: bool) -> Iterator[Server]:
    """Run `python -m …` until the block ends. The first URL on its standard output tells the port.

    Raises:
        BenchmarkError: it ended without printing one.
    """
    with pinned(SERVER_CPU, pin=pin):
        process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
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
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
            return int(found[1])
    raise BenchmarkError(f"{process.args!r} ended without printing its endpoint")
