"""`python -m benchmarks.indexes`: what a declared index costs a write, and what it saves a query, in one process.

Requests go to the Table service without sockets. Two tables of one store take turns: one with an index, one without.
Processor time is that of all threads. A query that finds a few rows by the index is compared with point reads of as
many rows, and with the scan.
"""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import quote

from lazulite.app.account_data import caches_of
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.engine.commit import put_rows
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Request, response_of
from lazulite.service.definition import ServiceDependencies
from lazulite.table.catalog import Catalog
from lazulite.table.indexes.build import IndexBuilder
from lazulite.table.indexes.definition import Scope
from lazulite.table.model.row import assemble, encode_keys
from lazulite.table.service import TableService

ACCOUNT = DEVELOPMENT_ACCOUNT.name
INDEXED, PLAIN = "indexed", "plain"
_SAS = AccountSas(services="t", resource_types="sco", permission="rwdlacu", expiry="2100-01-01T00:00:00Z")
_FIELDS = {"host": "host", "content-type": "application/json", "accept": "application/json;odata=nometadata"}
_ROWS_OF_A_COMMIT = 100
_ROWS_OF_A_VALUE = 20


class Store:
    """A table service on a store of its own."""

    def __init__(self, engine: RocksEngine) -> None:
        self.engine = engine
        self.service = TableService(
            ServiceDependencies(engine=engine, accounts=AccountDirectory({}, None), clock=system_clock)
        )
        self._sas = sign_account_sas(DEVELOPMENT_ACCOUNT, _SAS)

    async def ask(self, method: str, path: str, query: str = "", body: object = None) -> bytes:
        """Send a request that succeeds, and return the body of its response."""
        payload = b"" if body is None else json.dumps(body).encode()
        parameters = "&".join(filter(None, (query, self._sas)))
        request = Request(method, f"/{ACCOUNT}/{path}", parameters, dict(_FIELDS), payload, id="id")
        response = await response_of(self.service, request)
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {response.body!r}")
        return response.body

    async def fill(self, table: str, rows: int) -> None:
        """Make a table, and put rows into it through the engine."""
        await self.ask("POST", "Tables", body={"TableName": table})
        found = await Catalog(self.engine).read(ACCOUNT, table)
        assert found is not None
        for start in range(0, rows, _ROWS_OF_A_COMMIT):
            partition = _partition(start)
            changes = {
                f"{number:09}": assemble(
                    134_000_000_000_000_000,
                    encode_keys(partition, f"{number:09}"),
                    f',"City":"{_city(number, rows)}","Text":"{"x" * 500}"',
                )
                for number in range(start, min(rows, start + _ROWS_OF_A_COMMIT))
            }
            await self.engine.commit(found.space, partition, put_rows(changes))

    async def build(self) -> float:
        """Declare an index on City, and build it; return the seconds that took."""

        async def settle(space: int, version: int) -> None:
            self.engine.fence(space, version)

        caches = {space: [cache] for space, cache in self.service.invalidations.items()}
        builder = IndexBuilder(self.engine, caches_of(caches), settle)
        started = time.perf_counter()
        await builder.create(ACCOUNT, INDEXED, "by_city", ["City"], Scope.TABLE)
        async for _ in builder.build(ACCOUNT, INDEXED, "by_city"):
            pass
        return time.perf_counter() - started


def _partition(number: int) -> str:
    return f"p{number // _ROWS_OF_A_COMMIT:07}"


def _city(number: int, rows: int) -> str:
    return f"city{number * 7919 % max(1, rows // _ROWS_OF_A_VALUE)}"


