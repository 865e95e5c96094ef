"""Copies: nothing is left of a copy that is deleted, or of a source with another digest."""

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


async def test_a_source_with_another_digest_is_rejected(world: World) -> None:
    await world.ask("PUT", "docs/source", "", LARGE, VERSION, **TYPE)
    answer = await write(world, "whole", x_ms_blob_type="BlockBlob", x_ms_source_content_md5="A" * 22 + "==")
    assert (answer.status, answer.code) == (400, "Md5Mismatch")
    assert len(await world.kept()) == 1
