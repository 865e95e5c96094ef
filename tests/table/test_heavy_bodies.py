"""Costly bodies are read in many short steps, and other requests run between the steps."""

import asyncio
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from lazulite.engine.contract import Engine
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.multipart import read_batch
from lazulite.protocol.steps import Steps, finish
from lazulite.service.routing import QueryLimits
from lazulite.table.batch.inner_calls import KEYED_URL
from lazulite.table.payload import atom, json_reader
from lazulite.table.payload.json_pattern import TablePatterns
from tests.table import heavy_bodies
from tests.table.client import Client
from tests.table.heavy_bodies import BATCH_TYPE, Heavy

LINES_MAX = 40_000
"""Lines of Python in a step: a few milliseconds."""
READERS: dict[str, tuple[Callable[[], Iterable[Heavy]], Callable[[bytes], Steps[object]]]] = {
    "an entity in JSON": (
        heavy_bodies.json_entities,
        lambda body: json_reader.read_encoded(body, True, TablePatterns()),
    ),
    "a table in JSON": (heavy_bodies.tables, json_reader.read_table_name),
    "an entity in Atom": (heavy_bodies.atom_entities, atom.read_entity),
    "a batch": (heavy_bodies.batches, lambda body: read_batch(BATCH_TYPE, body, KEYED_URL)),
}


def most_lines(steps: Steps[object]) -> int:
    """Do some work, rejected or not; return how many lines of Python its longest step takes."""
    lines = most = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    traced = sys.gettrace()
    while True:
        lines = 0
        try:
            sys.settrace(trace)
            next(steps)
        except (StopIteration, ServiceError):
            return max(most, lines)
        finally:
            sys.settrace(traced)
            most = max(most, lines)


def count_steps(steps: Steps[object]) -> int:
    """Do some work, rejected or not; return in how many steps."""
    count = 0
    with suppress(ServiceError):
        for _ in steps:
            count += 1
    return count


@pytest.mark.parametrize("what", READERS)
def test_each_step_is_short(what: str) -> None:
    bodies, reader = READERS[what]
    for name, body, legal in bodies():
        assert most_lines(reader(body)) <= LINES_MAX, name
        if legal:
            finish(reader(body))


async def iterations_of_others(client: Client, method: str, path: str, body: bytes, headers: dict[str, str]) -> int:
    """Send a request; return how many iterations of the event loop others had before its answer."""
    iterations = 0

    async def count() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    await client(method, path, body=body, headers=headers)
    other.cancel()
    return iterations


REQUESTS = {
    "POST heavy": ("an entity in JSON", "application/json"),
    "PUT heavy(PartitionKey='p',RowKey='r')": ("an entity in JSON", "application/json"),
    "MERGE heavy(PartitionKey='p',RowKey='r')": ("an entity in JSON", "application/json"),
    "POST Tables": ("a table in JSON", "application/json"),
    "PATCH heavy(PartitionKey='p',RowKey='r')": ("an entity in Atom", "application/atom+xml"),
    "POST $batch": ("a batch", BATCH_TYPE),
}


@pytest.mark.parametrize("request_line", REQUESTS)
async def test_others_have_iterations_between_the_steps(engine: Engine, request_line: str) -> None:
    """A time slice of no length is used up at every checkpoint."""
    what, content_type = REQUESTS[request_line]
    bodies, reader = READERS[what]
    client = Client(engine, limits=QueryLimits(slice_seconds=0))
    await client("POST", "Tables", body={"TableName": "heavy"})
    headers = {"content-type": content_type, "x-ms-version": "2014-02-14", "maxdataserviceversion": "3.0"}
    heavy = next((each for each in bodies() if each.legal), next(iter(bodies())))
    steps = count_steps(reader(heavy.body))
    if what == "a batch":
        parts = finish(read_batch(BATCH_TYPE, heavy.body, KEYED_URL)).parts
        steps += sum(count_steps(json_reader.read_encoded(part.body, True, TablePatterns())) for part in parts)
    method, path = request_line.split()
    assert await iterations_of_others(client, method, path, heavy.body, headers) >= steps >= 10
