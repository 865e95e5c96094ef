"""Measuring one workload: the service and the floor in turn, several rounds, so that noise hits both."""

import http.client
import itertools
import os
import socket
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from benchmarks.measurement import BenchmarkError, Limits, Load, Measurement
from benchmarks.processes import CLIENT_CPU, Server, pinned, running
from benchmarks.workload import MARK, Workload

NUMBERS_PER_RUN = 10 ** (len(MARK) - 3)
"""Runs of one benchmark number their requests from different multiples of this, so no key comes twice."""


class Plan(NamedTuple):
    """How every workload is measured: rounds of `ours` seconds against the service, then `floor` against the floor."""

    load: Load
    rounds: int
    ours: Limits
    floor: Limits
    pin: bool


class Round(NamedTuple):
    """One run against one server, with the processor seconds that server and client took."""

    found: Measurement
    server_cpu_s: float | None
    client_cpu_s: float


class Comparison(NamedTuple):
    """A workload's rounds against the service and, pairwise, against the floor."""

    workload: Workload
    ours: list[Round]
    floor: list[Round]

    @property
    def errors(self) -> int:
        """Responses with a wrong status."""
        return sum(part.found.errors for part in self.ours)

    @property
    def ratio(self) -> float:
        """The service's rate as a share of the floor's, the median over the rounds."""
        return median(ours.found.rate / floor.found.rate for ours, floor in zip(self.ours, self.floor, strict=True))


class Reply(NamedTuple):
    """A response's status and body."""

    status: int
    body: bytes


def exchange(port: int, request: bytes) -> Reply:
    """Send one request on a connection of its own and return the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        with http.client.HTTPResponse(connection) as response:
            response.begin()
            return Reply(response.status, response.read())


def probe(workload: Workload, server: Server, number: int) -> Reply:
    """Send one request of the workload and look closely at the answer.

    Raises:
        BenchmarkError: wrong status, or not as many results as the workload counts.
    """
    reply = exchange(server.port, next(workload.numbered(number)))
    if reply.status != workload.status:
        raise BenchmarkError(
            f"{workload.name}: status {reply.status}, expected {workload.status}: {reply.body[:500]!r}"
        )
    if workload.witness and reply.body.count(workload.witness) != workload.units:
        raise BenchmarkError(f"{workload.name}: not {workload.units} results in {reply.body[:500]!r}")
    return reply


def compare(workload: Workload, server: Server, plan: Plan, runs: Iterator[int]) -> Comparison:
    """Measure `workload` against the service and the floor; `runs` numbers the runs.

    Raises:
        BenchmarkError: the answers are not, or do not stay, what the workload counts.
    """
    reply = probe(workload, server, next(runs) * NUMBERS_PER_RUN)
    comparison = Comparison(workload, [], [])
    floor_options = ["--status", str(workload.status), "--body-bytes", str(len(reply.body))]
    with running("benchmarks.floor", *floor_options, pin=plan.pin) as floor:
        for _ in range(plan.rounds):
            ours = _round(workload, server, plan, plan.ours, next(runs))
            # A batch that fails inside still says 202, but in fewer bytes.
            if ours.found.received_bytes < 0.9 * ours.found.requests * len(reply.body):
                raise BenchmarkError(f"{workload.name}: the answers under load are shorter than the first one")
            comparison.ours.append(ours)
            comparison.floor.append(_round(workload, floor, plan, plan.floor, next(runs)))
    return comparison


def _round(workload: Workload, server: Server, plan: Plan, limits: Limits, run: int) -> Round:
    server_before, client_before = server.cpu_seconds(), _own_cpu_seconds()
    with pinned(CLIENT_CPU, pin=plan.pin):
        found = plan.load(workload, server.port, run * NUMBERS_PER_RUN, limits)
    server_after, client_after = server.cpu_seconds(), _own_cpu_seconds()
    if found.requests == 0:
        raise BenchmarkError(f"{workload.name}: no request was answered in {found.seconds:.1f} s")
    took = None if server_before is None or server_after is None else server_after - server_before
    return Round(found, took, client_after - client_before)


def _own_cpu_seconds() -> float:
    """Processor seconds of this process and of the clients that it ran and that ended."""
    return sum(os.times()[:4])


def numbered_runs() -> Iterator[int]:
    """Return the numbers of a benchmark's runs."""
    return itertools.count(1)
