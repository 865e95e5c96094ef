"""`python -m benchmarks.in_process`: the processor time and the calls of requests, without sockets.

A process of its own measures each contender: this checkout, and either the same without request plans, or another
checkout (`--against`). They take turns. Of the times of a case the first decile counts, so that other programs count
little. The store is in memory, so no number has a sync. `whole` is from the bytes of a request to the bytes of its
response; all other cases are the service alone, from the parsed request on.
"""

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from types import FrameType
from typing import NamedTuple

from benchmarks.entities import PARTITION_ROWS, TRANSACTION_ROWS, entity, row_key
from benchmarks.requests import MINIMAL, TABLE, Requests
from lazulite.app.services import calm_collector
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Request
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.limits import Limits
from lazulite.service.definition import ServiceDependencies
from lazulite.table.routes import ROUTES
from lazulite.table.service import TableService

try:
    from lazulite.protocol.fields import Fields
except ImportError:  # Another checkout may not have it.
    Fields = None  # type: ignore[assignment,misc]  # tested where it is used

_ROOT = Path(__file__).parents[1]
_BUILD = Requests("127.0.0.1:10002", datetime.now(UTC))
_POINT = f"{TABLE}(PartitionKey='p',RowKey='000000')"
_SDK = {
    "User_Agent": "azsdk-python-data-tables/12.5.0 Python/3.11.2 (Linux)",
    "Accept_Encoding": "gzip, deflate",
    "Connection": "keep-alive",
    "DataServiceVersion": "3.0",
    "x_ms_client_request_id": "5e7c1f9a-8d3b-11ef-b864-0242ac120002",
}
"""The fields of an SDK's requests beside those of every request."""
_ROUNDS, _WARM = 60, 10
"""How often the requests of a case are sent, and how often before the first that counts."""


def _sdk_entity(partition: str, row: str) -> bytes:
    """Return an entity as Azure's SDK for Python writes it: seven properties, types after the values."""
    typed = {"Ratio": "Edm.Double", "Count": "Edm.Int64", "Seen": "Edm.DateTime"}
    values = {"PartitionKey": partition, "RowKey": row, "Name": f"name of {row}", "Age": 23, "Active": True}
    values |= {"Ratio": 1.5, "Count": "9007199254740993", "Seen": "2024-02-29T12:34:56.789000Z"}
    members: dict[str, object] = {}
    for name, value in values.items():
        members[name] = value
        if isinstance(value, str) or name in typed:
            members[f"{name}@odata.type"] = typed.get(name, "Edm.String")
    return json.dumps(members).encode()


def _batch(method: str, partition: str) -> bytes:
    """Return a transaction of 100 as that SDK writes it."""
    keys = [(partition, row_key(number) + "x" * (number % 3)) for number in range(TRANSACTION_ROWS)]
    return _BUILD.transaction([_sdk_entity(*key) for key in keys], method, keys, **_SDK)


def _inserts(partition: str, first: int = 0) -> bytes:
    rows = range(first, first + TRANSACTION_ROWS)
    return _BUILD.transaction([entity(partition, row_key(row)) for row in rows])


class Case(NamedTuple):
    """A kind of request: how many at a time, the entities of one, and its bytes by its number."""

    together: int
    units: int
    make: Callable[[int], bytes]
    whole: bool = False


def _get(_: int) -> bytes:
    return _BUILD.raw("GET", _POINT, "", b"", MINIMAL, **_SDK)


def _signed_get(_: int) -> bytes:
    return _BUILD.signed("GET", _POINT, "", b"", "", **_SDK)


def _sdk_insert(number: int) -> bytes:
    return _BUILD.insert(_sdk_entity(f"s{number}", "r"))


