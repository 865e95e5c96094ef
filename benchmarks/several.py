"""Loads of several servers at once, and of servers that are held to a share of a CPU.

A share shows the rates of several servers with CPUs enough, on a machine of few. It limits the time that a process has
a processor. A process that waits for others uses none of its share, as on a machine of its own: but it can save up
`_BURST_SECONDS` only.
"""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from benchmarks.processes import Server
from benchmarks.workload import NUMBERS_PER_RUN, Limits, Load, Measurement, Workload

_TICK_SECONDS, _BURST_SECONDS = 0.001, 0.002
_SCHEDULED = 2  # The kind of clock in a clock's number (`CPUCLOCK_SCHED`): the scheduler's count, in nanoseconds.


def loading_all(load: Load, server: Server) -> Load:
    """Return a load of a server and its peers: each gets its share of the connections, by a generator of its own.

    Each begins with other requests, so that they do not change the same entities at the same time. Of the latencies,
    the worse one counts.
    """
    number = len(server.all)

    def together(workload: Workload, _: int, first: int, limits: Limits) -> Measurement:
        def run(place: int) -> Measurement:
            begin = place * len(workload.requests) // number
            turned = [*workload.requests[begin:], *workload.requests[:begin]]
            share = replace(workload, connections=max(1, workload.connections // number), requests=turned)
            return load(share, server.all[place].port, first + place * (NUMBERS_PER_RUN // number), limits)

        with ThreadPoolExecutor(number) as pool:
            answered, errors, seconds, received, *latencies = zip(*pool.map(run, range(number)), strict=True)
        return Measurement(sum(answered), sum(errors), max(seconds), sum(received), *map(max, latencies))

    return together


def throttling(load: Load, server: Server, share: float) -> Load:
    """Return a load that holds a server, and each of its peers, to a share of a CPU meanwhile."""

    def throttled(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
        over = threading.Event()
        with ThreadPoolExecutor(len(server.all)) as pool:
            for each in server.all:
                pool.submit(_hold, each.pid, share, over)
            try:
                return load(workload, port, first, limits)
            finally:
                over.set()

    return throttled


def allowance(left_s: float, share: float, passed_s: float, used_s: float) -> float:
    """Return the processor time that a process may still use, after some time and its use of the processor."""
    return min(left_s + passed_s * share - used_s, _BURST_SECONDS)


def _hold(pid: int, share: float, over: threading.Event) -> None:
    clock = ~pid << 3 | _SCHEDULED  # As clock_getcpuclockid(3) has it.
    now_s, used_s, left_s = time.monotonic(), time.clock_gettime(clock), 0.0
    stopped = False
    try:
        while not over.wait(_TICK_SECONDS):
            before_s, used_before_s = now_s, used_s
            now_s, used_s = time.monotonic(), time.clock_gettime(clock)
            left_s = allowance(left_s, share, now_s - before_s, used_s - used_before_s)
            if stopped != (left_s <= 0):
                stopped = not stopped
                os.kill(pid, signal.SIGSTOP if stopped else signal.SIGCONT)
    finally:
        os.kill(pid, signal.SIGCONT)
