"""Copies and writes from a URL of another server: what is copied, what is asked, and what a failure is."""

from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import md5
from ipaddress import ip_network
from random import Random

import pytest

from lazulite.blob.content.crc64 import crc64, crc64_to_bytes
from lazulite.blob.copies import copy_blob
from lazulite.server.copy_sources.fetcher import SourceFetcher
from tests.blob.world import VERSION, Answer, World, opened
from tests.server.copy_sources.peers import answer, peer

SMALL, LARGE = b"small", Random(1).randbytes(700_000)
TYPE = {"x_ms_blob_type": "BlockBlob"}
SYNC = {"x_ms_requires_sync": "true"}
BLOCK = "comp=block&blockid=YQ=="
MD5 = "6EwvVfBe1j15TUyW6wlm0w=="


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        world.fetch_source = SourceFetcher([ip_network("127.0.0.1"), "name.invalid"]).fetch
        world.restart()
        await world.service.start()
        yield world


async def write(world: World, url: str, path: str = "copy", query: str = "", **headers: str) -> Answer:
    sent = {"host": "127.0.0.1:10000", "x_ms_copy_source": url} | headers
    return await world.ask("PUT", f"docs/{path}", query, b"", VERSION, **sent)


def asked(head: bytes) -> dict[str, str]:
    lines = head.decode().split("\r\n")[1:-2]
    return {name.lower(): text for name, text in (line.split(": ", 1) for line in lines)}


@pytest.mark.parametrize("data", [b"", SMALL, LARGE])
@pytest.mark.parametrize("sync", [{}, {"x_ms_requires_sync": "true"}])
async def test_a_copy_is_a_block_blob_with_headers_and_metadata(
    world: World, data: bytes, sync: dict[str, str]
) -> None:
    fields = ["Content-Type: text/plain", f"Content-MD5: {MD5}", "Cache-Control: no-cache", "x-ms-meta-Colour: red"]
    async with peer(answer(data, "x-ms-blob-type: PageBlob", *fields)) as other:
        source = f"{other.url}/c/b?sig=1"
        copied = await write(world, source, **sync)
    assert (copied.status, copied.headers["x-ms-copy-status"]) == (202, "success")
    assert "content-md5" not in copied.headers
    checksum = b64encode(crc64_to_bytes(crc64(data))).decode()
    assert copied.headers.get("x-ms-content-crc64") == (checksum if sync else None)
    assert other.heads[0].startswith(b"GET /c/b?sig=1 HTTP/1.1\r\n")
    found = await world.ask("GET", "docs/copy")
    assert (found.body, found.headers["x-ms-blob-type"]) == (data, "BlockBlob")
    expected = {
        "content-type": "text/plain",
        "content-md5": MD5,
        "cache-control": "no-cache",
        "x-ms-meta-colour": "red",
        "x-ms-copy-source": source.removesuffix("?sig=1"),
        "x-ms-copy-progress": f"{len(data)}/{len(data)}",
    }
    assert expected.items() <= found.headers.items()
    await world.ask("DELETE", "docs/copy")
    assert await world.kept() == set()


async def test_metadata_of_the_request_replace_those_of_the_source(world: World) -> None:
    async with peer(answer(SMALL, "x-ms-meta-colour: red")) as other:
        await write(world, other.url, x_ms_meta_size="1")
    found = await world.ask("HEAD", "docs/copy")
    assert found.headers["x-ms-meta-size"] == "1"
    assert "x-ms-meta-colour" not in found.headers


