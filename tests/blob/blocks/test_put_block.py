"""Put Block and Get Block List: ids, limits, leases, types, and what becomes of uploads that are given up."""

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import pytest

from lazulite.blob.limits import UNCOMMITTED_BLOCKS_MAX
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.ledger import PENDING_DAYS, UPLOAD_DAYS
from tests.blob.world import ACCOUNT, CONTAINER, World, opened

LIST = "comp=blocklist&blocklisttype=all"
LARGE = bytes(20_000)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


@pytest.mark.parametrize(
    ("query", "body", "code"),
    [
        ("comp=block", b"a", "MissingRequiredQueryParameter"),
        ("comp=block&blockid=%25", b"a", "InvalidQueryParameterValue"),
        ("comp=block&blockid=QQ", b"a", "InvalidQueryParameterValue"),
        (f"comp=block&blockid={'QUFB' * 22}", b"a", "InvalidQueryParameterValue"),
        ("comp=block&blockid=QQ==", b"", "InvalidHeaderValue"),
    ],
)
async def test_blocks_that_cannot_be(world: World, query: str, body: bytes, code: str) -> None:
    assert (await world.ask("PUT", query=query, body=body)).code == code


async def test_ids_of_an_upload_have_one_length(world: World) -> None:
    await world.put_block("one", b"1")
    assert (await world.put_block("three", b"2")).code == "InvalidBlobOrBlock"
    assert (await world.put_list(("Latest", "one"))).status == 201
    assert (await world.put_block("three", b"2")).status == 201


async def test_no_block_is_longer_than_its_version_allows(world: World) -> None:
    answer = await world.put_block("a", bytes(4 * 1024 * 1024 + 1), version="2015-12-11")
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
    assert b"<MaxLimit>4194304</MaxLimit>" in answer.body
    assert (await world.put_block("a", bytes(4 * 1024 * 1024 + 1), version="2016-05-31")).status == 201


async def test_an_upload_has_at_most_100_000_blocks(world: World) -> None:
    await world.put_block("a", b"1")
    await change(world, lambda draft: set_blocks(draft, UNCOMMITTED_BLOCKS_MAX - 1))
    assert (await world.put_block("b", b"1")).status == 201
    full = await world.put_block("c", b"1")
    assert (full.status, full.code) == (409, "BlockCountExceedsLimit")
    assert (await world.put_block("b", b"2")).status == 201, "it takes the place of another"


@pytest.mark.parametrize("type_", ["AppendBlob", "PageBlob"])
async def test_blobs_of_other_types_have_no_such_blocks(world: World, type_: str) -> None:
    await world.ask("PUT", x_ms_blob_type=type_, x_ms_blob_content_length="0")
    for answer in (await world.put_block("a", b"1"), await world.put_list(), await world.ask("GET", query=LIST)):
        assert (answer.status, answer.code) == (409, "InvalidBlobType")


async def test_a_block_leaves_the_blob_as_it_is(world: World) -> None:
    await world.ask("PUT", body=b"x", x_ms_blob_type="BlockBlob")
    before = await world.ask("HEAD")
    await world.put_block("a", b"1")
    after = await world.ask("HEAD")
    for name in ("etag", "last-modified"):
        assert after.headers[name] == before.headers[name]
    assert (await world.ask("GET")).body == b"x"


async def test_a_lease_guards_the_upload(world: World) -> None:
    lease = str(uuid4())
    assert (await world.put_block("a", b"1", x_ms_lease_id=lease)).code == "LeaseNotPresentWithBlobOperation"
    await world.ask("PUT", body=b"x", x_ms_blob_type="BlockBlob")
    acquired = await world.ask(
        "PUT",
        query="comp=lease",
        x_ms_lease_action="acquire",
        x_ms_lease_duration="-1",
        x_ms_proposed_lease_id=lease,
    )
    assert acquired.status == 201
    assert (await world.put_block("a", b"1")).code == "LeaseIdMissing"
    assert (await world.put_block("a", b"1", x_ms_lease_id=str(uuid4()))).code == "LeaseIdMismatchWithBlobOperation"
    assert (await world.put_block("a", b"1", x_ms_lease_id=lease)).status == 201
    assert (await world.put_list(("Latest", "a"))).code == "LeaseIdMissing"
    assert (await world.put_list(("Latest", "a"), x_ms_lease_id=lease)).status == 201
    assert (await world.ask("HEAD")).headers["x-ms-lease-state"] == "leased"


