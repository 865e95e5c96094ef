"""Copies and writes from a URL: what is copied, which sources can be read, and what the destination allows."""

from collections.abc import AsyncIterator
from random import Random
from urllib.parse import quote

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.sas import AccountSas, sign_account_sas
from tests.blob.world import ACCOUNT, VERSION, Answer, World, opened

SMALL, LARGE = b"small", Random(1).randbytes(700_000)
BASE = f"http://127.0.0.1:10000/{ACCOUNT}/docs"
TYPE = {"x_ms_blob_type": "BlockBlob"}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


def sas(permission: str = "r") -> str:
    token = AccountSas(services="b", resource_types="o", permission=permission, expiry="2999-01-01T00:00:00Z")
    return sign_account_sas(DEVELOPMENT_ACCOUNT, token)


async def write(world: World, path: str, query: str = "", source: str = "source", **headers: str) -> Answer:
    url = source if "://" in source else f"{BASE}/{source}{'&' if '?' in source else '?'}{sas()}"
    sent = {"host": "127.0.0.1:10000", "x_ms_copy_source": url} | headers
    return await world.ask("PUT", f"docs/{path}", query, b"", VERSION, **sent)


async def get(world: World, path: str, query: str = "") -> bytes:
    return (await world.ask("GET", f"docs/{path}", query)).body


@pytest.mark.parametrize("data", [b"", SMALL, LARGE])
@pytest.mark.parametrize("sync", [{}, {"x_ms_requires_sync": "true"}])
async def test_a_copy_has_bytes_headers_and_metadata(world: World, data: bytes, sync: dict[str, str]) -> None:
    described = {"x_ms_blob_content_type": "text/plain", "x_ms_meta_colour": "red"}
    await world.ask("PUT", "docs/source", "", data, VERSION, **TYPE, **described)
    answer = await write(world, "copy", **sync)
    assert (answer.status, answer.headers["x-ms-copy-status"]) == (202, "success")
    await world.ask("DELETE", "docs/source")
    found = await world.ask("GET", "docs/copy")
    assert (found.body, found.headers["content-type"], found.headers["x-ms-meta-colour"]) == (data, "text/plain", "red")
    assert found.headers["x-ms-copy-progress"] == f"{len(data)}/{len(data)}"
    await world.ask("DELETE", "docs/copy")
    assert await world.kept() == set()


async def test_metadata_of_the_request_replace_those_of_the_source(world: World) -> None:
    await world.ask("PUT", "docs/source", "", SMALL, VERSION, **TYPE, x_ms_meta_colour="red")
    await write(world, "copy", x_ms_meta_size="1")
    found = await world.ask("HEAD", "docs/copy")
    assert found.headers["x-ms-meta-size"] == "1"
    assert "x-ms-meta-colour" not in found.headers


async def test_a_copy_has_the_blocks_of_its_source(world: World) -> None:
    await world.put_block("a", LARGE, "source")
    await world.put_block("b", SMALL, "source")
    await world.put_list(("Latest", "a"), ("Latest", "b"), blob="source")
    await write(world, "copy")
    assert await get(world, "copy") == LARGE + SMALL
    lists = [await get(world, name, "comp=blocklist") for name in ("source", "copy")]
    assert lists[0] == lists[1]
    await world.ask("DELETE", "docs/source")
    assert await get(world, "copy") == LARGE + SMALL
    await world.ask("DELETE", "docs/copy")
    assert (await world.rows(), await world.kept()) == ([], set())


async def test_a_snapshot_of_an_append_blob_is_copied_as_it_was(world: World) -> None:
    await world.ask("PUT", "docs/source", x_ms_blob_type="AppendBlob")
    await world.ask("PUT", "docs/source", "comp=appendblock", LARGE)
    taken = (await world.ask("PUT", "docs/source", "comp=snapshot")).headers["x-ms-snapshot"]
    await world.ask("PUT", "docs/source", "comp=appendblock", SMALL)
    await write(world, "copy", source=f"source?snapshot={quote(taken)}")
    assert await get(world, "copy") == LARGE
    assert (await world.ask("PUT", "docs/copy", "comp=appendblock", b"end")).status == 201
    assert await get(world, "copy") == LARGE + b"end"
    assert await get(world, "source") == LARGE + SMALL


