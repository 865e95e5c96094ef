"""Deleted containers: gone at once, kept for their days if the account says so, and restored under any free name."""

import re
from collections.abc import AsyncIterator

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.switches import Switches
from tests.blob.world import ACCOUNT, VERSION, World, opened

LARGE = bytes(20_000)
RESTORE = "restype=container&comp=undelete"
_VERSION = re.compile(rb"<Name>docs</Name><Deleted>true</Deleted><Version>([0-9A-F]{16})</Version>")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        await world.ask("PUT", "docs/blob", "", LARGE, VERSION, x_ms_blob_type="BlockBlob")
        yield world


def keep(world: World, days: int) -> None:
    account = world.directory.get(ACCOUNT)
    assert account is not None
    switches = Switches(container_retention_days=days)
    world.directory = AccountDirectory({ACCOUNT: Account(ACCOUNT, account.keys, switches=switches)})
    world.restart()


async def delete(world: World) -> str:
    """Delete the container; return the name of the deleted one."""
    assert (await world.ask("DELETE", "docs", "restype=container")).status == 202
    listed = await world.ask("GET", "", "comp=list&include=deleted")
    found = _VERSION.search(listed.body)
    return "" if found is None else found[1].decode()


async def restore(world: World, version: str, target: str = "docs") -> tuple[int, str]:
    headers = {"x_ms_deleted_container_name": "docs", "x_ms_deleted_container_version": version}
    answer = await world.ask("PUT", target, RESTORE, b"", VERSION, **headers)
    return answer.status, answer.code


async def test_a_deleted_container_leaves_nothing(world: World) -> None:
    assert await delete(world) == ""
    assert (await world.ask("GET", "docs/blob")).code == "ContainerNotFound"
    assert await world.kept() == set()
    assert (await world.ask("PUT", "docs", "restype=container")).status == 201
    assert (await world.ask("GET", "docs/blob")).code == "BlobNotFound"


async def test_a_kept_container_is_restored_with_its_blobs(world: World) -> None:
    keep(world, 3)
    version = await delete(world)
    assert (await world.ask("GET", "docs/blob")).code == "ContainerNotFound"
    assert b"<Name>docs</Name>" not in (await world.ask("GET", "", "comp=list")).body
    assert await restore(world, version) == (201, "")
    assert (await world.ask("GET", "docs/blob")).body == LARGE
    assert await restore(world, version) == (404, "ContainerNotFound"), "it is deleted no more"


async def test_a_name_that_is_taken_is_not_replaced(world: World) -> None:
    keep(world, 3)
    version = await delete(world)
    assert (await world.ask("PUT", "docs", "restype=container")).status == 201
    assert await restore(world, version) == (409, "ContainerAlreadyExists")
    assert await restore(world, version, "other") == (201, "")
    assert (await world.ask("GET", "other/blob")).body == LARGE
    assert (await world.ask("GET", "docs/blob")).code == "BlobNotFound"


async def test_a_kept_container_goes_after_its_days(world: World) -> None:
    keep(world, 3)
    version = await delete(world)
    world.days = 2
    await world.context.maintain()
    assert len(await world.kept()) == 1
    world.days = 4
    await world.context.maintain()
    assert await world.kept() == set()
    assert await restore(world, version) == (404, "ContainerNotFound")


async def test_no_deleted_container_can_be_named(world: World) -> None:
    keep(world, 3)
    version = await delete(world)
    for name in (f"~docs/{version}", f"~docs%2F{version}"):
        assert (await world.ask("GET", name, "restype=container")).status == 400
