"""What the load balancers of `deploy/` send again, behind the real programs where they are installed."""

import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from tests.postgres.server import until

from .balancers import BALANCERS, Balancer, free, program

WRITES = ["POST", "PUT", "MERGE", "PATCH", "DELETE"]
READS = ["GET", "HEAD"]
TARGET = "/orders/T%2Fa%20(PartitionKey='%25',RowKey='{}')?$filter=a%20eq%20'b+c'"


class Backend(ThreadingHTTPServer):
    """A server that answers `/health`, and reads every other request whole; then it answers, or hangs up."""

    daemon_threads = True

    def __init__(self, address: str, *, hangs_up: bool) -> None:
        self.hangs_up = hangs_up
        self.seen: list[tuple[str, str, str, bytes]] = []
        """Method, target, Host and body of each request."""
        host, port = address.split(":")
        super().__init__((host, int(port)), _Handler)
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def server_bind(self) -> None:
        """Bind, without the look-up of names that `HTTPServer` does."""
        socketserver.TCPServer.server_bind(self)

    def close(self) -> None:
        """Refuse connections from now on."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Backend
    protocol_version = "HTTP/1.1"

    def _take(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/health":
            self._answer()
            return
        self.server.seen.append((self.command, self.path, self.headers["Host"], body))
        if self.server.hangs_up:
            self.close_connection = True
        else:
            self._answer()

    def _answer(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = do_MERGE = do_PATCH = do_DELETE = _take  # noqa: N815 - its base's names

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def balanced(kind: type[Balancer], directory: Path, *, hangs_up: bool) -> Iterator[tuple[Balancer, list[Backend]]]:
    addresses = [free(), free()]
    with ExitStack() as stack:
        backends = [Backend(address, hangs_up=hangs_up) for address in addresses]
        for backend in backends:
            stack.callback(backend.close)
        balancer = kind(directory, addresses)
        stack.callback(balancer.close)
        yield balancer, backends


def ask(balancer: Balancer, method: str, target: str) -> int:
    connection = HTTPConnection(balancer.address, timeout=30)
    try:
        connection.request(method, target, b"" if method in READS else b"{}", {"Host": "tables.example:8"})
        return connection.getresponse().status
    finally:
        connection.close()


def sightings(backends: list[Backend], target: str) -> "Counter[tuple[str, str, str, bytes]]":
    return Counter(seen for backend in backends for seen in backend.seen if seen[1] == target)


both = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            each,
            id=each.name,
            marks=pytest.mark.skipif(
                program(each.name) is None, reason=f"no {each.name} here: apt-get install {each.name}"
            ),
        )
        for each in BALANCERS
    ],
)


@both
def test_request_without_response_is_repeated_only_if_it_reads(kind: type[Balancer], tmp_path: Path) -> None:
    numbers = count()

    def seen_times(method: str) -> int:
        target = TARGET.format(next(numbers))
        assert ask(balancer, method, target) >= 500
        seen = sightings(backends, target)
        assert set(seen) <= {(method, target, "tables.example:8", b"" if method in READS else b"{}")}
        return seen.total()

    def seen_at_last(method: str, least: int) -> int:
        """How often one request was seen; nginx sends none for a second after a failure, so others are tried."""
        times = 0

        def enough() -> bool:
            nonlocal times
            times = seen_times(method)
            return times >= least

        until(enough, f"{method} to be seen {least} times")
        return times

    with balanced(kind, tmp_path, hangs_up=True) as (balancer, backends):
        for method in WRITES:
            assert seen_at_last(method, 1) == 1, method
        for method in READS:
            seen_at_last(method, 2)


@both
def test_undelivered_request_is_repeated_whatever_its_method(kind: type[Balancer], tmp_path: Path) -> None:
    with balanced(kind, tmp_path, hangs_up=False) as (balancer, backends):
        backends[0].close()
        for method in (*WRITES, *READS):
            for number in range(2):  # One each, were both there.
                target = TARGET.format(f"{method}{number}")
                assert ask(balancer, method, target) == 200, method
                assert sightings(backends, target).total() == 1
