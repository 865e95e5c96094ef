"""Load generators: `wrk`, and a small HTTP client with N connections, no pipelining, responses parsed in C.

Closed loop: every connection has one request under way. Fixed rate: request number i is meant to leave at i / rate
seconds, and its latency counts from that moment, whether or not a connection was free: no coordinated omission. All
requests that were due are sent and waited for.
"""

import asyncio
import gc
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import httptools
import uvloop

from benchmarks.workload import BenchmarkError, Limits, Measurement, Workload, quantiles

STALL_SECONDS = 30.0  # A server that lets the run last this much longer than it should has failed it.


class _Run:
    """The state that the connections of one run share; decides when they send. `rate` is None for a closed loop."""

    def __init__(self, workload: Workload, first: int, limits: Limits, rate: float | None) -> None:
        self.workload, self.limits, self.rate = workload, limits, rate
        self.requests = workload.numbered(first)
        self.total = limits.requests if rate is None else max(1, min(limits.requests, int(rate * limits.seconds)))
        self.sent = self.answered = self.errors = self.received_bytes = self.retired = 0
        self.latencies: list[float] = []
        self.idle: deque[_Connection] = deque()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.began = time.perf_counter()

    def send(self) -> None:
        """Send the requests that are due, as long as connections are idle; end the run when all are answered."""
        now = time.perf_counter()
        if self.rate is None and now >= self.began + self.limits.seconds:
            self.total = self.sent
        while self.idle and self.sent < self.total:
            since = now if self.rate is None else self.began + self.sent / self.rate
            if since > now:
                return
            self.sent += 1
            self.idle.popleft().send(next(self.requests), since)
        ready = len(self.idle) + self.retired == self.workload.connections
        if ready and (self.sent == self.total or not self.idle) and not self.done.done():
            self.done.set_result(None)

    async def finish(self, nap_s: float) -> None:
        """Return at the end. A fixed rate looks at the clock until then: timers of an event loop are 1 ms coarse."""
        while self.rate is not None and not self.done.done():
            self.send()
            if nap_s:
                time.sleep(nap_s)  # noqa: ASYNC251  # leaves the CPU to the server for less than anything here measures
            await asyncio.sleep(0)
        await self.done


class _Connection(asyncio.Protocol):
    """A connection with at most one request under way, each of which may be followed by another."""

    def __init__(self, run: _Run) -> None:
        self._run, self._follow = run, run.workload.follow
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._body, self._since = b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._run.received_bytes += len(data)
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if self._follow is not None:
            self._body += body

    def on_message_complete(self) -> None:
        run, now, status = self._run, time.perf_counter(), self._parser.get_status_code()
        following, self._body = self._follow and self._follow(status, self._body), b""
        if self._follow is not None and following is None:
            run.retired += 1
            run.send()
            return
        run.latencies.append(now - self._since)
        if following is not None:
            self.send(following, now)
            self._follow = None
            return
        run.answered += 1
        run.errors += status != run.workload.status
        run.idle.append(self)
        run.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._run.done.done():
            self._run.done.set_exception(BenchmarkError(f"the server closed the connection: {exc}"))

    def send(self, request: bytes, since: float) -> None:
        """Send a request, whose latency counts from `since`."""
        self._since, self._follow = since, self._run.workload.follow
        self._transport.write(request)

    def close(self) -> None:
        self._transport.close()


async def _measure(
    workload: Workload, port: int, first: int, limits: Limits, rate: float | None, nap_s: float
) -> Measurement:
    run = _Run(workload, first, limits, rate)
    new = partial(asyncio.get_running_loop().create_connection, partial(_Connection, run), "127.0.0.1", port)
    connections = [(await new())[1] for _ in range(workload.connections)]
    run.idle.extend(connections)
    run.began = time.perf_counter()
    run.send()
    try:
        await asyncio.wait_for(run.finish(nap_s), limits.seconds + STALL_SECONDS)
    except TimeoutError:
        raise BenchmarkError(f"{workload.name}: the server stalled") from None
    elapsed = time.perf_counter() - run.began
    run.done.cancel()  # whatever the connections report from now on
    for connection in connections:
        connection.close()
    return Measurement(run.answered, run.errors, elapsed, run.received_bytes, *quantiles(run.latencies))


def run_asyncio(
    workload: Workload, port: int, first: int, limits: Limits, *, rate: float | None = None, nap_s: float = 0.0
) -> Measurement:
    """Load the server on `port` in a closed loop (see `workload.Load`), or with `rate` requests a second.

    `nap_s` is how long to sleep between looks at the clock; 0 takes a whole CPU and is the most exact. Raises a
    `BenchmarkError` if a connection was lost, or the server stalled.
    """
    with uncollected(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(workload, port, first, limits, rate, nap_s))


@contextmanager
def uncollected() -> Iterator[None]:
    """Hold off the garbage collector of this process: it takes 40 ms, which would count as the server's."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def wrk_version() -> str | None:
    """Return the installed wrk's version, or None without wrk."""
    if shutil.which("wrk") is None:
        return None
    return subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout.split()[1]


def run_wrk(workload: Workload, port: int, first: int, limits: Limits, delay_ms: int = 0) -> Measurement:
    """Load the server on `port` by one thread, for whole seconds; see `workload.Load`.

    Each connection waits `delay_ms` before each request.
    """
    seconds = max(1, round(limits.seconds))
    with tempfile.NamedTemporaryFile(prefix="lazulite-bench-") as file:
        file.writelines(b"%d\n" % len(request) + request for request in workload.requests)
        file.flush()
        script = ["-s", str(Path(__file__).with_name("wrk.lua")), f"http://127.0.0.1:{port}", "--", file.name]
        numbers = map(str, (first, limits.requests, workload.start(first), delay_ms))
        command = ["wrk", "-t1", f"-c{workload.connections}", f"-d{seconds}s", "--timeout", "10s", *script, *numbers]
        output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 60)
    found = re.search(r"^RESULT 0 ([1-9].*)$", output.stdout, re.MULTILINE)
    if found is None:  # without result, without requests, or with lost connections
        raise BenchmarkError(f"wrk: no request was answered, or connections failed: {output.stdout}{output.stderr}")
    requests, errors, elapsed_s, received, *latencies_ms = map(float, found[1].split())
    return Measurement(int(requests), int(errors), elapsed_s, int(received), *latencies_ms)