async def _measured(work: Callable[[], Awaitable[object]], count: int) -> float:
    """Return the microseconds of processor time of one of some requests, 16 at a time."""
    started = time.process_time()
    for _ in range(count // 16):
        await asyncio.gather(*(work() for _ in range(16)))
    return (time.process_time() - started) / (count // 16 * 16) * 1e6


async def _compare_writes(store: Store, rows: int, turns: int, count: int) -> None:
    random = Random(7)

    def update(table: str, city: Callable[[int], str]) -> Callable[[], Awaitable[object]]:
        def work() -> Awaitable[object]:
            number = random.randrange(rows)
            path = f"{table}(PartitionKey='{_partition(number)}',RowKey='{number:09}')"
            return store.ask("PATCH", path, body={"City": city(number), "Count": random.randrange(1000)})

        return work

    def insert(table: str) -> Callable[[], Awaitable[object]]:
        def work() -> Awaitable[object]:
            body = {"PartitionKey": "new", "RowKey": f"{random.getrandbits(80)}", "City": "Oslo", "Text": "x" * 500}
            return store.ask("POST", table, body=body)

        return work

    cases: Sequence[tuple[str, Callable[[str], Callable[[], Awaitable[object]]]]] = (
        ("update, indexed property as it was", lambda table: update(table, lambda number: _city(number, rows))),
        ("update, indexed property changes", lambda table: update(table, lambda _: f"city{random.randrange(1000)}")),
        ("insert", insert),
    )
    for name, of in cases:
        ratios, costs = [], []
        for _ in range(turns):
            plain = await _measured(of(PLAIN), count)
            indexed = await _measured(of(INDEXED), count)
            ratios.append(plain / indexed)
            costs.append(indexed)
        print(f"{name}: {median(ratios):.2f} × without index ({median(costs):.0f} µs)")


async def _compare_reads(store: Store, rows: int, turns: int) -> None:
    values = max(1, rows // _ROWS_OF_A_VALUE)
    random = Random(7)
    by_index, points = [], []
    table = await Catalog(store.engine).read(ACCOUNT, INDEXED)
    assert table is not None
    for _ in range(turns):
        city = f"city{random.randrange(values)}"
        started = time.process_time()
        page = await store.ask("GET", f"{INDEXED}()", f"$filter={quote(f'City eq {city!r}')}")
        seconds = time.process_time() - started
        found = json.loads(page)["value"]  # What the client does with it does not count.
        by_index.append(seconds / len(found))
        others = random.sample(range(rows), len(found))  # Those that were just read would be in caches.
        started = time.process_time()
        for number in others:
            await store.engine.get(table.space, _partition(number), f"{number:09}")
        points.append((time.process_time() - started) / len(found))
    started = time.process_time()
    await store.ask("GET", f"{PLAIN}()", "$filter=City%20eq%20%27city1%27")
    scan = time.process_time() - started
    each, point = median(by_index) * 1e6, median(points) * 1e6
    print(f"eq of {rows:,} rows: {each:.1f} µs a row by the index, {each / point:.1f} × a read in the store")
    print(f"the first page of the scan: {scan * 1e3:.0f} ms; by the index {each * _ROWS_OF_A_VALUE / 1e3:.2f} ms")


@asynccontextmanager
async def _opened() -> AsyncIterator[Store]:
    with TemporaryDirectory() as directory:
        engine = RocksEngine.open(Path(directory) / "store", system_clock)
        try:
            yield Store(engine)
        finally:
            await engine.close()


async def _run(rows: int, turns: int, count: int) -> None:
    async with _opened() as store:
        for table in (INDEXED, PLAIN):
            await store.fill(table, rows)
        print(f"built over {rows:,} rows in {await store.build():.1f} s")
        await _compare_reads(store, rows, turns)
        await _compare_writes(store, rows, turns, count)


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.indexes", allow_abbrev=False)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of each table (100000)")
    parser.add_argument("--turns", type=int, default=9, help="turns of each comparison (9)")
    parser.add_argument("--requests", type=int, default=640, help="requests of a turn (640)")
    args = parser.parse_args()
    asyncio.run(_run(args.rows, args.turns, args.requests))


if __name__ == "__main__":
    main()