async def test_a_list_of_blocks_tells_of_the_blob_only_if_there_is_one(world: World) -> None:
    assert (await world.ask("GET", query="comp=blocklist")).code == "BlobNotFound"
    await world.put_block("a", b"1")
    answer = await world.ask("GET", query="comp=blocklist")
    assert answer.status == 200
    assert not {"etag", "last-modified", "x-ms-blob-content-length"} & answer.headers.keys()
    assert answer.body.endswith(b"<BlockList><CommittedBlocks /></BlockList>")
    await world.put_list(("Latest", "a"), ("Latest", "a"))
    answer = await world.ask("GET", query="comp=blocklist&blocklisttype=uncommitted")
    assert {"etag", "last-modified"} <= answer.headers.keys()
    assert answer.headers["x-ms-blob-content-length"] == "2"
    assert answer.body.endswith(b"<BlockList><UncommittedBlocks /></BlockList>")
    assert (await world.ask("GET", query="comp=blocklist&blocklisttype=most")).code == "InvalidQueryParameterValue"


async def test_a_snapshot_has_its_own_list_and_no_upload(world: World) -> None:
    await world.put_block("a", LARGE)
    await world.put_list(("Latest", "a"))
    taken = await world.ask("PUT", query="comp=snapshot")
    await world.put_block("b", b"1")
    await world.put_list(("Latest", "b"))
    await world.put_block("c", b"1")
    answer = await world.ask("GET", query=f"{LIST}&snapshot={taken.headers['x-ms-snapshot']}")
    assert b"<Size>20000</Size>" in answer.body
    assert answer.body.endswith(b"<UncommittedBlocks /></BlockList>")
    read = await world.ask("GET", query=f"snapshot={taken.headers['x-ms-snapshot']}")
    assert read.body == LARGE, "the collector keeps it"


async def test_an_upload_is_kept_for_a_week_after_its_last_block(world: World) -> None:
    await world.put_block("a", LARGE)
    world.days += UPLOAD_DAYS
    await world.put_block("b", LARGE)
    world.days += UPLOAD_DAYS
    await world.context.maintain()
    assert (await world.ask("GET", query=LIST)).status == 200
    world.days += 1
    await world.context.maintain()
    assert (await world.ask("GET", query=LIST)).code == "BlobNotFound"
    assert await world.rows() == []
    assert not await world.kept()
    assert [each async for each in world.context.uploads.due(10**6)] == []


async def test_a_blob_outlives_its_upload(world: World) -> None:
    await world.ask("PUT", body=b"x", x_ms_blob_type="BlockBlob")
    await world.put_block("a", LARGE)
    world.days += UPLOAD_DAYS + 1
    await world.context.maintain()
    assert (await world.ask("GET")).body == b"x"
    assert await world.rows() == ["b"]


async def test_uploads_of_deleted_containers_are_forgotten(world: World) -> None:
    await world.put_block("a", b"1")
    await world.ask("DELETE", CONTAINER, "restype=container")
    world.days += UPLOAD_DAYS + 1
    await world.context.maintain()
    assert [each async for each in world.context.uploads.due(10**6)] == []


async def test_a_list_that_was_never_finished_is_deleted(world: World) -> None:
    await world.put_block("a", b"1")
    today = (world.context.clock()) // (86_400 * 10**7)
    await change(world, lambda draft: begin_list(draft, today))
    world.days += PENDING_DAYS
    await world.context.uploads.look_on(today, (await space(world), "blob"))
    await world.context.maintain()
    assert len(await world.rows()) == 3
    world.days += 1
    await world.context.uploads.look_on(today, (await space(world), "blob"))
    await world.context.maintain()
    assert len(await world.rows()) == 2, "the ledger and the block"


def set_blocks(draft: Draft, blocks: int) -> None:
    draft.ledger = replace(draft.ledger, uncommitted=draft.ledger.uncommitted._replace(blocks=blocks))


def begin_list(draft: Draft, day: int) -> None:
    draft.put("x0000000000000007/0000000000000001", b'[0,["a",1,null]]\na')
    draft.ledger = draft.ledger.begin_list("x7", day)


async def space(world: World) -> int:
    return (await world.context.catalog.require(ACCOUNT, CONTAINER)).space


async def change(world: World, decide) -> None:  # type: ignore[no-untyped-def]  # as `Decide`
    await world.context.changes.commit((await space(world), "blob"), decide)
