"""Single requests, whose responses are checked closely before anything is measured."""

import http.client
import socket
from typing import NamedTuple, Self

from benchmarks.processes import Server
from benchmarks.workload import BenchmarkError, Workload


class Reply(NamedTuple):
    """A response, with the Server-Timing of its cost."""

    status: int
    body: bytes
    timing: str

    def must(self, name: str, status: int) -> Self:
        """Return the response if it has the right status, else raise a `BenchmarkError`."""
        if self.status != status:
            raise BenchmarkError(f"{name}: status {self.status}, expected {status}: {self.body[:500]!r}")
        return self


def exchange(port: int, request: bytes) -> Reply:
    """Send one request on a connection of its own and return the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        with http.client.HTTPResponse(connection) as response:
            response.begin()
            return Reply(response.status, response.read(), response.getheader("Server-Timing", ""))


def probe(workload: Workload, server: Server, number: int) -> Reply:
    """Send one request of the workload; raise a `BenchmarkError` unless status and number of results are right."""
    reply = exchange(server.port, next(workload.numbered(number))).must(workload.name, workload.status)
    results = workload.units if workload.results is None else workload.results
    if workload.witness and reply.body.count(workload.witness) != results:
        raise BenchmarkError(f"{workload.name}: not {results} results in {reply.body[:500]!r}")
    return reply
