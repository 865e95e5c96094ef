"""Holding servers to a share of a CPU: what several of them would do with CPUs enough, shown on a machine of few.

What is held is the time that a process has a processor. While it waits for others it uses none of its share, as on a
machine of its own: but it can save up `_BURST_SECONDS` only.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.measurement import Limits, Load, Measurement
from benchmarks.processes import Server
from benchmarks.workload import Workload

_TICK_SECONDS = 0.001
_BURST_SECONDS = 0.002
_SCHEDULED = 2
"""The kind of clock in a clock's number (`CPUCLOCK_SCHED`): what the scheduler has counted, in nanoseconds."""


class Allowance:
    """What a process may use of the processor before it has to stop.

    Args:
        share: of a processor.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._seconds = 0.0

    def go_on(self, passed_s: float, used_s: float) -> bool:
        """Account for some time, and for that of the processor; say whether the process may go on."""
        self._seconds = min(self._seconds + passed_s * self._share - used_s, _BURST_SECONDS)
        return self._seconds > 0


def throttling(load: Load, servers: Sequence[Server], share: float) -> Load:
    """Return a load that holds each of some servers to a share of a CPU meanwhile."""

    def throttled(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
        with _held([server.pid for server in servers], share):
            return load(workload, port, first, limits)

    return throttled


@contextmanager
def _held(pids: Sequence[int], share: float) -> Iterator[None]:
    """Stop processes whenever they have had their share, until the block ends."""
    over = threading.Event()
    threads = [threading.Thread(target=_hold, args=(pid, share, over)) for pid in pids]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _hold(pid: int, share: float, over: threading.Event) -> None:
    clock = ~pid << 3 | _SCHEDULED  # As clock_getcpuclockid(3) has it.
    allowance = Allowance(share)
    now_s, used_s, goes_on = time.monotonic(), time.clock_gettime(clock), True
    try:
        while not over.wait(_TICK_SECONDS):
            before = now_s, used_s
            now_s, used_s = time.monotonic(), time.clock_gettime(clock)
            may = allowance.go_on(now_s - before[0], used_s - before[1])
            if may != goes_on:
                os.kill(pid, signal.SIGCONT if may else signal.SIGSTOP)
                goes_on = may
    finally:
        os.kill(pid, signal.SIGCONT)
