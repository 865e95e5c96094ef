"""The lease of a blob against each write: none may be left out. Source: reference §39, the matrix of leases."""

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest

from lazulite.blob import routes
from lazulite.blob.resource import Kind
from tests.blob.world import VERSION, Answer, World, id_of, opened
from tests.blob.world import token as sas

PATH = "docs/blob"
A, B = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
SOURCE = f"http://127.0.0.1:10000/devstoreaccount1/docs/source?{sas()}"
PAGE = {"x_ms_range": "bytes=0-511"}
FROM = {"x_ms_copy_source": SOURCE}


class Write(NamedTuple):
    """A write to the blob `docs/blob`."""

    operation: str
    """Its name in the routes."""
    type: str = "BlockBlob"
    """Of the blob."""
    query: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})
    method: str = "PUT"
    needs_id: bool = True
    """Whether it needs the id of a lease that is held; else it rejects a wrong one."""

    async def send(self, world: World, lease: str = "") -> Answer:
        headers = {**self.headers, **({"x_ms_lease_id": lease} if lease else {})}
        headers |= {"host": "127.0.0.1:10000"}
        return await world.ask(self.method, PATH, self.query, self.body, VERSION, **headers)


WRITES = {
    "put": Write("PutBlob", body=b"new", headers={"x_ms_blob_type": "BlockBlob"}),
    "put from a URL": Write("PutBlobFromURL", headers={"x_ms_blob_type": "BlockBlob", **FROM}),
    "copy": Write("CopyBlob", headers=FROM),
    "metadata": Write("SetBlobMetadata", query="comp=metadata"),
    "properties": Write("SetBlobProperties", query="comp=properties"),
    "block": Write("PutBlock", query=f"comp=block&blockid={id_of('a')}", body=b"a"),
    "block from a URL": Write("PutBlockFromURL", query=f"comp=block&blockid={id_of('b')}", headers=FROM),
    "block list": Write("PutBlockList", query="comp=blocklist", body=b"<BlockList />"),
    "append": Write("AppendBlock", "AppendBlob", "comp=appendblock", b"a"),
    "append from a URL": Write("AppendBlockFromURL", "AppendBlob", "comp=appendblock", headers=FROM),
    "seal": Write("SealAppendBlob", "AppendBlob", "comp=seal"),
    "page": Write("PutPage", "PageBlob", "comp=page", bytes(512), {"x_ms_page_write": "update", **PAGE}),
    "page from a URL": Write(
        "PutPageFromURL",
        "PageBlob",
        "comp=page",
        headers={"x_ms_page_write": "update", **PAGE, **FROM, "x_ms_source_range": "bytes=0-511"},
    ),
    "clear": Write("PutPage", "PageBlob", "comp=page", headers={"x_ms_page_write": "clear", **PAGE}),
    "resize": Write("SetBlobProperties", "PageBlob", "comp=properties", headers={"x_ms_blob_content_length": "512"}),
    "tags": Write("SetBlobTags", query="comp=tags", body=b"<Tags><TagSet /></Tags>"),
    "tier": Write("SetBlobTier", query="comp=tier", headers={"x_ms_access_tier": "Cool"}),
    "snapshot": Write("SnapshotBlob", query="comp=snapshot", needs_id=False),
    "delete": Write("DeleteBlob", method="DELETE"),
}
UNBUILT = {operation for *_, operation in routes._UNBUILT}
WITHOUT = {"AbortCopyBlob", "LeaseBlob", "UndeleteBlob"}
"""Writes that a lease does not reject, or that are the lease's own."""


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


async def lease(world: World, type_: str) -> None:
    """Make the source of copies, and a blob that has the lease A."""
    await world.ask("PUT", "docs/source", body=bytes(512), x_ms_blob_type="BlockBlob")
    size = {"x_ms_blob_content_length": "1024"} if type_ == "PageBlob" else {}
    assert (await world.ask("PUT", PATH, "", b"", VERSION, x_ms_blob_type=type_, **size)).status == 201
    acquired = {"x_ms_lease_action": "acquire", "x_ms_lease_duration": "-1", "x_ms_proposed_lease_id": A}
    assert (await world.ask("PUT", PATH, "comp=lease", b"", VERSION, **acquired)).status == 201


def test_each_write_of_a_blob_is_here() -> None:
    """A new one must say what a lease does to it."""
    writes = {
        route.operation
        for route in routes.ROUTES.rows
        if route.kind is Kind.BLOB and route.method in ("PUT", "DELETE") and route.operation not in UNBUILT
    }
    assert {write.operation for write in WRITES.values()} == writes - WITHOUT


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_needs_the_id_of_the_lease(world: World, name: str) -> None:
    write = WRITES[name]
    await lease(world, write.type)
    before = (await world.ask("HEAD")).headers
    for given, code in (("", "LeaseIdMissing"), (B, "LeaseIdMismatchWithBlobOperation")):
        if given or write.needs_id:
            answer = await write.send(world, given)
            assert (answer.status, answer.code) == (412, code)
            after = (await world.ask("HEAD")).headers
            assert [after[each] for each in ("etag", "x-ms-lease-state")] == [before["etag"], "leased"]
    answer = await write.send(world, A)
    assert answer.status in (200, 201, 202, 204), answer
    if write.operation != "DeleteBlob":
        assert (await world.ask("HEAD")).headers["x-ms-lease-state"] == "leased"


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_with_the_id_of_a_lease_that_is_not_there_is_rejected(world: World, name: str) -> None:
    write = WRITES[name]
    await lease(world, write.type)
    await world.ask("PUT", query="comp=lease", x_ms_lease_action="release", x_ms_lease_id=A)
    answer = await write.send(world, A)
    assert (answer.status, answer.code) == (412, "LeaseNotPresentWithBlobOperation")