async def test_writes_from_a_url_take_a_range(world: World) -> None:
    def part(head: bytes) -> bytes:
        sent = asked(head).get("range")
        if sent is None:
            return answer(LARGE, "Content-Type: text/plain")
        start, last = (int(text) for text in sent.removeprefix("bytes=").split("-"))
        stop = min(last + 1, len(LARGE))
        shown = f"Content-Range: bytes {start}-{stop - 1}/{len(LARGE)}"
        return answer(LARGE[start:stop], shown, status="206 Partial Content")

    async with peer(part) as other:
        assert (await write(world, other.url, "whole", **TYPE)).status == 201
        assert len(other.heads) == 1
        found = await world.ask("GET", "docs/whole")
        assert (found.body, found.headers["content-type"]) == (LARGE, "text/plain")
        assert (await write(world, other.url, "blocks", BLOCK, x_ms_source_range="bytes=100-299")).status == 201
        await world.put_list(("Latest", "a"), blob="blocks")
        assert (await world.ask("GET", "docs/blocks")).body == LARGE[100:300]
        await world.ask("PUT", "docs/log", x_ms_blob_type="AppendBlob")
        tail = {"x_ms_source_range": f"bytes={len(LARGE) - 10}-{len(LARGE) + 10}"}
        assert (await write(world, other.url, "log", "comp=appendblock", **tail)).status == 201
        assert (await world.ask("GET", "docs/log")).body == LARGE[-10:]
        await world.ask("PUT", "docs/page", x_ms_blob_type="PageBlob", x_ms_blob_content_length="1024")
        page = {"x_ms_page_write": "update", "x_ms_range": "bytes=512-1023", "x_ms_source_range": "bytes=0-511"}
        assert (await write(world, other.url, "page", "comp=page", **page)).status == 201
        assert (await world.ask("GET", "docs/page")).body == bytes(512) + LARGE[:512]


@pytest.mark.parametrize(
    "say",
    [
        answer(LARGE),
        answer(SMALL, status="206 Partial Content"),
        answer(SMALL, "Content-Range: bytes 0-4/9", status="206 Partial Content"),
        answer(SMALL, "Content-Range: bytes 1-4/9", status="206 Partial Content"),
        answer(SMALL, "Content-Range: bytes 1-5/9", status="206 Partial Content"),
    ],
)
async def test_a_response_with_another_range_is_rejected(world: World, say: bytes) -> None:
    async with peer(say) as other:
        found = await write(world, other.url, "blocks", BLOCK, x_ms_source_range="bytes=1-6")
    assert (found.status, found.code) == (409, "CannotVerifyCopySource")
    assert await world.kept() == set()


async def test_conditions_are_sent_on(world: World) -> None:
    conditions = {"if-match": '"1"', "if-unmodified-since": "Sun, 06 Nov 1994 08:49:37 GMT"}
    sent = {f"x_ms_source_{name.replace('-', '_')}": text for name, text in conditions.items()}
    async with peer(answer(SMALL)) as other:
        assert (await write(world, other.url, **sent, x_ms_source_if_tags="\"a\"='b'")).status == 202
    assert (conditions | {"x-ms-if-tags": "\"a\"='b'", "x-ms-version": VERSION}).items() <= asked(
        other.heads[0]
    ).items()
    assert (await write(world, other.url, x_ms_source_if_modified_since="never")).status == 400


@pytest.mark.parametrize(
    ("says", "headers", "status", "code", "source_status"),
    [
        ("404 Not Found", {}, 404, "CannotVerifyCopySource", "404"),
        ("403 Forbidden", TYPE, 403, "CannotVerifyCopySource", "403"),
        ("302 Found", {}, 409, "CannotVerifyCopySource", "302"),
        ("204 No Content", {}, 409, "CannotVerifyCopySource", "204"),
        ("206 Partial Content", {}, 409, "CannotVerifyCopySource", "206"),
        ("100 Continue", {}, 409, "CannotVerifyCopySource", "100"),
        ("503 Busy", TYPE, 409, "CannotVerifyCopySource", "503"),
        ("412 Failed", {}, 412, "SourceConditionNotMet", None),
        ("304 Same", {}, 412, "SourceConditionNotMet", None),
        ("412 Failed", SYNC, 412, "SourceConditionNotMet", None),
        ("304 Same", SYNC, 412, "SourceConditionNotMet", None),
        ("412 Failed", TYPE, 412, "CannotVerifyCopySource", None),
        ("304 Same", TYPE, 304, "CannotVerifyCopySource", None),
    ],
)
async def test_what_a_source_rejects(
    world: World, says: str, headers: dict[str, str], status: int, code: str, source_status: str | None
) -> None:
    body = b"" if says[0] in "1" or says[:3] in ("204", "304") else b"no"
    async with peer(answer(body, "Location: http://127.0.0.1/", "x-ms-error-code: BlobNotFound", status=says)) as other:
        found = await write(world, other.url, **headers)
    assert (found.status, found.code, found.headers.get("x-ms-copy-source-status-code")) == (
        status,
        code,
        source_status,
    )
    if source_status is not None:
        assert found.headers["x-ms-copy-source-error-code"] == "BlobNotFound"
    assert len(other.heads) == 1
    assert (await world.ask("HEAD", "docs/copy")).status == 404