async def test_a_snapshot_of_a_page_blob_is_copied_as_it_was(world: World) -> None:
    await world.ask("PUT", "docs/source", x_ms_blob_type="PageBlob", x_ms_blob_content_length="1048576")
    page = {"x_ms_page_write": "update", "x_ms_range": "bytes=512-1023"}
    await world.ask("PUT", "docs/source", "comp=page", b"1" * 512, VERSION, **page)
    large = {"x_ms_page_write": "update", "x_ms_range": "bytes=65536-131071"}
    await world.ask("PUT", "docs/source", "comp=page", LARGE[:65536], VERSION, **large)
    taken = (await world.ask("PUT", "docs/source", "comp=snapshot")).headers["x-ms-snapshot"]
    before = await get(world, "source")
    await world.ask("PUT", "docs/source", "comp=page", b"2" * 512, VERSION, **page)
    await write(world, "copy", source=f"source?snapshot={quote(taken)}")
    assert await get(world, "copy") == before
    await world.ask("PUT", "docs/copy", "comp=page", b"3" * 512, VERSION, **page)
    assert (await get(world, "copy"))[512:1024] == b"3" * 512
    assert (await get(world, "source"))[512:1024] == b"2" * 512
    for name in ("source", "copy"):
        await world.ask("DELETE", f"docs/{name}", x_ms_delete_snapshots="include")
    assert (await world.rows(), await world.kept()) == ([], set())


async def test_a_blob_may_be_copied_onto_itself(world: World) -> None:
    await world.ask("PUT", "docs/source", "", LARGE, VERSION, **TYPE)
    assert (await write(world, "source", x_ms_meta_a="b")).status == 202
    assert await get(world, "source") == LARGE


@pytest.mark.parametrize(
    ("source", "status", "code"),
    [
        (f"{BASE}/source", 401, "NoAuthenticationInformation"),
        (f"{BASE}/absent?{sas()}", 404, "BlobNotFound"),
        (f"{BASE}/source?{sas('w')}", 403, "AuthorizationPermissionMismatch"),
        ("http://169.254.169.254/latest/meta-data", 404, "ResourceNotFound"),
        ("http://127.0.0.1:22/docs/source", 404, "ResourceNotFound"),
    ],
)
async def test_a_source_that_the_request_may_not_read(world: World, source: str, status: int, code: str) -> None:
    await world.ask("PUT", "docs/source", "", SMALL, VERSION, **TYPE)
    for headers in ({}, TYPE):
        answer = await world.ask(
            "PUT", "docs/copy", "", b"", VERSION, host="127.0.0.1:10000", x_ms_copy_source=source, **headers
        )
        assert (answer.code, answer.headers["x-ms-copy-source-error-code"]) == ("CannotVerifyCopySource", code)
        assert answer.status == status
    assert (await world.ask("HEAD", "docs/copy")).status == 404


async def test_conditions_on_the_source(world: World) -> None:
    await world.ask("PUT", "docs/source", "", SMALL, VERSION, **TYPE)
    etag = (await world.ask("HEAD", "docs/source")).headers["etag"]
    assert (await write(world, "copy", x_ms_source_if_match=etag)).status == 202
    block, sync = "comp=block&blockid=QQ==", {"x_ms_requires_sync": "true"}
    for query, headers, failed, not_modified in (
        ("", {}, "SourceConditionNotMet", (412, "SourceConditionNotMet")),
        ("", sync, "SourceConditionNotMet", (412, "SourceConditionNotMet")),
        ("", TYPE, "CannotVerifyCopySource", (304, "CannotVerifyCopySource")),
        (block, {}, "CannotVerifyCopySource", (304, "CannotVerifyCopySource")),
    ):
        answer = await write(world, "copy", query, **headers, x_ms_source_if_match='"0x1"')
        assert (answer.status, answer.code) == (412, failed)
        answer = await write(world, "copy", query, **headers, x_ms_source_if_none_match=etag)
        assert (answer.status, answer.code) == not_modified


