"""Load generators of large bodies: one at full speed, or many that are sent and read slowly."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPResponse
from socket import create_connection

from benchmarks.load import uncollected
from benchmarks.workload import GOLDEN_RATIO, BenchmarkError, Limits, Measurement, Workload, quantiles

MIB = 1 << 20
_BLOCK = bytes(MIB)
_SIP_BYTES, _SIP_SECONDS = 64 * 1024, 1 / 16
"""A slow body is sent or read this much at a time, so often: 1 MiB a second."""


def run_whole(workload: Workload, port: int, _: int, __: Limits) -> Measurement:
    """Send one body of `workload.units` MiB after the head, or read one; see `workload.Load`."""
    began, received, [head] = time.perf_counter(), 0, workload.requests
    sent, expected = (workload.units, 0) if head.startswith(b"PUT") else (0, workload.units * MIB)
    with _moving(head, port) as (send, respond):
        for _ in range(sent):
            send(_BLOCK)
        response = respond(workload.status)
        while chunk := response.read(MIB):
            received += len(chunk)
    if received != expected:
        raise BenchmarkError(f"{workload.name}: {received:,} bytes came")
    return _measured(began, [time.perf_counter() - began], received)


def run_slow(workload: Workload, port: int, _: int, limits: Limits) -> Measurement:
    """Send each request on a connection of its own, and its body or that of its response slowly, while there is time.

    A head that announces a body is followed by zeros. The connections begin within a second, evenly spread: clients
    that know nothing of each other do not move in step, neither with their pieces nor with the windows that they fill.
    What is counted are the pieces; their latencies are the times for which the server kept the connection waiting. See
    `workload.Load`.
    """
    began, over = time.perf_counter(), threading.Event()

    def run(number: int, head: bytes) -> list[float]:
        took: list[float] = []
        over.wait(number * GOLDEN_RATIO % 1)
        with _moving(head, port) as (send, respond):
            response = None if head.startswith(b"PUT") else respond(workload.status)
            while not over.wait(_SIP_SECONDS):
                since = time.perf_counter()
                if response is None:
                    send(_BLOCK[:_SIP_BYTES])
                elif not response.read(_SIP_BYTES):
                    raise BenchmarkError("a slow download came to its end")
                took.append(time.perf_counter() - since)
        return took

    with uncollected(), ThreadPoolExecutor(len(workload.requests)) as pool:
        running = [pool.submit(run, number, head) for number, head in enumerate(workload.requests)]
        over.wait(limits.seconds)
        over.set()
        return _measured(began, [seconds for each in running for seconds in each.result()])


@contextmanager
def _moving(head: bytes, port: int) -> Iterator[tuple[Callable[[bytes], None], Callable[[int], HTTPResponse]]]:
    """Send a head; yield functions that send more, and that return the response if it has the right status."""
    with create_connection(("127.0.0.1", port)) as connection, HTTPResponse(connection) as response:

        def respond(status: int) -> HTTPResponse:
            response.begin()
            if response.status != status:
                raise BenchmarkError(f"a body got {response.status}: {response.read(500)!r}")
            return response

        connection.sendall(head)
        yield connection.sendall, respond


def _measured(began: float, took: list[float], received: int = 0) -> Measurement:
    return Measurement(len(took), 0, time.perf_counter() - began, received, *quantiles(took))
