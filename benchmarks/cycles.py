"""The workloads of a queue: puts, and a load generator of cycles: get a message, and delete it by its receipt."""

import asyncio
import re
import time
from datetime import UTC, datetime
from typing import cast

import httptools
import uvloop

from benchmarks.processes import Server
from benchmarks.requests import Requests
from benchmarks.workload import BenchmarkError, Limits, Load, Measurement, Workload, quantiles

QUEUE = "bench"
TEXT_BYTES = 1024
PUT, CYCLE = "put", "get and delete"
CONNECTIONS = 64
_FOUND = re.compile(rb"<MessageId>(.+?)</MessageId>.*<PopReceipt>(.+?)</PopReceipt>")


class Queues:
    """Builds the workloads for a server."""

    def __init__(self, server: Server) -> None:
        self.requests = Requests(server.host, datetime.now(UTC), "q", "rwdlacup")

    def create(self) -> bytes:
        """Return the request that creates the queue."""
        return self.requests.raw("PUT", QUEUE, Content_Length="0")

    def put(self, connections: int = CONNECTIONS, variant: str = "") -> Workload:
        """Put messages of 1 KB."""
        body = f"<QueueMessage><MessageText>{'x' * TEXT_BYTES}</MessageText></QueueMessage>".encode()
        requests = [self.requests.raw("POST", f"{QUEUE}/messages", body=body, Content_Type="application/xml")]
        return Workload(PUT, 1, connections, 201, requests, variant=variant)

    def cycle(self, connections: int = CONNECTIONS, variant: str = "") -> tuple[Workload, Load]:
        """Get a message and delete it, as long as there is one; and the load, whose latencies are of one request."""
        return Workload(CYCLE, 1, connections, 204, [], variant=variant), self._run

    def _run(self, workload: Workload, port: int, _: int, limits: Limits) -> Measurement:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._measure(workload, port, limits))

    async def _measure(self, workload: Workload, port: int, limits: Limits) -> Measurement:
        loop, latencies, began = asyncio.get_running_loop(), list[float](), time.perf_counter()
        cycles = 0

        async def consume() -> None:
            nonlocal cycles
            _, client = await loop.create_connection(_Client, "127.0.0.1", port)
            get = self.requests.raw("GET", f"{QUEUE}/messages")
            while time.perf_counter() < began + limits.seconds and cycles < limits.requests:
                since = time.perf_counter()
                found = _FOUND.search(await client.ask(get, 200))
                if found is None:
                    break
                latencies.append(time.perf_counter() - since)
                message, receipt = (each.decode() for each in found.groups())
                query = f"popreceipt={receipt.replace('+', '%2B').replace('=', '%3D').replace('/', '%2F')}"
                delete = self.requests.raw("DELETE", f"{QUEUE}/messages/{message}", query)
                since = time.perf_counter()
                await client.ask(delete, 204)
                cycles += 1
                latencies.append(time.perf_counter() - since)
            client.close()

        await asyncio.gather(*(consume() for _ in range(workload.connections)))
        return Measurement(cycles, 0, time.perf_counter() - began, 0, *quantiles(latencies))


class _Client(asyncio.Protocol):
    """A connection with one request under way."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.close = transport.close

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        assert self._answer is not None
        self._answer.set_result(self._body)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(BenchmarkError(f"the server closed the connection: {exc}"))

    async def ask(self, request: bytes, status: int) -> bytes:
        """Send a request; return the body of its response, which must have this status."""
        self._body, self._answer = b"", asyncio.get_running_loop().create_future()
        self._transport.write(request)
        body = await self._answer
        if self._parser.get_status_code() != status:
            raise BenchmarkError(f"status {self._parser.get_status_code()}, expected {status}: {body[:300]!r}")
        return body
