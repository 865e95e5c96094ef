"""Load beside which something else is measured: `python -m benchmarks.background ingest|scan …`, until SIGTERM.

ingest: entity group transactions of 100 inserts, as fast as they are answered. scan: queries over the whole table
with a filter that nothing meets, page after page, over and over. On its end it prints how much it did, as JSON.
"""

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import uvloop

from benchmarks.catalogue import Catalogue
from benchmarks.entities import TRANSACTION_ROWS
from benchmarks.measurement import BenchmarkError
from benchmarks.processes import CLIENT_CPU, ROOT, Server, pinned
from benchmarks.workload import NUMBERS_PER_RUN

CLIENTS = 4
STOP_SECONDS_MAX = 60
FIRST_NUMBER = 9000 * NUMBERS_PER_RUN
"""No run of the benchmark gets this far, so its keys do not meet those of the ingest."""


class Done(NamedTuple):
    """What a background load did: requests answered, rows inserted or scanned, scans of the whole table ended."""

    requests: int
    rows: int
    rounds: int
    seconds: float


class Background:
    """A background load that runs; `done` is known once it has ended."""

    done: Done


@contextmanager
def beside(kind: str, server: Server, entities: int, *, pin: bool) -> Iterator[Background]:
    """Run a background load against a server while the block runs.

    Raises:
        BenchmarkError: it got a wrong answer.
    """
    options = ["--port", str(server.port), "--entities", str(entities)]
    with pinned(CLIENT_CPU, pin=pin):
        command = [sys.executable, "-m", "benchmarks.background", kind, *options]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    background = Background()
    try:
        assert process.stdout is not None
        process.stdout.readline()  # it says when it got its first answer
        yield background
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=STOP_SECONDS_MAX)
    if process.returncode:
        raise BenchmarkError(f"the {kind} beside failed")
    background.done = Done(**json.loads(output))


class _Answer(NamedTuple):
    status: int
    head: str
    body: bytes


class _Client:
    """One connection with one request under way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes) -> _Answer:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"(?i)^content-length: *(\d+)", head, re.MULTILINE)
        if length:
            body = await self._reader.readexactly(int(length[1]))
        else:
            body = await self._chunks()
        return _Answer(int(head.split(" ", 2)[1]), head, body)

    async def _chunks(self) -> bytes:
        body = b""
        while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
        return body


class _Load:
    """What the clients of one background load do and share."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._batches = catalogue.transaction().numbered(FIRST_NUMBER)
        self._scan = catalogue.table_scan()
        self.requests = self.rows = self.rounds = 0

    async def ingest(self, client: _Client) -> None:
        while True:
            await self._ask(client, next(self._batches), 202)
            self.rows += TRANSACTION_ROWS

    async def scan(self, client: _Client) -> None:
        target = self._scan
        while True:
            answer = await self._ask(client, target, 200)
            found = re.search(r'scanned;desc="?(\d+)', answer.head)
            self.rows += int(found[1]) if found else 0
            keys = dict(re.findall(r"(?im)^x-ms-continuation-(Next\w+): *(\S+)", answer.head))
            self.rounds += not keys
            more = "".join(f"&{name}={value}" for name, value in keys.items())
            target = self._scan.replace(b" HTTP/1.1", more.encode() + b" HTTP/1.1", 1)

    async def _ask(self, client: _Client, request: bytes, status: int) -> _Answer:
        answer = await client.ask(request)
        if answer.status != status:
            raise BenchmarkError(f"beside: status {answer.status}, expected {status}: {answer.body[:500]!r}")
        self.requests += 1
        if self.requests == 1:
            print("begun", flush=True)
        return answer


async def _run(port: int, work: Callable[[_Client], Awaitable[None]]) -> float:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    clients = [_Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(CLIENTS)]
    began = time.perf_counter()
    tasks = [asyncio.ensure_future(work(client)) for client in clients]
    for task in tasks:
        task.add_done_callback(lambda _: stop.set())
    await stop.wait()
    for task in tasks:
        if task.done():
            task.result()  # raises what ended a client
        task.cancel()
    return time.perf_counter() - began


def main() -> None:
    """Load the server on `--port` until SIGTERM."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("kind", choices=["ingest", "scan"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--entities", type=int, required=True)
    arguments = parser.parse_args()
    load = _Load(Catalogue(f"127.0.0.1:{arguments.port}", arguments.entities))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seconds = runner.run(_run(arguments.port, getattr(load, arguments.kind)))
    print(json.dumps(Done(load.requests, load.rows, load.rounds, seconds)._asdict()))


if __name__ == "__main__":
    main()