@pytest.mark.parametrize("headers", [{}, TYPE])
async def test_a_source_that_ends_too_early_leaves_nothing(world: World, headers: dict[str, str]) -> None:
    async with peer(answer(LARGE)[:-1]) as other:
        found = await write(world, other.url, **headers)
    assert (found.status, found.code) == (409, "CannotVerifyCopySource")
    assert (await world.kept(), (await world.ask("HEAD", "docs/copy")).status) == (set(), 404)


async def test_a_source_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_blob, "PUT_BLOB_BYTES_MAX", len(LARGE) - 1)
    monkeypatch.setattr(copy_blob, "SYNC_BYTES_MAX", len(LARGE) - 1)
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE)
    for say in (answer(LARGE), chunked):
        async with peer(say) as other:
            for headers in ({}, TYPE):
                assert (await write(world, other.url, **headers)).status == 413
            assert (await write(world, other.url, x_ms_requires_sync="true")).status in (409, 413)
    assert await world.kept() == set()


async def test_hosts_that_are_not_allowed_or_not_there(world: World) -> None:
    for url, status in (
        ("http://169.254.169.254/latest/meta-data", 404),
        ("http://127.0.0.2/", 404),
        ("http://[::ffff:169.254.169.254]/", 404),
        ("http://name.invalid/", 409),
        ("http://127.0.0.1:99999/", 409),
    ):
        found = await write(world, url)
        assert (found.status, found.code) == (status, "CannotVerifyCopySource")


async def test_metadata_that_no_blob_can_have(world: World) -> None:
    async with peer(answer(SMALL, f"x-ms-meta-a: {'x' * 9000}")) as other:
        found = await write(world, other.url)
    assert (found.status, found.headers["x-ms-copy-source-error-code"]) == (409, "MetadataTooLarge")


async def test_an_md5_that_is_none_is_dropped(world: World) -> None:
    async with peer(answer(SMALL, "Content-MD5: rubbish")) as other:
        assert (await write(world, other.url, x_ms_requires_sync="true")).status == 202
    assert "content-md5" not in (await world.ask("HEAD", "docs/copy")).headers


async def test_bytes_with_another_digest_are_rejected(world: World) -> None:
    async with peer(answer(LARGE)) as other:
        found = await write(world, other.url, **TYPE, x_ms_source_content_md5="A" * 22 + "==")
    assert (found.status, found.code) == (400, "Md5Mismatch")
    assert await world.kept() == set()


async def test_a_synchronous_copy_is_compared_with_its_checksum(world: World) -> None:
    right = b64encode(md5(LARGE, usedforsecurity=False).digest()).decode()
    async with peer(answer(LARGE)) as other:
        found = await write(world, other.url, **SYNC, x_ms_source_content_md5="A" * 22 + "==")
        assert (found.status, found.code) == (400, "Md5Mismatch")
        assert (await world.kept(), (await world.ask("HEAD", "docs/copy")).status) == (set(), 404)
        assert (await write(world, other.url, **SYNC, x_ms_source_content_md5=right)).status == 202
    assert "content-md5" not in (await world.ask("HEAD", "docs/copy")).headers


async def test_a_token_is_not_sent_in_clear(world: World) -> None:
    async with peer(answer(SMALL)) as other:
        for text in ("Bearer abc", "Basic abc"):
            found = await write(world, other.url, x_ms_copy_source_authorization=text)
            assert (found.status, found.code) == (400, "InvalidHeaderValue")
    assert other.heads == []


async def test_a_destination_that_rejects_the_copy_stays(world: World) -> None:
    await world.ask("PUT", "docs/copy", x_ms_blob_type="AppendBlob")
    async with peer(answer(LARGE)) as other:
        assert (await write(world, other.url)).code == "InvalidBlobType"
        assert (await write(world, other.url, "new", x_ms_seal_blob="true")).status == 400
    assert (await world.ask("HEAD", "docs/copy")).headers["x-ms-blob-type"] == "AppendBlob"
    assert await world.kept() == set()
