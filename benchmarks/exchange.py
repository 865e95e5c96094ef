"""Single requests, whose answers are looked at closely before anything is measured."""

import http.client
import socket
from typing import NamedTuple

from benchmarks.measurement import BenchmarkError
from benchmarks.processes import Served
from benchmarks.workload import Workload

ANSWER_SECONDS_MAX = 30


class Reply(NamedTuple):
    """A response's status, body, and what its Server-Timing says of the cost."""

    status: int
    body: bytes
    timing: str


def exchange(port: int, request: bytes) -> Reply:
    """Send one request on a connection of its own and return the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS_MAX) as connection:
        connection.sendall(request)
        with http.client.HTTPResponse(connection) as response:
            response.begin()
            return Reply(response.status, response.read(), response.getheader("Server-Timing", ""))


def probe(workload: Workload, server: Served, number: int) -> Reply:
    """Send one request of the workload and look closely at the answer.

    Raises:
        BenchmarkError: wrong status, or not as many results as the workload has.
    """
    reply = exchange(server.port, next(workload.numbered(number)))
    if reply.status != workload.status:
        raise BenchmarkError(
            f"{workload.name}: status {reply.status}, expected {workload.status}: {reply.body[:500]!r}"
        )
    results = workload.units if workload.results is None else workload.results
    if workload.witness and reply.body.count(workload.witness) != results:
        raise BenchmarkError(f"{workload.name}: not {results} results in {reply.body[:500]!r}")
    return reply