CASES = {
    "point GET by SAS": Case(64, 1, _get),
    "point GET by Shared Key": Case(64, 1, _signed_get),
    "point GET by SAS, whole": Case(1, 1, _get, whole=True),
    "point GET by Shared Key, whole": Case(1, 1, _signed_get, whole=True),
    "insert, 64 connections, whole": Case(64, 1, lambda number: _BUILD.insert(entity(f"w{number}", "r")), whole=True),
    "insert of 1 KB": Case(64, 1, lambda number: _BUILD.insert(entity(f"i{number}", "r"))),
    "insert by the SDK": Case(64, 1, _sdk_insert),
    "merge of 1 KB": Case(64, 1, lambda at: _BUILD.merge(f"m{at % 64}", "r", entity(f"m{at % 64}", "r"))),
    "100 inserts of 1 KB": Case(1, TRANSACTION_ROWS, lambda number: _inserts(f"t{number}")),
    "100 inserts by the SDK": Case(1, TRANSACTION_ROWS, lambda number: _batch("POST", f"u{number}")),
    "100 upserts by the SDK": Case(1, TRANSACTION_ROWS, lambda _: _batch("PUT", "v")),
    "100 merges by the SDK": Case(1, TRANSACTION_ROWS, lambda _: _batch("PATCH", "w")),
    "page of 1,000": Case(
        1, PARTITION_ROWS, lambda _: _BUILD.raw("GET", f"{TABLE}()", "$filter=PartitionKey%20eq%20'p'")
    ),
}


class Sink(asyncio.Transport):
    """The client's side of a connection, which keeps its last response; each is one write."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.last = b""
        self.arrived = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Note a response."""
        self.last = bytes(data)
        self.arrived.set()

    def is_closing(self) -> bool:
        """Return that it is open."""
        return False

    def get_write_buffer_size(self) -> int:
        """Return that nothing waits."""
        return 0

    def _ignore(self, *_: object, **__: object) -> None:
        """Do nothing: the next request comes after the response."""

    pause_reading = resume_reading = set_write_buffer_limits = _ignore