async def test_a_destination_of_another_type_stays(world: World) -> None:
    await world.ask("PUT", "docs/source", "", SMALL, VERSION, **TYPE)
    await world.ask("PUT", "docs/copy", x_ms_blob_type="AppendBlob")
    assert (await write(world, "copy")).code == "InvalidBlobType"
    assert (await world.ask("HEAD", "docs/copy")).headers["x-ms-blob-type"] == "AppendBlob"


async def test_writes_from_a_url(world: World) -> None:
    await world.ask("PUT", "docs/source", "", LARGE, VERSION, **TYPE, x_ms_blob_content_type="text/plain")
    assert (await write(world, "whole", x_ms_blob_type="BlockBlob")).status == 201
    found = await world.ask("GET", "docs/whole")
    assert (found.body, found.headers["content-type"]) == (LARGE, "text/plain")
    part = {"x_ms_source_range": "bytes=100-299"}
    assert (await write(world, "blocks", "comp=block&blockid=YQ==", x_ms_source_range="bytes=100-299")).status == 201
    await world.put_list(("Latest", "a"), blob="blocks")
    assert await get(world, "blocks") == LARGE[100:300]
    await world.ask("PUT", "docs/log", x_ms_blob_type="AppendBlob")
    for _ in range(2):
        assert (await write(world, "log", "comp=appendblock", **part)).status == 201
    assert await get(world, "log") == LARGE[100:300] * 2
    await world.ask("PUT", "docs/page", x_ms_blob_type="PageBlob", x_ms_blob_content_length="1024")
    page = {"x_ms_page_write": "update", "x_ms_range": "bytes=512-1023", "x_ms_source_range": "bytes=0-511"}
    assert (await write(world, "page", "comp=page", **page)).status == 201
    assert await get(world, "page") == bytes(512) + LARGE[:512]


async def test_a_source_with_another_digest_is_rejected(world: World) -> None:
    await world.ask("PUT", "docs/source", "", LARGE, VERSION, **TYPE)
    answer = await write(world, "whole", x_ms_blob_type="BlockBlob", x_ms_source_content_md5="A" * 22 + "==")
    assert (answer.status, answer.code) == (400, "Md5Mismatch")
    assert len(await world.kept()) == 1


async def test_no_copy_is_pending(world: World) -> None:
    await world.ask("PUT", "docs/source", "", SMALL, VERSION, **TYPE)
    answer = await world.ask("PUT", "docs/source", "comp=copy&copyid=1", x_ms_copy_action="abort")
    assert (answer.status, answer.code) == (409, "NoPendingCopyOperation")


async def test_tags_are_copied_on_request_alone(world: World) -> None:
    await world.ask("PUT", "docs/source", "", SMALL, VERSION, **TYPE, x_ms_tags="colour=red")
    for kind in ({}, TYPE):
        assert (await write(world, "copy", **kind)).status in (201, 202)
        assert "x-ms-tag-count" not in (await world.ask("HEAD", "docs/copy")).headers
        rejected = await write(world, "copy", **kind, x_ms_copy_source_tag_option="COPY")
        assert (rejected.status, rejected.code) == (403, "CannotVerifyCopySource"), "the source's SAS permits no tags"
        url = f"{BASE}/source?{sas('rt')}"
        copied = await write(world, "copy", source=url, **kind, x_ms_copy_source_tag_option="COPY")
        assert copied.status in (201, 202)
        assert (await world.ask("HEAD", "docs/copy")).headers["x-ms-tag-count"] == "1"
        both = await write(world, "copy", **kind, x_ms_copy_source_tag_option="COPY", x_ms_tags="a=b", source=url)
        assert both.code == "BothUserTagsAndSourceTagsCopyPresentException"
    found = await world.ask("GET", "", "comp=blobs&where=colour%3D%27red%27")
    assert b"<Name>copy</Name>" in found.body
