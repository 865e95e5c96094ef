"""Single requests, whose responses are checked closely before anything is measured."""

from http.client import HTTPResponse
from socket import create_connection
from typing import NamedTuple

from benchmarks.workload import Workload


class Reply(NamedTuple):
    """The status and the body of a response."""

    status: int
    body: bytes


def exchange(port: int, request: bytes) -> Reply:
    """Send one request on a connection of its own and return the response."""
    with create_connection(("127.0.0.1", port), timeout=30) as connection, HTTPResponse(connection) as response:
        connection.sendall(request)
        response.begin()
        return Reply(response.status, response.read())


def probe(workload: Workload, port: int, number: int = 0) -> bytes:
    """Send one request of the workload; return the response's body if `Workload.check` finds it right."""
    return workload.check(*exchange(port, next(workload.numbered(number))))
