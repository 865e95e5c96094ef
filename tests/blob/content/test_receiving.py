"""Digests and structured bodies: what is stored, how often bytes are taken in, and limits."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import md5

import pytest

from lazulite.blob.content import crc64 as crc64_module
from lazulite.blob.content import digests
from lazulite.blob.content.crc64 import crc64, crc64_to_bytes
from lazulite.blob.content.structured_body import FORMAT, StructuredContent, encoded_bytes
from lazulite.blob.limits import (
    APPEND_BLOCK_BYTES_MAX,
    PUT_BLOB_BYTES_MAX,
    PUT_BLOCK_BYTES_MAX,
    PUT_PAGE_BYTES_MAX,
)
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.joined_content import JoinedContent
from lazulite.protocol.message import WINDOW_BYTES, ClientDisconnectedError, Request, response_of
from lazulite.service.routing import QueryLimits
from tests.blob.world import ACCOUNT, CONTAINER, Answer, World, id_of, opened, token

OLD, USUAL, NEW = "2018-11-09", "2021-12-02", "2026-10-06"
DATA = bytes(range(256)) * 100
LIST = f"<BlockList><Latest>{id_of('a')}</Latest></BlockList>".encode()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


def md5_of(data: bytes) -> str:
    return b64encode(md5(data, usedforsecurity=False).digest()).decode()


def crc64_of(data: bytes) -> str:
    return b64encode(crc64_to_bytes(crc64(data))).decode()


async def write(world: World, operation: str, data: bytes = DATA, version: str = USUAL, **headers: str) -> Answer:
    match operation:
        case "PutBlob":
            return await world.ask("PUT", body=data, version=version, x_ms_blob_type="BlockBlob", **headers)
        case "PutBlock":
            query = f"comp=block&blockid={id_of('a')}"
            return await world.ask("PUT", query=query, body=data, version=version, **headers)
        case "AppendBlock":
            await world.ask("PUT", f"{CONTAINER}/log", x_ms_blob_type="AppendBlob")
            return await world.ask("PUT", f"{CONTAINER}/log", "comp=appendblock", data, version, **headers)
    await world.put_block("a", b"1")
    return await world.ask("PUT", query="comp=blocklist", body=data, version=version, **headers)


WRITES = ("PutBlob", "PutBlock", "AppendBlock", "PutBlockList")


def body_of(operation: str) -> bytes:
    return LIST if operation == "PutBlockList" else DATA


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("name", ["content_md5", "x_ms_content_crc64"])
async def test_a_write_is_compared_with_its_digest(world: World, operation: str, name: str) -> None:
    data = body_of(operation)
    right, wrong = (md5_of, crc64_of)[name != "content_md5"], bytes(16 if name == "content_md5" else 8)
    rejected = await write(world, operation, data, **{name: b64encode(wrong).decode()})
    assert rejected.code == ("Md5Mismatch" if name == "content_md5" else "Crc64Mismatch")
    assert (await world.ask("GET")).status == 404
    assert not await world.kept()
    answer = await write(world, operation, data, **{name: right(data)})
    assert answer.status == 201
    if operation == "PutBlockList":
        name, right = "x-ms-content-crc64", crc64_of
    assert answer.headers[name.replace("_", "-")] == right(data)


@pytest.mark.parametrize("data", [b"0123456789", DATA])
async def test_the_digest_of_a_range(world: World, data: bytes) -> None:
    await write(world, "PutBlob", data)
    asked = {"x_ms_range": "bytes=2-5", "x_ms_range_get_content_md5": "true"}
    answer = await world.ask("GET", "docs/blob", "", b"", USUAL, **asked)
    assert (answer.status, answer.body) == (206, data[2:6])
    assert answer.headers["content-md5"] == md5_of(data[2:6])
    assert answer.headers["x-ms-blob-content-md5"] == md5_of(data)
    answer = await world.ask("GET", x_ms_range="bytes=2-5", x_ms_range_get_content_crc64="true")
    assert answer.headers["x-ms-content-crc64"] == crc64_of(data[2:6])
    assert "content-md5" not in answer.headers
    assert "x-ms-content-crc64" not in (await world.ask("GET", x_ms_range="bytes=2-5")).headers


async def test_others_run_while_the_digests_of_four_mebibytes_are_computed(world: World) -> None:
    """A time slice of no length is used up at every checkpoint; without one, the loop is held for 8 ms."""
    world.limits = QueryLimits(slice_seconds=0)
    world.restart()
    data, iterations = bytes(PUT_PAGE_BYTES_MAX), 0

    async def count() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    await world.ask("PUT", x_ms_blob_type="PageBlob", x_ms_blob_content_length=str(len(data)))
    other = asyncio.create_task(count())
    found, asked = [], {"x_ms_range": f"bytes=0-{len(data) - 1}"}
    for method, query, body, headers in (
        ("PUT", "comp=page", data, {"x_ms_page_write": "update", "content_md5": md5_of(data)}),
        ("GET", "", b"", {"x_ms_range_get_content_md5": "true"}),
    ):
        iterations = 0
        answer = await world.ask(method, query=query, body=body, **asked, **headers)
        assert answer.headers["content-md5"] == md5_of(data)
        found.append(iterations)
    other.cancel()
    assert min(found) >= len(data) // WINDOW_BYTES


async def test_digests_of_ranges_that_cannot_be(world: World) -> None:
    await write(world, "PutBlob", bytes(4 * 1024 * 1024 + 1))
    assert (await world.ask("GET", x_ms_range_get_content_md5="true")).code == "InvalidHeaderValue"
    whole = "bytes=0-4194304"
    answer = await world.ask("GET", x_ms_range=whole, x_ms_range_get_content_md5="true")
    assert (answer.status, answer.code) == (400, "OutOfRangeInput")
    answer = await world.ask("GET", x_ms_range="bytes=1-", x_ms_range_get_content_md5="true")
    assert answer.status == 206
    both = {"x_ms_range_get_content_md5": "true", "x_ms_range_get_content_crc64": "true"}
    assert (await world.ask("GET", "docs/blob", "", b"", USUAL, **both)).code == "BothCrc64AndMd5HeaderPresent"


async def structured(data: bytes) -> bytes:
    return b"".join([chunk async for chunk in StructuredContent(JoinedContent([data])).chunks()])


async def test_a_structured_list(world: World) -> None:
    body = await structured(LIST)
    headers = {"x_ms_structured_body": FORMAT, "x_ms_structured_content_length": str(len(LIST))}
    answer = await write(world, "PutBlockList", body, NEW, **headers)
    assert answer.status == 201
    assert answer.headers["x-ms-structured-body"] == FORMAT
    assert answer.headers["content-md5"] == md5_of(LIST)
    assert (await world.ask("GET")).body == b"1"
    broken = body[:-20] + bytes([body[-20] ^ 1]) + body[-19:]
    assert (await write(world, "PutBlockList", broken, NEW, **headers)).code == "Crc64Mismatch"


async def test_each_byte_of_a_structured_body_is_taken_in_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def counted(data: bytes, previous: int = 0) -> int:
        taken.append(len(data))
        return crc64(data, previous)

    data = bytes(3 << 20)
    body = await structured(data)
    for module in (crc64_module, digests):
        monkeypatch.setattr(module, "crc64", counted)
    headers = {"x_ms_structured_body": FORMAT, "x_ms_structured_content_length": str(len(data))}
    answer = await write(world, "PutBlob", body, NEW, **headers)
    assert answer.headers["x-ms-content-crc64"] == crc64_of(data)
    assert sum(taken) == len(data)
    taken.clear()
    answer = await world.ask("GET", version=NEW, x_ms_structured_body=FORMAT)
    assert (answer.body, sum(taken)) == (body, len(data))


class _AbandonedBody:
    """A body of which the client sends nothing.

    Args:
        length: its announced bytes.
    """

    is_whole = False

    def __init__(self, length: int) -> None:
        self.length = length

    async def read(self, bytes_max: int) -> bytes:
        if self.length > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        raise ClientDisconnectedError

    async def chunks(self) -> AsyncIterator[bytes]:
        raise ClientDisconnectedError
        yield b""


@pytest.mark.parametrize(
    ("query", "bytes_max", "headers"),
    [
        ("", PUT_BLOB_BYTES_MAX, {"x-ms-blob-type": "BlockBlob"}),
        ("comp=block&blockid=YQ%3D%3D", PUT_BLOCK_BYTES_MAX, {}),
        ("comp=appendblock", APPEND_BLOCK_BYTES_MAX, {}),
        ("comp=page", PUT_PAGE_BYTES_MAX, {"x-ms-page-write": "update"}),
    ],
)
async def test_a_limit_counts_the_content_of_a_structured_body(
    world: World, query: str, bytes_max: int, headers: dict[str, str]
) -> None:
    if query == "comp=appendblock":
        await world.ask("PUT", x_ms_blob_type="AppendBlob")

    async def announce(content: int, length: int, **more: str) -> str:
        headers_ = {"x-ms-version": NEW, **headers, **more, "x-ms-structured-content-length": str(content)}
        body = _AbandonedBody(length)
        request = Request("PUT", f"/{ACCOUNT}/{CONTAINER}/blob", f"{query}&{token()}", headers_, body_to_come=body)
        return (await response_of(world.service, request)).error_code

    framed = {"x-ms-structured-body": FORMAT}
    for segments in (1, 65_535):
        with pytest.raises(ClientDisconnectedError):
            await announce(bytes_max, encoded_bytes(bytes_max, segments), **framed)
    if query != "comp=page":  # Its body is received whole first.
        assert await announce(bytes_max + 1, encoded_bytes(bytes_max + 1, 1), **framed) == "RequestBodyTooLarge"
    assert await announce(bytes_max, encoded_bytes(bytes_max, 1)) == "RequestBodyTooLarge"
