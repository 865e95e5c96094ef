"""`python -m tests.table.stretches`: how long heavy requests hold the event loop without a pause.

Heavy are bodies of up to 4 MiB, and requests for entities of nearly 1 MiB.

A server in a thread of this process, on asyncio's own event loop, whose callbacks are timed: processor time of that
thread, so that other programs count little. Each request is sent several times; of its longest stretches the shortest
counts, and the status tells which work was done.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from unittest import mock
from urllib.parse import quote

from benchmarks.exchange import exchange
from benchmarks.requests import Requests

from lazulite.app.services import tune_garbage_collector
from lazulite.protocol.version import NEWEST
from lazulite.server import lifecycle
from lazulite.testing import server
from tests.table import heavy_bodies
from tests.table.heavy_bodies import BATCH_TYPE

_ENTITY = "heavy(PartitionKey='p',RowKey='r')"
_JSON, _ATOM, _XML = ("application/json", "application/atom+xml", "application/xml")
_FULL = "application/json;odata=fullmetadata"
_FORMATS = (_FULL, "application/json;odata=nometadata", _ATOM)
_OLD = "2014-02-14"
"""A version that has Atom."""
_OPERATIONS = (
    ("insert", "POST", "heavy", _JSON, NEWEST, heavy_bodies.json_entities),
    ("replace", "PUT", _ENTITY, _JSON, NEWEST, heavy_bodies.json_entities),
    ("merge", "MERGE", _ENTITY, _JSON, NEWEST, heavy_bodies.json_entities),
    ("table", "POST", "Tables", _JSON, NEWEST, heavy_bodies.json_entities),
    ("table", "POST", "Tables", _JSON, NEWEST, heavy_bodies.tables),
    ("insert", "POST", "heavy", _ATOM, _OLD, heavy_bodies.atom_entities),
    ("merge", "MERGE", _ENTITY, _ATOM, _OLD, heavy_bodies.atom_entities),
    ("batch", "POST", "$batch", BATCH_TYPE, _OLD, heavy_bodies.batches),
)
"""Name, method, path, media type and version of each operation with a body that a SAS allows; its bodies."""


class Request(NamedTuple):
    """A request, and those to send before it: each time, so that it does its work again, or once."""

    name: str
    raw: bytes
    before: tuple[bytes, ...] = ()
    once: tuple[bytes, ...] = ()


def requests(build: Requests) -> Iterator[Request]:
    """Yield every request that is measured."""
    delete = build.raw("DELETE", _ENTITY, If_Match="*")
    for operation, method, path, kind, version, bodies in _OPERATIONS:
        accept = _ATOM if kind == _ATOM else _FULL
        for name, body, _ in bodies():
            raw = build.raw(method, path, body=body, accept=accept, Content_Type=kind, x_ms_version=version)
            yield Request(f"{operation}: {name}", raw, (delete,) if operation == "insert" else ())
    for name, body, _ in heavy_bodies.documents():
        yield Request(f"acl: {name}", build.signed("PUT", "heavy", "comp=acl", body, _XML))
        yield Request(f"properties: {name}", build.signed("PUT", "", "comp=properties&restype=service", body, _XML))
    for name, text in heavy_bodies.filters().items():
        yield Request(f"query: {name}", build.raw("GET", "heavy()", f"$filter={quote(text)}"))
    for text, (body, count) in heavy_bodies.large_entities().items():
        paths = [f"heavy(PartitionKey='{quote(text)}',RowKey='{number}')" for number in range(count)]
        stored = tuple(build.raw("PUT", path, body=body, Content_Type=_JSON) for path in paths)
        own = f"PartitionKey eq '{text}'"
        reads = {"get: an entity of {}": (paths[0], "")}
        for name, terms in {"": own, ", filtered": f"{own} and S1 ge 'b' and S14 ne 'c'"}.items():
            reads[f"query: a page of {{}}{name}"] = ("heavy()", f"$filter={quote(terms)}&$top=10")
        for accept in _FORMATS:
            for name, target in reads.items():
                raw = build.raw("GET", *target, accept=accept, x_ms_version=_OLD)
                yield Request(name.format(f"{text} as {accept.rpartition('/')[2]}"), raw, once=stored)
        merges = build.raw("POST", "$batch", body=heavy_bodies.small_merges(text, count), Content_Type=BATCH_TYPE)
        yield Request(f"batch: {count} × MERGE onto entities of {text}", merges, once=stored)


def measure(port: int, took: list[float], only: str, repeats: int) -> Iterator[tuple[float, float, int, str]]:
    """Yield of each request the longest stretch, all seconds that it took, its status and its name.

    `took` has the seconds of the event loop's callbacks since it was emptied.
    """
    build = Requests(f"127.0.0.1:{port}", datetime.now(UTC))
    exchange(port, build.raw("POST", "Tables", body=b'{"TableName":"heavy"}', Content_Type=_JSON))
    sent: set[bytes] = set()
    for name, raw, before, once in requests(build):
        found = []
        for _ in range(repeats if only in name else 0):
            for each in (*(each for each in once if each not in sent), *before):
                exchange(port, each)
            sent.update(once)
            took.clear()
            status = exchange(port, raw).status
            found.append((max(took, default=0.0), sum(took), status, name))
        yield from sorted(found)[:1]


def run(location: Path, only: str, repeats: int) -> list[tuple[float, float, int, str]]:
    """Serve and measure; return the findings of `measure`, the longest stretch first."""
    took: list[float] = []
    callback = vars(asyncio.Handle)["_run"]  # There is no other way to see each callback.

    def timed(handle: asyncio.Handle) -> None:
        began_s = time.thread_time()
        callback(handle)
        took.append(time.thread_time() - began_s)

    plain_loop, timed_loop = (
        mock.patch.object(lifecycle, "uvloop", None),
        mock.patch.object(asyncio.Handle, "_run", timed),
    )
    with plain_loop, timed_loop, server(location) as storage:
        tune_garbage_collector()
        return sorted(measure(storage.port, took, only, repeats), reverse=True)


def main() -> None:
    """Print the longest stretches."""
    parser = argparse.ArgumentParser(prog="python -m tests.table.stretches", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="requests whose name contains this")
    parser.add_argument("--repeats", type=int, default=3, help="of each request (%(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lazulite-stretches-") as place:
        found = run(Path(place), arguments.only, arguments.repeats)
    print("longest stretch, ms | in all, ms | status | request")
    for longest_s, total_s, status, name in found[:30]:
        print(f"{longest_s * 1000:19.1f} | {total_s * 1000:10.1f} | {status:6} | {name}")
    slow = sum(longest_s > 0.01 for longest_s, *_ in found)
    print(f"{len(found)} requests, {slow} of them with a stretch of more than 10 ms")


if __name__ == "__main__":
    main()
