"""Clients of one process: each has a connection, and at most one request under way.

In a closed loop, a client sends its next request when it has the response. At a rate, request number i is meant to be
sent at i / rate seconds, by any idle client. Its latency counts from there, whether or not a client was idle, so that a
stalled server cannot hide.

Invariants: a request has one outcome; a connection that is lost is opened again; no request lasts longer than
`TIMEOUT_SECONDS`.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools

from lazulite.stress.histogram import bucket_of
from lazulite.stress.plan import BACKOFF_SECONDS, PAUSE_SECONDS
from lazulite.stress.requests import Answer, Requests
from lazulite.stress.timer import Timer
from lazulite.stress.window import MIXED, Window

TIMEOUT_SECONDS = 60.0
RECONNECT_SECONDS = 0.2
"""The pause before a connection is opened again."""
_GATE = re.compile(rb'server-timing:[^\r\n]*gate;desc="(\w+)"', re.IGNORECASE)
_CODE = re.compile(rb"x-ms-error-code: *(\w+)", re.IGNORECASE)
_FAILED_PART = re.compile(rb"HTTP/1\.1 ([45]\d\d)")
"""The part of a batch that failed, and with it the batch, whose own status is 202."""
_ACCOUNT_TEXTS = (
    (b"Operations per second is over the account limit", "account"),
    (b"Ingress is over the account limit", "ingress"),
    (b"Egress is over the account limit", "egress"),
)
_LEAST_SECONDS = 1e-6


def refusal(status: int, response: bytes) -> str | None:
    """Return what throttled a request, as its response says; None: it was not throttled.

    Lazulite names it in `Server-Timing`. Others name an account by the text of the error. Else it is the error code.
    """
    if status not in (429, 500, 503):
        return None
    code = _CODE.search(response)
    word = code[1].decode() if code is not None else {429: "429", 503: "ServerBusy"}.get(status, "")
    if status == 500:
        if b"OperationTimedOut" not in response:
            return None
        word = "OperationTimedOut"
    if gate := _GATE.search(response):
        return gate[1].decode()
    return next((limit for text, limit in _ACCOUNT_TEXTS if text in response), word)


class Address(NamedTuple):
    """Where to connect."""

    host: str
    port: int
    is_tls: bool = False


class LoadGenerator:
    """The clients of a process, and what they counted.

    Args:
        address: of the endpoint.
        retry: what a client does after a refusal, one of `plan.RETRIES`.
        reads_bodies: whether the workload needs the bodies of responses.
        clock: returns seconds.
    """

    def __init__(
        self, address: Address, retry: str, *, reads_bodies: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock, self.retry, self.reads_bodies = clock, retry, reads_bodies
        self._address = address
        self.window = Window()
        """What was counted since `take`."""
        self.step = 0
        self.clients: list[Client] = []
        self._active = 0
        self._rate: float | None = None
        self._idle: deque[Client] = deque()
        self._begin, self._sent = 0.0, 0
        self._timer = Timer(self._pump)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._ended = asyncio.Event()

    async def open(self, requests: Requests) -> None:
        """Add a client. Raises `OSError` if the endpoint is not reached."""
        client = Client(self, requests)
        await self.connect(client)
        self.clients.append(client)

    async def connect(self, client: "Client") -> None:
        """Open the connection of a client."""
        loop, (host, port, is_tls) = asyncio.get_running_loop(), self._address
        await loop.create_connection(lambda: client, host, port, ssl=is_tls or None)

    def load(self, step: int, active: int, rate: float | None) -> None:
        """Have the first `active` clients send requests: at a rate per second, or in closed loops."""
        self.step, self._active, self._rate = step, active, rate
        self.window.step = MIXED
        self._begin, self._sent = self.clock(), 0
        self._idle = deque(each for each in self.clients[:active] if each.is_idle)
        if rate is not None:
            self._pump()
            return
        self._timer.stop()
        for client in self.clients[:active]:
            if client.is_idle:
                client.send_next(self.clock())

    def ready(self, client: "Client") -> None:
        """Let a client go on that has its response."""
        if client.place >= self._active or self._is_closed:
            return
        if self._rate is None:
            client.send_next(self.clock())
        else:
            self._idle.append(client)
            self._pump()

    def _pump(self) -> None:
        """Send the requests that are due, as long as clients are idle, and wake up for the next one."""
        if self._rate is None or self._is_closed:
            return
        while True:
            now, due = self.clock(), self._begin + self._sent / self._rate
            if due > now:
                if self._idle:
                    self._timer.set(due)
                return
            if not self._idle:
                return
            client = self._idle.popleft()
            if not client.is_idle:  # Its connection was lost, and it is in line again, or will be.
                continue
            self._sent += 1
            # A client that became idle after the intended start is the server's delay, not the load generator's.
            self.window.late[bucket_of(max(now - max(due, client.idle_since), _LEAST_SECONDS))] += 1
            client.send_next(due)

    def take(self) -> Window:
        """Return what was counted since the last call, and reset the counts."""
        found, self.window = self.window, Window(step=self.step)
        return found

    def expire(self) -> None:
        """End the requests that last too long. To be called about once a second."""
        bound = self.clock() - TIMEOUT_SECONDS
        for client in self.clients:
            client.expire(bound)

    def spawn_reconnect(self, client: "Client") -> None:
        """Open the connection of a client again, as often as it takes."""
        if not self._is_closed:
            task = asyncio.get_running_loop().create_task(self._reconnect(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reconnect(self, client: "Client") -> None:
        while not self._is_closed:
            await asyncio.sleep(RECONNECT_SECONDS)
            try:
                await self.connect(client)
            except OSError:
                self.window.failed["not connected"] += 1
            else:
                client.resume()
                return

    def end(self) -> None:
        """Note that the requests of a client have ended."""
        if all(each.has_ended for each in self.clients):
            self._ended.set()

    async def wait(self) -> None:
        """Wait until the requests of all clients have ended."""
        await self._ended.wait()

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        self._timer.close()
        for task in self._tasks:
            task.cancel()
        for client in self.clients:
            client.close()


class Client(asyncio.Protocol):
    """A client."""

    def __init__(self, loader: LoadGenerator, requests: Requests) -> None:
        self._loader, self._requests = loader, requests
        self.place = len(loader.clients)
        self.has_ended = False
        self.idle_since = loader.clock()
        self._request: bytes | None = None  # under way, or to be repeated
        self._since, self._attempts, self._is_waiting = 0.0, 0, False
        self._answer: Answer | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._head, self._body = b"", b""

    @property
    def is_idle(self) -> bool:
        """Whether the client could send a request."""
        return not (self._request is not None or self._transport is None or self._is_waiting or self.has_ended)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._head = self._body = b""

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if not self._head:
            self._head = data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.abort()

    def on_body(self, body: bytes) -> None:
        """See `httptools`."""
        if self._loader.reads_bodies:
            self._body += body

    def on_message_complete(self) -> None:
        """See `httptools`."""
        loader, now = self._loader, self._loader.clock()
        status, head, body = self._parser.get_status_code(), self._head, self._body
        self._head = self._body = b""
        if not self._parser.should_keep_alive() and self._transport is not None:
            self._transport.close()
        if self._request is None:
            return
        window = loader.window
        if body and (part := _FAILED_PART.search(body)) is not None:
            status, head = int(part[1]), body
        if status < 300 or (status == 409 and self._attempts):
            window.requests += 1
            window.latencies[bucket_of(max(now - self._since, _LEAST_SECONDS))] += 1
        elif (limit := refusal(status, head)) is not None:
            window.refused[limit] += 1
            self._back_off(status)
            return
        else:
            window.failed[str(status)] += 1
        self._end(Answer(status, body))
        self.resume()

    def _back_off(self, status: int) -> None:
        """Do what the plan says about refusals."""
        loop, retry = asyncio.get_running_loop(), self._loader.retry
        if retry == "backoff" and self._attempts < len(BACKOFF_SECONDS):
            self._is_waiting = True
            loop.call_later(BACKOFF_SECONDS[self._attempts], self._wake)
            self._attempts += 1
            return
        self._end(Answer(status, b""))
        if retry == "pause":
            self._is_waiting = True
            loop.call_later(PAUSE_SECONDS, self._wake)
        else:
            self.resume()

    def _wake(self) -> None:
        self._is_waiting = False
        self.resume()

    def _end(self, answer: Answer) -> None:
        """Note the outcome of a request."""
        self._request, self._attempts, self._answer = None, 0, answer

    def resume(self) -> None:
        """Go on: repeat a request, or be ready for the next one. Do nothing while waiting or without a connection."""
        if self._is_waiting or self._transport is None or self._transport.is_closing():
            return
        if self._request is not None:
            self._transport.write(self._request)
            return
        self.idle_since = self._loader.clock()
        self._loader.ready(self)

    def send_next(self, since: float) -> None:
        """Send the next request, whose latency counts from `since`."""
        try:
            answer, self._answer = self._answer, None
            self._request = next(self._requests) if answer is None else self._requests.send(answer)
        except StopIteration:
            self.has_ended = True
            self._loader.end()
            return
        self._since = since
        if self._transport is not None:
            self._transport.write(self._request)

    def expire(self, bound: float) -> None:
        """Abort a request that has lasted since before `bound`, unless it waits for its repetition."""
        if self._request is None or self._since >= bound or self._attempts or self._transport is None:
            return
        self._loader.window.failed["timeout"] += 1
        self._request = None
        self._transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._transport = None
        if self._request is not None and not self._is_waiting:
            self._loader.window.failed["connection lost"] += 1
            self._request, self._attempts = None, 0
        self._loader.spawn_reconnect(self)

    def close(self) -> None:
        """Close the connection."""
        self._request = None
        if self._transport is not None:
            self._transport.abort()
