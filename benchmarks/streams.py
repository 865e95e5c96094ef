"""Load generators of large bodies: one at full speed, or many that are sent and read slowly."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPResponse
from socket import create_connection, socket

from benchmarks.workload import BenchmarkError, Limits, Measurement, Workload, quantiles

MIB = 1 << 20
_BLOCK = bytes(MIB)
_SIP_BYTES, _SIP_SECONDS = 64 * 1024, 1 / 16
"""A slow body is sent or read this much at a time, so often: 1 MiB a second."""


def run_upload(workload: Workload, port: int, _: int, __: Limits) -> Measurement:
    """Send one body of `workload.units` MiB after the head; see `workload.Load`."""
    began = time.perf_counter()
    with create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(workload.requests[0])
        for _ in range(workload.units):
            connection.sendall(_BLOCK)
        with _response(connection, workload.status):
            return _one(began, 0)


def run_download(workload: Workload, port: int, _: int, __: Limits) -> Measurement:
    """Read one body of `workload.units` MiB; see `workload.Load`."""
    began, received = time.perf_counter(), 0
    with create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(workload.requests[0])
        with _response(connection, workload.status) as response:
            while chunk := response.read(MIB):
                received += len(chunk)
    if received != workload.units * MIB:
        raise BenchmarkError(f"{workload.name}: {received:,} bytes came")
    return _one(began, received)


def _one(began: float, received: int) -> Measurement:
    took = time.perf_counter() - began
    return Measurement(1, 0, took, received, *quantiles([took]))


def run_slow(workload: Workload, port: int, _: int, limits: Limits) -> Measurement:
    """Send each request on a connection of its own, and its body or that of its response slowly, while there is time.

    A head that announces a body is followed by zeros. What is counted are the pieces; their latencies are the
    times for which the server kept the connection waiting. See `workload.Load`.
    """
    began, over = time.perf_counter(), threading.Event()

    def run(head: bytes) -> list[float]:
        with create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(head)
            move = _send if head.startswith(b"PUT") else _receive
            with move(connection, workload.status) as step:
                took: list[float] = []
                while not over.wait(_SIP_SECONDS):
                    since = time.perf_counter()
                    step()
                    took.append(time.perf_counter() - since)
                return took

    with ThreadPoolExecutor(len(workload.requests)) as pool:
        running = [pool.submit(run, head) for head in workload.requests]
        over.wait(limits.seconds)
        over.set()
        took = [seconds for each in running for seconds in each.result()]
    return Measurement(len(took), 0, time.perf_counter() - began, 0, *quantiles(took))


@contextmanager
def _send(connection: socket, _: int) -> Iterator[Callable[[], object]]:
    yield lambda: connection.sendall(_BLOCK[:_SIP_BYTES])


@contextmanager
def _receive(connection: socket, status: int) -> Iterator[Callable[[], object]]:
    with _response(connection, status) as response:

        def step() -> None:
            if not response.read(_SIP_BYTES):
                raise BenchmarkError("a slow download came to its end")

        yield step


@contextmanager
def _response(connection: socket, status: int) -> Iterator[HTTPResponse]:
    with HTTPResponse(connection) as response:
        response.begin()
        if response.status != status:
            raise BenchmarkError(f"a body got {response.status}: {response.read(500)!r}")
        yield response
