"""A small closed-loop HTTP client: N connections, each with one request under way, no pipelining.

Responses are parsed in C and not looked into beyond status and length. It costs roughly as much as the floor server, so
`wrk` is preferred where it is installed.
"""

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from typing import cast

import httptools
import uvloop

from benchmarks.measurement import BenchmarkError, Limits, Measurement
from benchmarks.workload import Workload

STALL_SECONDS = 30.0
"""A server that lets the run last this much longer than it should has failed it."""


class _Tally:
    """What the connections of one run share."""

    def __init__(self, workload: Workload, first: int, limits: Limits) -> None:
        self.requests: Iterator[bytes] = workload.numbered(first)
        self.left = limits.requests
        self.status = workload.status
        self.deadline = time.perf_counter() + limits.seconds
        self.latencies: list[float] = []
        self.errors = 0
        self.received_bytes = 0


class _Connection(asyncio.Protocol):
    """Sends the next request when the response to the last one is complete."""

    def __init__(self, tally: _Tally, done: asyncio.Future[None]) -> None:
        self._tally = tally
        self._done = done
        self._parser = httptools.HttpResponseParser(self)
        self._sent = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._tally.received_bytes += len(data)
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        tally = self._tally
        tally.latencies.append(time.perf_counter() - self._sent)
        tally.errors += self._parser.get_status_code() != tally.status
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(BenchmarkError(f"the server closed the connection: {exc}"))

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._tally.left <= 0 or self._sent >= self._tally.deadline:
            if not self._done.done():
                self._done.set_result(None)
            self._transport.close()
            return
        self._tally.left -= 1
        self._transport.write(next(self._tally.requests))


async def _run(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
    loop = asyncio.get_running_loop()
    tally = _Tally(workload, first, limits)
    began = time.perf_counter()
    ends = [loop.create_future() for _ in range(workload.connections)]
    async with asyncio.timeout(limits.seconds + STALL_SECONDS):
        for end in ends:
            await loop.create_connection(partial(_Connection, tally, end), "127.0.0.1", port)
        await asyncio.gather(*ends)
    elapsed = time.perf_counter() - began
    latencies = sorted(tally.latencies)
    count = len(latencies)
    return Measurement(
        requests=count,
        errors=tally.errors,
        seconds=elapsed,
        received_bytes=tally.received_bytes,
        p50_ms=latencies[count // 2] * 1000,
        p99_ms=latencies[min(count - 1, count * 99 // 100)] * 1000,
    )


def run_asyncio(workload: Workload, port: int, first: int, limits: Limits) -> Measurement:
    """Load the server on `port`; see `measurement.Load`.

    Raises:
        BenchmarkError: a connection was lost, or the server stalled.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(_run(workload, port, first, limits))
        except TimeoutError:
            raise BenchmarkError(f"{workload.name}: the server stalled") from None
