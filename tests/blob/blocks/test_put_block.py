"""The number of uncommitted blocks, and what becomes of uploads and lists that are given up."""

from collections.abc import AsyncIterator

import pytest

from lazulite.blob.limits import UNCOMMITTED_BLOCKS_MAX
from lazulite.blob.model.ledger import PENDING_DAYS, UPLOAD_DAYS
from lazulite.blob.model.transaction import Transaction
from tests.blob.world import ACCOUNT, CONTAINER, World, opened

LIST = "comp=blocklist&blocklisttype=all"
LARGE = bytes(20_000)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


async def test_an_upload_has_at_most_100_000_blocks(world: World) -> None:
    await world.put_block("a", b"1")
    await change(world, lambda transaction: set_blocks(transaction, UNCOMMITTED_BLOCKS_MAX - 1))
    assert (await world.put_block("b", b"1")).status == 201
    full = await world.put_block("c", b"1")
    assert (full.status, full.code) == (409, "BlockCountExceedsLimit")
    assert (await world.put_block("b", b"2")).status == 201, "it takes the place of another"


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
    await change(world, lambda transaction: begin_list(transaction, today))
    world.days += PENDING_DAYS
    await world.context.uploads.schedule(today, (await space(world), "blob"))
    await world.context.maintain()
    assert len(await world.rows()) == 3
    world.days += 1
    await world.context.uploads.schedule(today, (await space(world), "blob"))
    await world.context.maintain()
    assert len(await world.rows()) == 2, "the ledger and the block"


def set_blocks(transaction: Transaction, blocks: int) -> None:
    transaction.ledger = transaction.ledger._replace(uncommitted=transaction.ledger.uncommitted._replace(blocks=blocks))


def begin_list(transaction: Transaction, day: int) -> None:
    transaction.put("x0000000000000007/0000000000000001", b'[0,["a",1,null]]\na')
    transaction.ledger = transaction.ledger.begin_list("x7", day)


async def space(world: World) -> int:
    return (await world.context.catalog.require(ACCOUNT, CONTAINER)).space


async def change(world: World, decide) -> None:  # type: ignore[no-untyped-def]  # as `Decide`
    await world.context.changes.commit((await space(world), "blob"), decide)
