"""Holding servers to a share of a CPU: what several of them would do with CPUs enough, shown on a machine of few."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.measurement import Limits, Load, Measurement
from benchmarks.processes import Server
from benchmarks.workload import Workload

PERIOD_SECONDS = 0.02
"""Short enough for the clients to hardly notice: a server that has nothing to do may as well be stopped."""


def throttling(load: Load, servers: Sequence[Server], share: float) -> Load:
    """Return a load that holds each of some servers to a share of a CPU meanwhile."""

    def throttled(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
        with _held([server.pid for server in servers], share):
            return load(workload, port, first, limits)

    return throttled


@contextmanager
def _held(pids: Sequence[int], share: float) -> Iterator[None]:
    """Stop processes for a part of each period, until the block ends."""
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
    try:
        while not over.wait(PERIOD_SECONDS * share):
            os.kill(pid, signal.SIGSTOP)
            over.wait(PERIOD_SECONDS * (1 - share))
            os.kill(pid, signal.SIGCONT)
    finally:
        os.kill(pid, signal.SIGCONT)
