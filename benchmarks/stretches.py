"""`python -m benchmarks.stretches`: how long heavy requests hold the event loop without a pause.

Heavy are bodies of up to 4 MiB, and requests for entities of nearly 1 MiB.

A service in this process, on asyncio's own event loop, whose callbacks are timed: processor time of the loop's thread,
so that other programs count little. The client is another thread. Each request is sent several times; of its longest
stretches the shortest counts, and the status tells which work was done.
"""

import argparse
import asyncio
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from tests.table import heavy_bodies
from tests.table.heavy_bodies import BATCH_TYPE

from benchmarks.exchange import exchange
from benchmarks.requests import Requests
from lazulite.app.services import calm_collector
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.version import NEWEST
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.server import Server
from lazulite.service.definition import ServiceDependencies
from lazulite.table.service import TableService

_ENTITY = "heavy(PartitionKey='p',RowKey='r')"
_JSON, _ATOM, _XML = ("application/json", "application/atom+xml", "application/xml")
_FULL = "application/json;odata=fullmetadata"
_FORMATS = (_FULL, "application/json;odata=nometadata", _ATOM)
_OLD = "2014-02-14"
"""A version that has Atom."""


class Request(NamedTuple):
    """A request, the one to send before it so that it does its work each time, and those to send once."""

    name: str
    raw: bytes
    before: bytes = b""
    once: tuple[bytes, ...] = ()


@dataclass
class Stretches:
    """What the callbacks of an event loop took, in seconds."""

    longest_s: float = 0.0
    total_s: float = 0.0
    _restore: Callable[[], None] = field(default=lambda: None)

    def watch(self) -> None:
        """Time every callback from now on."""
        run = vars(asyncio.Handle)["_run"]  # There is no other way to see each callback.

        def timed(handle: asyncio.Handle) -> None:
            began_s = time.thread_time()
            run(handle)
            took_s = time.thread_time() - began_s
            self.longest_s = max(self.longest_s, took_s)
            self.total_s += took_s

        setattr(asyncio.Handle, "_run", timed)  # noqa: B010 - typeshed does not have it
        self._restore = lambda: setattr(asyncio.Handle, "_run", run)

    def forget(self) -> None:
        """Begin again with nothing."""
        self.longest_s = self.total_s = 0.0

    def leave(self) -> None:
        """Time no more callbacks."""
        self._restore()


def requests(build: Requests) -> Iterator[Request]:
    """Yield every request that is measured."""

    def send(method: str, path: str, body: bytes, kind: str, accept: str = _FULL, version: str = NEWEST) -> bytes:
        return build.raw(method, path, body=body, accept=accept, Content_Type=kind, x_ms_version=version)

    delete = build.raw("DELETE", _ENTITY, If_Match="*")
    for name, body, _ in heavy_bodies.json_entities():
        yield Request(f"insert: {name}", send("POST", "heavy", body, _JSON), delete)
        yield Request(f"replace: {name}", send("PUT", _ENTITY, body, _JSON))
        yield Request(f"merge: {name}", send("MERGE", _ENTITY, body, _JSON))
        yield Request(f"table: {name}", send("POST", "Tables", body, _JSON))
    for name, body, _ in heavy_bodies.tables():
        yield Request(f"table: {name}", send("POST", "Tables", body, _JSON))
    for name, body, _ in heavy_bodies.atom_entities():
        yield Request(f"insert: {name}", send("POST", "heavy", body, _ATOM, _ATOM, _OLD), delete)
        yield Request(f"merge: {name}", send("MERGE", _ENTITY, body, _ATOM, _ATOM, _OLD))
    for name, body, _ in heavy_bodies.documents():
        yield Request(f"acl: {name}", build.signed("PUT", "heavy", "comp=acl", body, _XML))
        yield Request(f"properties: {name}", build.signed("PUT", "", "comp=properties&restype=service", body, _XML))
    for name, body, _ in heavy_bodies.batches():
        yield Request(f"batch: {name}", send("POST", "$batch", body, BATCH_TYPE, version=_OLD))
    for name, text in heavy_bodies.filters().items():
        yield Request(f"query: {name}", build.raw("GET", "heavy()", f"$filter={quote(text)}"))
    yield from large_rows(build)


