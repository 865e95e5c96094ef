"""A load generator of large bodies: uploads at full speed, and downloads that are read slowly meanwhile."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse
from socket import create_connection

from tests.service.world import ACCOUNT, account_sas

from benchmarks.workload import BenchmarkError, Limits, Measurement, Workload, quantiles

MIB = 1 << 20
_BLOCK = bytes(MIB)
_SIP_BYTES, _SIP_SECONDS = 64 * 1024, 1 / 16
"""A download is read this much at a time, so often: 1 MiB a second."""


def streams(host: str, mebibytes: int, count: int) -> Workload:
    """Return so many uploads at once of so many MiB, and as many downloads of as much."""
    target = f"/{ACCOUNT}/{mebibytes * MIB}?{account_sas()} HTTP/1.1\r\nHost: {host}\r\n"
    heads = [f"PUT {target}Content-Length: {mebibytes * MIB}\r\n\r\n".encode(), f"GET {target}\r\n".encode()]
    return Workload("uploads beside table requests", mebibytes, 2 * count, 201, heads, variant=f"of {mebibytes:,} MiB")


def run_streams(workload: Workload, port: int, _: int, limits: Limits) -> Measurement:
    """Upload bodies of `workload.units` MiB, and begin another while there is time; see `workload.Load`.

    Each upload goes on to its end, and is one request. The downloads go on until the last upload ends.
    """
    upload, download = workload.requests
    half, ends, over = workload.connections // 2, time.perf_counter() + limits.seconds, threading.Event()
    began = time.perf_counter()
    with ThreadPoolExecutor(workload.connections) as pool:
        readers = [pool.submit(_download, port, download, over) for _ in range(half)]
        writers = [pool.submit(_upload, port, upload, workload, ends) for _ in range(half)]
        try:
            took = [seconds for writer in writers for seconds in writer.result()]
            elapsed = time.perf_counter() - began
        finally:
            over.set()
        received = sum(reader.result() for reader in readers)
    return Measurement(len(took), 0, elapsed, received, *quantiles(took))


def _upload(port: int, head: bytes, workload: Workload, ends: float) -> list[float]:
    """Return the seconds of each upload, at least one."""
    took: list[float] = []
    with create_connection(("127.0.0.1", port)) as connection:
        while not took or time.perf_counter() < ends:
            began = time.perf_counter()
            connection.sendall(head)
            for _ in range(workload.units):
                connection.sendall(_BLOCK)
            with HTTPResponse(connection) as response:
                response.begin()
                found = response.status, response.getheader("x-received")
            if found != (workload.status, str(workload.units * MIB)):
                raise BenchmarkError(f"an upload of {workload.units} MiB got {found}")
            took.append(time.perf_counter() - began)
    return took


def _download(port: int, head: bytes, over: threading.Event) -> int:
    """Return the bytes that came of a download, as slowly as they were taken."""
    received = 0
    with create_connection(("127.0.0.1", port)) as connection, HTTPResponse(connection) as response:
        connection.sendall(head)
        response.begin()
        while response.status == 200 and not over.wait(_SIP_SECONDS) and (chunk := response.read(_SIP_BYTES)):
            received += len(chunk)
        if not received:
            raise BenchmarkError(f"a download got {response.status}")
    return received
