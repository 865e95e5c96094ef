"""Blobs under names that no path has, as earlier versions stored them: lists show them, and the names reach them."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.blob.auth.sas import BlobSas, sign_blob_sas
from lazulite.blob.resource import BLOB_NAME_MAX

from .world import ACCOUNT, CONTAINER, VERSION, Answer, World, opened, stored_names, token

NAMES = ["a\\b", "a/./b", "a/x/../b", "..", "b.", "a\x01", "\ue000"]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        with stored_names():
            for name in NAMES:
                put = await world.ask("PUT", f"{CONTAINER}/{name}", "", name.encode(), x_ms_blob_type="BlockBlob")
                assert put.status == 201
        yield world


def named(name: str) -> str:
    return f"lazulite-name={quote(name, safe='')}"


async def listed(world: World) -> int:
    return (await world.ask("GET", CONTAINER, "restype=container&comp=list")).body.count(b"<Blob>")


@pytest.mark.parametrize("name", NAMES)
async def test_they_are_read_and_deleted(world: World, name: str) -> None:
    assert await listed(world) == len(NAMES)
    found = await world.ask("GET", CONTAINER, named(name))
    assert (found.status, found.body) == (200, name.encode())
    assert (await world.ask("HEAD", CONTAINER, named(name))).status == 200
    assert (await world.ask("DELETE", CONTAINER, named(name))).status == 202
    assert (await world.ask("GET", CONTAINER, named(name))).code == "BlobNotFound"
    assert await listed(world) == len(NAMES) - 1


@pytest.mark.parametrize("name", NAMES)
async def test_they_are_copied(world: World, name: str) -> None:
    url = f"http://h/{ACCOUNT}/{CONTAINER}?{named(name)}&{token()}"
    copy = await world.ask("PUT", f"{CONTAINER}/copy", host="h", x_ms_copy_source=url)
    assert copy.status == 202, copy
    assert (await world.ask("GET", f"{CONTAINER}/copy")).body == name.encode()


async def test_no_blob_gets_such_a_name(world: World) -> None:
    put = await world.ask("PUT", CONTAINER, named("new."), b"x", x_ms_blob_type="BlockBlob")
    assert put.code == "InvalidQueryParameterValue"
    for query in ("comp=metadata", "comp=block&blockid=eA==", "comp=lease"):
        assert (await world.ask("PUT", CONTAINER, f"{query}&{named('b.')}")).code == "InvalidQueryParameterValue"
    assert await listed(world) == len(NAMES)


@pytest.mark.parametrize("name", ["\0", "\0t", "a\0", "x" * (BLOB_NAME_MAX + 1)])
async def test_rows_that_are_no_blobs_are_not_reached(world: World, name: str) -> None:
    assert (await world.ask("GET", CONTAINER, named(name))).code == "InvalidQueryParameterValue"
    assert (await world.ask("DELETE", CONTAINER, named(name))).code == "InvalidQueryParameterValue"


async def test_the_name_takes_part_in_the_permission(world: World) -> None:
    async def read(name: str, of: str) -> Answer:
        sas = BlobSas(
            version="2018-11-09", kind="b", container=CONTAINER, blob=of, permission="r", expiry="2999-01-01T00:00:00Z"
        )
        query = f"{named(name)}&{sign_blob_sas(DEVELOPMENT_ACCOUNT, sas)}"
        return await world.send_as_is("GET", f"/{ACCOUNT}/{CONTAINER}", query, {"x-ms-version": VERSION})

    assert (await read("b.", "b.")).status == 200
    assert (await read("b.", "b")).status == 403
    assert (await read("a\\b", "a/b")).status == 403