class Contender:
    """A service of the importable checkout; `plans` says whether requests may run by plans."""

    def __init__(self, plans: bool) -> None:
        if not plans:
            ROUTES.varying = {}  # No method has a plan.
        self.engine = RocksEngine.open(None, system_clock)
        accounts = AccountDirectory({}, None)
        self.service = TableService(ServiceDependencies(engine=self.engine, accounts=accounts))
        ids = itertools.count(10**7)
        self._state = ServerState(
            self.service,
            Limits(),
            lambda: f"{next(ids)}-0000-0000-0000",
            time.monotonic,
            (),
            budgets=budgets_of(Limits(), time.monotonic),
        )

    def connect(self) -> tuple[Connection, Sink]:
        """Return a new connection and its client's side."""
        connection, sink = Connection(self._state, "http"), Sink()
        connection.connection_made(sink)
        return connection, sink

    async def whole(self, pairs: Sequence[tuple[Connection, Sink]], raw: Sequence[bytes]) -> tuple[float, list[bytes]]:
        """Send a request on each connection; return seconds, and the responses."""
        began_s = time.thread_time()
        for (connection, sink), data in zip(pairs, raw, strict=True):
            sink.arrived.clear()
            connection.data_received(data)
        for _, sink in pairs:
            await sink.arrived.wait()
        return time.thread_time() - began_s, [sink.last[9:12] + sink.last for _, sink in pairs]

    async def send(self, raw: Sequence[bytes]) -> tuple[float, list[bytes]]:
        """Hand requests to the service as a server does; return seconds, and the responses, each after its status."""
        requests = list(map(_request, raw))
        at_once = getattr(self.service, "at_once", lambda _: None)
        began_s = time.thread_time()
        found = [at_once(request) for request in requests]
        late = [self.service.handle(request) for request, one in zip(requests, found, strict=True) if one is None]
        responses = [*(one for one in found if one is not None), *(await asyncio.gather(*late))]
        took_s = time.thread_time() - began_s
        return took_s, [
            str(one.status).encode() + (one.body if isinstance(one.body, bytes) else b"") for one in responses
        ]

    async def measure(self, case: Case) -> float:
        """Return microseconds of processor time for a unit."""
        pairs = [self.connect() for _ in range(case.together if case.whole else 0)]
        times = []
        for number in range(_ROUNDS):
            raw = [case.make(number * case.together + at) for at in range(case.together)]
            seconds, responses = await (self.whole(pairs, raw) if case.whole else self.send(raw))
            for response in responses:
                if response[:1] != b"2" or b"HTTP/1.1 4" in response:
                    raise SystemExit(f"rejected: {response[:500]!r}")
            times.append(seconds)
        for connection, _ in pairs:
            connection.connection_lost(None)
        return sorted(times[_WARM:])[_ROUNDS // 10] / case.together / case.units * 1e6

    async def calls(self) -> dict[str, float]:
        """Return the calls of Python functions by a point GET, and the number of modules that these are in."""
        pair, calls = [self.connect()], list[str]()
        for _ in range(9):
            await self.whole(pair, [_get(0)])

        def note(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and f"{os.sep}lazulite{os.sep}" in frame.f_code.co_filename:
                calls.append(frame.f_code.co_filename)

        raw = [_get(0)]
        sys.setprofile(note)
        await self.whole(pair, raw)
        sys.setprofile(None)
        return {"point GET by SAS, calls": len(calls), "point GET by SAS, modules": len(set(calls))}


def _request(raw: bytes) -> Request:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *lines = head.decode("ascii").split("\r\n")
    method, target, _ = line.split(" ")
    path, _, query = target.partition("?")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Request(method, path, query, headers if Fields is None else Fields.of(headers), body, id="0" * 36)


async def measure(plans: bool, only: str) -> dict[str, float]:
    """Return microseconds by case, and the calls."""
    contender = Contender(plans)
    for start in (None, *range(0, PARTITION_ROWS, TRANSACTION_ROWS)):
        await contender.send([_BUILD.create_table() if start is None else _inserts("p", start)])
    found = await contender.calls()
    calm_collector()
    found |= {name: await contender.measure(case) for name, case in CASES.items() if only in name}
    await contender.engine.close()
    return found


def _turn(checkout: Path, plans: bool, only: str) -> dict[str, float]:
    """Measure a checkout in a process of its own."""
    paths = os.pathsep.join((str(checkout / "src"), str(_ROOT)))
    command = [sys.executable, "-m", "benchmarks.in_process", "--measure", "--only", only]
    command += [] if plans else ["--without-plans"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, cwd=_ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(pairs: Sequence[tuple[dict[str, float], dict[str, float]]]) -> Iterator[str]:
    """Yield the lines of a comparison, given what both contenders had in each turn."""
    yield "| µs of processor for an entity, or a number | other | this | this ÷ other, by turns |"
    yield "|---|---|---|---|"
    for name in pairs[0][0]:
        ours, theirs = ([pair[side][name] for pair in pairs] for side in (0, 1))
        ratios = sorted(one / other for one, other in zip(ours, theirs, strict=True))
        spread = f"{median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
        yield f"| {name} | {min(theirs):.1f} | {min(ours):.1f} | {spread} |"


def main() -> None:
    """Measure in this process, or compare by turns."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.in_process", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="instead of this checkout without plans")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
    parser.add_argument("--turns", type=int, default=5, help="of both contenders (%(default)s)")
    parser.add_argument("--measure", action="store_true", help="measure the importable checkout, and print JSON")
    parser.add_argument("--without-plans", action="store_true", help="with --measure: requests have no plans")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(asyncio.run(measure(not given.without_plans, given.only))))
        return
    other = given.against or _ROOT
    pairs = [
        (_turn(_ROOT, True, given.only), _turn(other, given.against is not None, given.only))
        for _ in range(given.turns)
    ]
    print("\n".join(table(pairs)))


if __name__ == "__main__":
    main()
