"""Responses of more than a megabyte come in windows: pages in each format, and batches."""

import asyncio
import json
import tracemalloc
from random import Random

import pytest

from lazulite.engine.contract import Engine
from lazulite.protocol import multipart
from lazulite.protocol.joined_content import ONE_PIECE_BYTES
from lazulite.protocol.message import WINDOW_BYTES, Response, Window
from lazulite.server.http.outbound import send_windows
from lazulite.service.routing import QueryLimits
from lazulite.service.time_slice import TimeSlice
from lazulite.table import responses
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts, query
from tests.table.client import Client, header, values

LARGE = {f"S{number}": "中" * 32 * 1024 for number in range(5)}
"""An entity whose row has a megabyte."""
ROWS = 6
OLD = {"x-ms-version": "2014-02-14", "maxdataserviceversion": "3.0"}
FORMATS = [
    *({"accept": f"application/json;odata={level}metadata"} for level in ("no", "minimal", "full")),
    {"accept": "application/atom+xml", **OLD},
]


@pytest.fixture(name="client")
async def _client(engine: Engine) -> Client:
    client = Client(engine, clock=lambda: 10**17)
    await client("POST", "Tables", body={"TableName": "large"})
    for number in range(ROWS):
        await client("PUT", f"large(PartitionKey='p',RowKey='{number}')", body=LARGE)
    return client


async def received(response: Response) -> Response:
    """Return a response whose content has become its body."""
    if response.content is not None:
        length, windows = response.content.length, [window async for window in response.content.chunks()]
        assert all(len(window) <= WINDOW_BYTES for window in windows)
        assert response.body == b""
        response.body = b"".join(windows)
        assert len(response.body) == length
    return response


@pytest.mark.parametrize("select", ["", "$select=S1,S2,Gone"])
@pytest.mark.parametrize("headers", FORMATS, ids=lambda headers: headers["accept"])
async def test_a_long_page_has_the_bytes_of_one_in_one_piece(
    client: Client, headers: dict[str, str], select: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = await client("GET", "large()", select, headers=headers)
    assert long.content is not None
    assert long.content.length > ONE_PIECE_BYTES
    monkeypatch.setattr(responses, "ONE_PIECE_BYTES", 1 << 40)
    whole = await client("GET", "large()", select, headers=headers)
    assert whole.content is None
    assert (await received(long)).body == whole.body
    assert [name for name, _ in long.fields()] == [name for name, _ in whole.fields()]


async def test_a_short_page_is_in_one_piece(client: Client) -> None:
    for options in ("$top=1", "$select=A", "$filter=false"):
        response = await client("GET", "large()", options)
        assert response.content is None
        assert values(response) == json.loads(response.body)["value"]


async def test_a_long_page_continues_as_a_short_one(engine: Engine, client: Client) -> None:
    client = Client(engine, limits=QueryLimits(page_bytes=2 << 20))
    found, token = [], ""
    for _ in range(ROWS):
        response = await received(await client("GET", "large()", token))
        found += [entity["RowKey"] for entity in values(response)]
        partition, row = (header(response, f"x-ms-continuation-Next{name}Key") for name in ("Partition", "Row"))
        if partition is None:
            break
        token = f"NextPartitionKey={partition}&NextRowKey={row}"
    assert found == [str(number) for number in range(ROWS)]
    assert response.content is not None
    assert header(response, "Server-Timing") is not None


@pytest.mark.parametrize("headers", FORMATS[:3], ids=lambda headers: headers["accept"])
async def test_a_page_is_not_joined_before_it_is_sent(client: Client, headers: dict[str, str]) -> None:
    """It would be in memory twice: in parts, and joined."""
    tracemalloc.start()
    try:
        response = await client("GET", "large()", headers=headers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response.content is not None
    assert peak < 1.8 * response.content.length


async def test_no_more_than_a_window_of_a_page_is_joined_and_copied_at_a_time(client: Client) -> None:
    response = await client("GET", "large()")
    content = response.content
    assert content is not None
    iterations = [0]

    async def count() -> None:
        while True:
            iterations.append(0)
            await asyncio.sleep(0)

    async def send(window: Window) -> None:
        iterations[-1] += len(window)

    counting = asyncio.create_task(count())
    tracemalloc.start()
    try:
        await send_windows(content, send, TimeSlice(0, lambda: 0.0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        counting.cancel()
    assert sum(iterations) == content.length > 4 << 20
    assert max(iterations) == WINDOW_BYTES
    assert peak < 4 * WINDOW_BYTES


async def test_what_atom_cannot_spell_is_rejected_before_the_first_byte(client: Client) -> None:
    await client("PUT", "large(PartitionKey='q',RowKey='r')", body={"S": "\x01"})
    response = await client("GET", "large()", headers=FORMATS[-1])
    assert (response.error_code, response.content) == ("AtomFormatNotSupported", None)
    assert b"'S'" in response.body


async def test_a_long_page_in_a_batch(client: Client) -> None:
    body = query(Operation("GET", "large()"))
    response = await client("POST", "$batch", body=body, headers=CONTENT_TYPE)
    assert response.content is not None
    (part,) = parts(await received(response))
    assert part.status == 200
    assert [entity["RowKey"] for entity in json.loads(part.body)["value"]] == [str(number) for number in range(ROWS)]
    short = await client(
        "POST", "$batch", body=query(Operation("GET", "large()?$top=1&$select=A")), headers=CONTENT_TYPE
    )
    assert short.content is None
    assert parts(short)[0].status == 200


async def test_the_long_echoes_of_a_change_set(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    inserts = [Operation("POST", "large", {"PartitionKey": "q", "RowKey": str(n), "S": LARGE["S0"]}) for n in range(8)]
    response = await client("POST", "$batch", body=change_set(*inserts), headers=CONTENT_TYPE)
    assert response.content is not None
    found = parts(await received(response))
    assert [json.loads(part.body)["RowKey"] for part in found] == [str(number) for number in range(8)]
    assert {part.status for part in found} == {201}
    monkeypatch.setattr(multipart, "ONE_PIECE_BYTES", 1 << 40)
    texts = [b"one", b"two"]
    whole = multipart.change_set_response(texts, Random(1))
    monkeypatch.setattr(multipart, "ONE_PIECE_BYTES", 0)
    assert (await received(multipart.change_set_response(texts, Random(1)))).body == whole.body
