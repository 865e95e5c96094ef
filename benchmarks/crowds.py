"""Measures the memory that a crowd costs: clients with good credentials ask for a large response at one instant.

    python -m benchmarks.crowds [--clients 800] [--times 1] [--pause 0] [--only peek]

Prints of each crowd how many were answered and disconnected, the time, and the peak of the server's memory.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from benchmarks.requests import Requests
from benchmarks.subjects import LAZULITE, start

CLIENTS_MAX = 5_000
SECONDS_MAX = 120.0
_JSON = "application/json;odata=nometadata"


class Crowd(NamedTuple):
    """A large response: how its data is made, and how it is asked for."""

    service: str
    sas: tuple[str, ...]
    fill: Iterator[tuple[str, str, str, bytes, dict[str, str]]]
    ask: tuple[str, str, dict[str, str]]


def _messages() -> Iterator[tuple[str, str, str, bytes, dict[str, str]]]:
    yield "PUT", "crowd", "", b"", {"Content-Length": "0"}
    message = b"<QueueMessage><MessageText>" + b"x" * 65_536 + b"</MessageText></QueueMessage>"
    for _ in range(32):
        yield "POST", "crowd/messages", "", message, {}


def _entities() -> Iterator[tuple[str, str, str, bytes, dict[str, str]]]:
    headers = {"Content-Type": "application/json", "Prefer": "return-no-content"}
    yield "POST", "Tables", "", b'{"TableName":"crowd"}', headers
    for number in range(1000):
        entity = {"PartitionKey": "p", "RowKey": f"{number:04}", "Text": "x" * 1000}
        yield "POST", "crowd", "", json.dumps(entity).encode(), headers


def _crowds() -> dict[str, Crowd]:
    return {
        "peek": Crowd(
            "queue", ("q", "rwdlacup"), _messages(), ("crowd/messages", "peekonly=true&numofmessages=32", {})
        ),
        "page": Crowd("table", ("t", "rwdlacu"), _entities(), ("crowd()", "", {"accept": _JSON})),
    }


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, pause_s: float = 0
) -> tuple[str, int]:
    """Send a request; return the status of its response, which is read after a pause, and the length of its body."""
    writer.write(request)
    await writer.drain()
    if pause_s:
        await asyncio.sleep(pause_s)
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    length = 0
    if b"content-length" in fields:
        length = len(await reader.readexactly(int(fields[b"content-length"])))
    elif fields.get(b"transfer-encoding") == b"chunked":
        while size := int(await reader.readline(), 16):
            length += len((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
    return head[9:12].decode(), length


async def _ask(port: int, request: bytes, ready: asyncio.Barrier, options: argparse.Namespace) -> list[tuple[str, int]]:
    answers: list[tuple[str, int]] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
    try:
        await ready.wait()
        for _ in range(options.times):
            answers.append(await _exchange(reader, writer, request, options.pause))
        return answers
    except (asyncio.IncompleteReadError, OSError):
        return [*answers, ("disconnected", 0)]
    finally:
        writer.close()


async def _run(crowd: Crowd, port: int, options: argparse.Namespace) -> tuple[Counter[str], int, float]:
    requests = Requests(f"127.0.0.1:{port}", datetime.now(UTC), *crowd.sas)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for method, resource, query, body, headers in crowd.fill:
        status, _ = await _exchange(reader, writer, requests.raw(method, resource, query, body, **headers))
        assert status.startswith("2"), status
    writer.close()
    resource, query, headers = crowd.ask
    request = requests.raw("GET", resource, query, b"", **headers)
    clients = min(options.clients, CLIENTS_MAX)
    ready, began_s = asyncio.Barrier(clients), time.perf_counter()
    async with asyncio.timeout(SECONDS_MAX):
        each = await asyncio.gather(*(_ask(port, request, ready, options) for _ in range(clients)))
    answers = [answer for own in each for answer in own]
    statuses, length = Counter(status for status, _ in answers), max(length for _, length in answers)
    return statuses, length, time.perf_counter() - began_s


def main() -> None:
    """Measure each crowd on a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=800, help="up to 5,000 (800)")
    parser.add_argument("--times", type=int, default=1, help="requests of each client (1)")
    parser.add_argument("--pause", type=float, default=0, help="seconds before a client reads its response (0)")
    parser.add_argument("--only", choices=sorted(_crowds()), help="one crowd alone")
    options = parser.parse_args()
    for name, crowd in _crowds().items():
        if options.only in (None, name):
            with (
                tempfile.TemporaryDirectory() as folder,
                start(LAZULITE, "--location", folder, pin=False, service=crowd.service) as server,
            ):
                before = server.memory_mb()
                statuses, length, seconds = asyncio.run(_run(crowd, server.port, options))
                after = server.memory_mb()
            counts = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
            memory = (
                "" if before is None or after is None else f"; {before[0]:.0f} MB before, at most {after[1]:.0f} MB"
            )
            print(f"{name}: {counts} in {seconds:.1f} s; {length / 1e6:.2f} MB each{memory}", flush=True)


if __name__ == "__main__":
    main()