def large_rows(build: Requests) -> Iterator[Request]:
    """Yield the requests for entities of nearly 1 MiB: reads of each format, and a batch of merges."""
    for text, (body, count) in heavy_bodies.large_entities().items():
        paths = [f"heavy(PartitionKey='{quote(text)}',RowKey='{number}')" for number in range(count)]
        stored = tuple(build.raw("PUT", path, body=body, Content_Type=_JSON) for path in paths)
        for accept in _FORMATS:
            of = f"{text} as {accept.rpartition('/')[2]}"
            one = build.raw("GET", paths[0], accept=accept, x_ms_version=_OLD)
            yield Request(f"get: an entity of {of}", one, b"", stored)
            own = f"PartitionKey eq '{text}'"
            for name, terms in {"": own, ", filtered": f"{own} and S1 ge 'b' and S14 ne 'c'"}.items():
                options = f"$filter={quote(terms)}&$top=10"
                page = build.raw("GET", "heavy()", options, accept=accept, x_ms_version=_OLD)
                yield Request(f"query: a page of {of}{name}", page, b"", stored)
        merges = heavy_bodies.small_merges(text, count)
        name = f"batch: {count} × MERGE onto entities of {text}"
        yield Request(name, build.raw("POST", "$batch", body=merges, Content_Type=BATCH_TYPE), b"", stored)


def measure(port: int, stretches: Stretches, only: str, repeats: int) -> Iterator[tuple[float, float, str, int]]:
    """Yield the longest stretch and all that a request took, in seconds, its name, and the status of its answer."""
    build = Requests(f"127.0.0.1:{port}", datetime.now(UTC))
    exchange(port, build.raw("POST", "Tables", body=b'{"TableName":"heavy"}', Content_Type=_JSON))
    sent: list[tuple[bytes, ...]] = []
    for name, raw, before, once in requests(build):
        if only not in name:
            continue
        if once and once not in sent:
            sent.append(once)
            for each in once:
                exchange(port, each)
        found = []
        for _ in range(repeats):
            if before:
                exchange(port, before)
            stretches.forget()
            status = exchange(port, raw).status
            found.append((stretches.longest_s, stretches.total_s, name, status))
        yield min(found)


async def run(place: Path, only: str, repeats: int) -> list[tuple[float, float, str, int]]:
    """Serve, measure, and return what was found, the longest stretch first."""
    engine = RocksEngine.open(place / "store", system_clock)
    scheduler = FairScheduler()
    accounts = AccountDirectory({}, None)
    service = TableService(
        ServiceDependencies(engine=engine, accounts=accounts, schedule_fairly=scheduler.schedule_fairly)
    )
    ids = itertools.count()
    server = Server(service, host="127.0.0.1", port=0, new_request_id=lambda: str(next(ids)), scheduler=scheduler)
    await server.start()
    calm_collector()
    stretches = Stretches()
    stretches.watch()
    try:
        return sorted(
            await asyncio.to_thread(lambda: list(measure(server.port, stretches, only, repeats))), reverse=True
        )
    finally:
        stretches.leave()
        await server.stop()
        await engine.close()


def main() -> None:
    """Print the longest stretches."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stretches", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="requests whose name contains this")
    parser.add_argument("--repeats", type=int, default=3, help="of each request (%(default)s)")
    parser.add_argument("--longest", type=int, default=30, help="so many are printed (%(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lazulite-stretches-") as place:
        found = asyncio.run(run(Path(place), arguments.only, arguments.repeats))
    print("longest stretch, ms | in all, ms | status | request")
    for longest_s, total_s, name, status in found[: arguments.longest]:
        print(f"{longest_s * 1000:19.1f} | {total_s * 1000:10.1f} | {status:6} | {name}")
    slow = sum(longest_s > 0.01 for longest_s, *_ in found)
    print(f"{len(found)} requests, {slow} of them with a stretch of more than 10 ms")


if __name__ == "__main__":
    main()
