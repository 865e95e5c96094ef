"""Work on large rows is divided: between two iterations of other tasks there is at most the work on one row."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from lazulite.app.registry import CODEC
from lazulite.engine.contract import Engine
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.service.routing import QueryLimits
from lazulite.table.model import entity
from lazulite.table.operations import write_decisions
from lazulite.table.payload import atom
from tests.engine.remote.over_channel import join
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts
from tests.table.client import Client

WORK_MAX = 5 << 20
"""Bytes that are decoded, measured or encoded in one step, and 256 for each property: a few milliseconds."""
PROPERTY_COST = 256
LONGEST = 32 * 1024
ATOM = {"accept": "application/atom+xml", "x-ms-version": "2014-02-14", "maxdataserviceversion": "3.0"}
LARGE = {f"S{number}": "中" * LONGEST for number in range(15)}
"""An entity of nearly 1 MiB, whose row has 3 MB."""
LONG = {f"S{number}": "a" * LONGEST for number in range(15)}
WIDE = {f"P{number:03}": number for number in range(250)}


class Work(NamedTuple):
    """A request onto rows that are stored: how many of which entity, and what is sent."""

    stored: dict[str, Any]
    rows: int
    method: str
    path: str
    body: Any = b""
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    status: int = 200


def _merges(rows: int) -> bytes:
    return change_set(*(Operation("MERGE", f"large(PartitionKey='p',RowKey='{n}')", {"A": 1}) for n in range(rows)))


WORKS = {
    "merge": Work(LARGE, 1, "MERGE", "large(PartitionKey='p',RowKey='0')", body={"A": 1}, status=204),
    "merge of a large entity": Work(
        {}, 1, "MERGE", "large(PartitionKey='p',RowKey='0')", body={**LARGE, "A": 1}, status=204
    ),
    "batch of merges": Work(LONG, 20, "POST", "$batch", body=_merges(20), headers=CONTENT_TYPE, status=202),
    "batch of merges of many properties": Work(
        WIDE, 100, "POST", "$batch", body=_merges(100), headers=CONTENT_TYPE, status=202
    ),
    "entity in Atom": Work(LARGE, 1, "GET", "large(PartitionKey='p',RowKey='0')", headers=ATOM),
    "page in Atom": Work(LARGE, 2, "GET", "large()", headers=ATOM),
    "insert with an echo in Atom": Work(
        {}, 0, "POST", "large", body={**LARGE, "PartitionKey": "p", "RowKey": "r"}, headers=ATOM, status=201
    ),
}


class Iterations:
    """Counts the iterations of other tasks, and what is worked on within each."""

    def __init__(self) -> None:
        self.work: Counter[int] = Counter()
        self._number = 0

    async def count(self) -> None:
        while True:
            self._number += 1
            await asyncio.sleep(0)

    def note(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, cost: Callable[..., int]) -> None:
        """Add to the work of an iteration what a function is called with."""
        function = getattr(owner, name)

        def noted(*arguments: Any) -> Any:
            self.work[self._number] += cost(*arguments)
            return function(*arguments)

        monkeypatch.setattr(owner, name, noted)


def _literals(properties: Any) -> int:
    return sum(PROPERTY_COST + len(literal) for _, literal in properties.values())


def _property_work(_: str, found: Any) -> int:
    return PROPERTY_COST + len(found.literal)


def _row(value: bytes) -> int:
    return len(value) + PROPERTY_COST * value.count(b',"')


@pytest.mark.parametrize("name", WORKS)
async def test_a_step_works_on_one_large_row_at_most(
    name: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time slice of no length is used up at every checkpoint."""
    work = WORKS[name]
    client = Client(engine, limits=QueryLimits(slice_seconds=0))
    await client("POST", "Tables", body={"TableName": "large"})
    for number in range(work.rows):
        key = f"large(PartitionKey='p',RowKey='{number}')"
        assert (await client("PUT", key, body=work.stored)).status == 204
    iterations = Iterations()
    iterations.note(monkeypatch, write_decisions, "decode_row", _row)
    iterations.note(monkeypatch, write_decisions, "encode_properties", _literals)
    iterations.note(monkeypatch, entity._Size, "add", lambda _, __, ___, value_bytes: value_bytes)
    iterations.note(monkeypatch, atom, "decode_row", _row)
    iterations.note(monkeypatch, atom, "_property", _property_work)
    other = asyncio.create_task(iterations.count())
    response = await client(work.method, work.path, body=work.body, headers=work.headers)
    other.cancel()
    assert response.status == work.status
    assert iterations.work, "nothing was noted"
    assert max(iterations.work.values()) <= WORK_MAX


async def test_a_batch_of_large_merges_is_rejected_as_a_small_one(engine: Engine) -> None:
    """The first rejection in the order of the operations, by existence, condition and size."""
    client = Client(engine)
    await client("POST", "Tables", body={"TableName": "large"})
    for number in range(5):
        assert (await client("PUT", f"large(PartitionKey='p',RowKey='{number}')", body=LONG)).status == 204
    urls = [f"large(PartitionKey='p',RowKey='{number}')" for number in range(6)]
    too_much = {f"T{number}": "a" * LONGEST for number in range(2)}
    merges = [Operation("MERGE", url, {"A": 1}) for url in urls[:3]]
    stale = Operation("MERGE", urls[3], {"A": 1}, {"If-Match": "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""})
    large = Operation("MERGE", urls[4], {**too_much, "U": "a" * LONGEST})
    missing = Operation("MERGE", urls[5], {"A": 1}, {"If-Match": "*"})
    for operations, code, prefix in (
        ([*merges, stale, large, missing], "UpdateConditionNotSatisfied", "3:The "),
        ([*merges, large, stale, missing], "EntityTooLarge", "3:The "),
        ([*merges, missing, large, stale], "ResourceNotFound", "3:The "),
        ([large], "EntityTooLarge", "The "),
    ):
        response = await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
        (part,) = parts(response)
        assert part.code == code
        assert part.message.startswith(prefix)


async def test_a_worker_has_large_rows_merged_by_the_process_that_has_the_store() -> None:
    engine = RocksEngine.open(None, system_clock)
    server = EngineServer(engine, CODEC, (), print)
    remote = RemoteEngine(CODEC, system_clock)
    await join(remote.channel, server.open_channel(lambda: None))
    client = Client(remote)
    await client("POST", "Tables", body={"TableName": "large"})
    key = "large(PartitionKey='p',RowKey='0')"
    assert (await client("PUT", key, body=LARGE)).status == 204
    assert (await client("MERGE", key, body={"A": 1})).status == 204
    found = json.loads((await client("GET", key)).body)
    assert {name: found[name] for name in (*LARGE, "A")} == {**LARGE, "A": 1}
    await remote.close()
    await server.close()
    await engine.close()
