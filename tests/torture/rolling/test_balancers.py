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
_NUMBERS = count()
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
        balancer = kind(directory, addresses, addresses)
        stack.callback(balancer.close)
        yield balancer, backends


class Seen:
    """How often the backends see one request, whose target is a new one each time."""

    def __init__(self, address: str, backends: list[Backend], target: str) -> None:
        self._address = address
        self._backends = backends
        self._target = target

    def times(self, method: str) -> int:
        """Send a request that gets no response; return how often it was seen."""
        target = self._target.format(next(_NUMBERS))
        assert ask(self._address, method, target) >= 500
        seen = sightings(self._backends, target)
        assert set(seen) <= {(method, target, "tables.example:8", b"" if method in READS else b"{}")}
        return seen.total()

    def at_last(self, method: str, least: int) -> int:
        """As `times`. nginx sends none for a second after a failure, so requests are tried until one is seen."""
        times = 0

        def enough() -> bool:
            nonlocal times
            times = self.times(method)
            return times >= least

        until(enough, f"{method} to be seen {least} times")
        return times


def ask(address: str, method: str, target: str) -> int:
    connection = HTTPConnection(address, timeout=30)
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
    with balanced(kind, tmp_path, hangs_up=True) as (balancer, backends):
        seen = Seen(balancer.address, backends, TARGET)
        for method in WRITES:
            assert seen.at_last(method, 1) == 1, method
        for method in READS:
            seen.at_last(method, 2)


@both
def test_get_of_messages_is_not_repeated_and_a_peek_is(kind: type[Balancer], tmp_path: Path) -> None:
    with balanced(kind, tmp_path, hangs_up=True) as (balancer, backends):
        for query in ("", "?numofmessages=32&visibilitytimeout=5", "?peekonly=false"):
            seen = Seen(balancer.queue_address, backends, f"/orders/jobs{{}}/messages{query}")
            assert [seen.at_last("GET", 1) for _ in range(3)] == [1, 1, 1], query
        for target in (
            "jobs{}/messages?peekonly=true",
            "jobs{}/messages?numofmessages=2&peekonly=true",
            "jobs{}?comp=acl",
        ):
            Seen(balancer.queue_address, backends, f"/orders/{target}").at_last("GET", 2)
        assert Seen(balancer.queue_address, backends, "/orders/jobs{}/messages").at_last("POST", 1) == 1


@both
@pytest.mark.parametrize("target", [TARGET, "/orders/jobs/messages?n={}"])
def test_undelivered_request_is_repeated_whatever_its_method(kind: type[Balancer], tmp_path: Path, target: str) -> None:
    with balanced(kind, tmp_path, hangs_up=False) as (balancer, backends):
        backends[0].close()
        address = balancer.address if target == TARGET else balancer.queue_address
        for method in (*WRITES, *READS):
            for number in range(2):  # One each, were both there.
                one = target.format(f"{method}{number}")
                assert ask(address, method, one) == 200, method
                assert sightings(backends, one).total() == 1
