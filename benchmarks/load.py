"""A small HTTP client: N connections, no pipelining, responses parsed in C, looked at for status and length only.

Closed loop: every connection has one request under way. `wrk` does the same at a tenth of the cost and is preferred
where it is installed.

Fixed rate: request number i is meant to leave at i / rate seconds, and its latency counts from that moment, whether or
not a connection was free to send it. So a server that stalls is charged for every request that would have come
meanwhile: no coordinated omission. All requests that were due are sent and waited for, half a minute at most.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import httptools
import uvloop

from benchmarks.measurement import BenchmarkError, Limits, Measurement, latency
from benchmarks.workload import Workload

STALL_SECONDS = 30.0
"""A server that lets the run last this much longer than it should has failed it."""


class _Run(ABC):
    """What the connections of one run share; decides when they send."""

    def __init__(self, workload: Workload, first: int, limits: Limits) -> None:
        self.requests = workload.numbered(first)
        self.status = workload.status
        self.connections = workload.connections
        self.limits = limits
        self.began = 0.0
        self.sent = 0
        self.latencies: list[float] = []
        self.errors = 0
        self.received_bytes = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @abstractmethod
    def ready(self, connection: "_Connection") -> None:
        """Say that a connection has nothing under way."""

    def start(self) -> None:
        """Start the clock; all connections are there, none is ready yet."""
        self.began = time.perf_counter()

    def ended(self) -> None:
        """End the run."""
        if not self.done.done():
            self.done.set_result(None)

    def failed(self, reason: str) -> None:
        """End the run in vain."""
        if not self.done.done():
            self.done.set_exception(BenchmarkError(reason))


class _Closed(_Run):
    """The next request leaves when the last one is answered."""

    _finished = 0

    def ready(self, connection: "_Connection") -> None:
        now = time.perf_counter()
        if self.sent >= self.limits.requests or now >= self.began + self.limits.seconds:
            self._finished += 1
            if self._finished == self.connections:
                self.ended()
            return
        connection.send(now)


class _Fixed(_Run):
    """The next request leaves when its time has come and a connection is free."""

    def __init__(self, workload: Workload, first: int, limits: Limits, rate: float) -> None:
        super().__init__(workload, first, limits)
        self._rate = rate
        self._total = max(1, min(limits.requests, int(rate * limits.seconds)))
        self._free: deque[_Connection] = deque()

    def ready(self, connection: "_Connection") -> None:
        self._free.append(connection)
        if self.sent == self._total and len(self._free) == self.connections:
            self.ended()
        self.pump()

    def give_up(self, connections: Sequence["_Connection"]) -> None:
        """Count what was due and is not answered as wrong, and as if its answer came now, which is too early."""
        now = time.perf_counter()
        begun = [each.since for each in connections if each not in self._free]
        waiting = [self.began + number / self._rate for number in range(self.sent, self._total)]
        self.latencies += [now - since for since in (*begun, *waiting)]
        self.errors += len(begun) + len(waiting)

    def pump(self) -> None:
        """Send what is due."""
        now = time.perf_counter()
        while self._free and self.sent < self._total:
            intended = self.began + self.sent / self._rate
            if intended > now:
                return
            self._free.popleft().send(intended)

    async def watch(self, nap_s: float) -> None:
        """Look at the clock until the run ends, as the event loop's own timers are a millisecond coarse."""
        while not self.done.done():
            self.pump()
            if nap_s:
                time.sleep(nap_s)  # noqa: ASYNC251  # leaves the CPU to the server for less than anything here measures
            await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    def __init__(self, run: _Run) -> None:
        self._run = run
        self._parser = httptools.HttpResponseParser(self)
        self.since = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._run.received_bytes += len(data)
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        run = self._run
        run.latencies.append(time.perf_counter() - self.since)
        run.errors += self._parser.get_status_code() != run.status
        run.ready(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._run.failed(f"the server closed the connection: {exc}")

    def send(self, since: float) -> None:
        """Send the next request, whose latency counts from `since`."""
        self._run.sent += 1
        self.since = since
        self._transport.write(next(self._run.requests))

    def close(self) -> None:
        self._transport.close()


async def _measure(start: Callable[[], _Run], port: int, nap_s: float) -> Measurement:
    loop = asyncio.get_running_loop()
    run = start()
    connections: list[_Connection] = []
    for _ in range(run.connections):
        connections.append((await loop.create_connection(partial(_Connection, run), "127.0.0.1", port))[1])
    run.start()
    for connection in connections:
        run.ready(connection)
    try:
        async with asyncio.timeout(run.limits.seconds + STALL_SECONDS):
            if isinstance(run, _Fixed):
                await run.watch(nap_s)
            await run.done
    except TimeoutError:
        if not isinstance(run, _Fixed):
            raise
        run.give_up(connections)
    elapsed = time.perf_counter() - run.began
    run.ended()  # whatever the connections say from now on
    for connection in connections:
        connection.close()
    return Measurement(len(run.latencies), run.errors, elapsed, run.received_bytes, latency(run.latencies))


def _run(start: Callable[[], _Run], workload: Workload, port: int, nap_s: float = 0.0) -> Measurement:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(_measure(start, port, nap_s))
        except TimeoutError:
            raise BenchmarkError(f"{workload.name}: the server stalled") from None


def run_asyncio(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
    """Load the server on `port` in a closed loop; see `measurement.Load`.

    Raises:
        BenchmarkError: a connection was lost, or the server stalled.
    """
    return _run(lambda: _Closed(workload, first, limits), workload, port)


def run_fixed(
    workload: Workload, port: int, first: int, limits: Limits, *, rate: float, nap_s: float = 0.0
) -> Measurement:
    """Send `rate` requests a second to the server on `port`, come what may.

    `nap_s` is how long to sleep between looks at the clock; 0 takes a whole CPU and is the most exact.

    Raises:
        BenchmarkError: a connection was lost.
    """
    return _run(lambda: _Fixed(workload, first, limits, rate), workload, port, nap_s)
