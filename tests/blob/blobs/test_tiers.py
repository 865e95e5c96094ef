"""Rehydration by time: a blob leaves Archive when its account's seconds have passed, whatever happens meanwhile."""

from collections.abc import AsyncIterator

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.switches import Switches
from lazulite.protocol.clock import TICKS_PER_DAY, format_http_date, system_clock
from tests.blob.world import ACCOUNT, VERSION, World, opened, token

DAY = 24 * 3600
DATA = bytes(20_000)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        keep(world, DAY)
        await world.ask("PUT", "docs/blob", "", DATA, x_ms_blob_type="BlockBlob", x_ms_access_tier="Archive")
        yield world


def keep(world: World, seconds: int, *, versioning: bool = False) -> None:
    """Let blobs of the account leave Archive after some seconds."""
    account = world.directory.get(ACCOUNT)
    assert account is not None
    switches = Switches(versioning=versioning, rehydrate_after=seconds)
    world.directory = AccountDirectory({ACCOUNT: Account(ACCOUNT, account.keys, switches=switches)})
    world.restart()


async def set_tier(world: World, tier: str, query: str = "") -> tuple[int, str]:
    answer = await world.ask("PUT", "docs/blob", f"comp=tier{query}", x_ms_access_tier=tier)
    return answer.status, answer.code


async def facts(world: World, path: str = "docs/blob", query: str = "") -> tuple[str | None, str | None]:
    headers = (await world.ask("HEAD", path, query)).headers
    return headers.get("x-ms-access-tier"), headers.get("x-ms-archive-status")


PENDING, HOT = ("Archive", "rehydrate-pending-to-hot"), ("Hot", None)


async def test_a_blob_is_back_when_the_time_has_passed(world: World) -> None:
    assert await set_tier(world, "Hot") == (202, "")
    assert await facts(world) == PENDING
    assert (await world.ask("GET")).code == "BlobBeingRehydrated"
    world.days = 1
    assert await facts(world) == HOT
    assert (await world.ask("GET")).body == DATA
    assert b"<AccessTier>Hot</AccessTier>" in (await world.ask("GET", "docs", "restype=container&comp=list")).body
    assert await set_tier(world, "Cool") == (200, "")


async def test_the_change_is_dated_to_the_end(world: World) -> None:
    moment = system_clock()
    world.days = 0
    world.present = lambda: moment + world.days * TICKS_PER_DAY
    world.restart()
    await set_tier(world, "Hot")
    world.days = 3
    changed = (await world.ask("HEAD")).headers["x-ms-access-tier-change-time"]
    assert changed == format_http_date(moment + TICKS_PER_DAY)


async def test_it_is_by_the_time_of_a_database(world: World) -> None:
    moment = system_clock()
    world.present = lambda: moment
    world.restart()
    await set_tier(world, "Hot")
    world.days = 2
    assert await facts(world) == PENDING
    moment += TICKS_PER_DAY
    assert await facts(world) == HOT


async def test_a_restart_and_another_setting_change_nothing(world: World) -> None:
    await set_tier(world, "Hot")
    world.restart()
    keep(world, 0)
    assert await facts(world) == PENDING
    assert await set_tier(world, "Cool") == (409, "BlobBeingRehydrated")
    world.days = 1
    assert await facts(world) == HOT


async def test_a_higher_priority_does_not_begin_again(world: World) -> None:
    await set_tier(world, "Hot")
    world.days = 1
    await set_tier(world, "Hot")
    assert await facts(world) == HOT


async def test_a_write_after_the_end_keeps_the_tier(world: World) -> None:
    await set_tier(world, "Cool")
    world.days = 1
    assert (await world.ask("PUT", "docs/blob", "comp=metadata", x_ms_meta_a="1")).status == 200
    assert await facts(world) == ("Cool", None)


async def test_a_copy_is_back_like_its_source(world: World) -> None:
    headers = {"host": "h", "x_ms_copy_source": f"http://h/{ACCOUNT}/docs/blob?{token()}", "x_ms_access_tier": "Hot"}
    assert (await world.ask("PUT", "docs/copy", "", b"", VERSION, **headers)).status == 202
    assert await facts(world, "docs/copy") == PENDING
    world.days = 1
    assert await facts(world, "docs/copy") == HOT
    assert (await world.ask("GET", "docs/copy")).body == DATA
    assert await facts(world) == ("Archive", None)


async def test_versions_rehydrate_on_their_own(world: World) -> None:
    keep(world, DAY, versioning=True)
    put = {"x_ms_blob_type": "BlockBlob", "x_ms_access_tier": "Archive"}
    version = (await world.ask("PUT", "docs/blob", "", DATA, VERSION, **put)).headers["x-ms-version-id"]
    await set_tier(world, "Hot")
    await world.ask("PUT", "docs/blob", "", b"new", x_ms_blob_type="BlockBlob")
    assert await facts(world) == HOT
    assert await facts(world, query=f"versionid={version}") == PENDING
    world.days = 1
    assert await facts(world, query=f"versionid={version}") == HOT
    assert (await world.ask("GET", query=f"versionid={version}")).body == DATA
