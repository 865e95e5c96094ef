"""What was deleted stays for its days, to the tick, and goes soon after them, whatever else of the blob goes before."""

from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import quote

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.switches import Switches
from lazulite.protocol.clock import TICKS_PER_DAY, TICKS_PER_SECOND
from tests.blob.world import ACCOUNT, VERSION, World, opened

DAYS = 3
HOUR = 3600 * TICKS_PER_SECOND
NOON = 155_000 * TICKS_PER_DAY + 12 * HOUR
TYPE = {"x_ms_blob_type": "BlockBlob"}
KEEP = (
    f"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>{DAYS}</Days>"
    "</DeleteRetentionPolicy></StorageServiceProperties>"
)


class Clocked:
    """A service with a clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOON
        self.world: World

    async def put(self, data: bytes) -> str:
        answer = await self.world.ask("PUT", "docs/blob", "", data, VERSION, **TYPE)
        assert answer.status == 201, answer
        return answer.headers.get("x-ms-version-id", "")

    async def delete_a_snapshot(self, data: bytes) -> None:
        """Take a snapshot that has these bytes, and delete it."""
        await self.put(data)
        taken = await self.world.ask("PUT", "docs/blob", "comp=snapshot")
        snapshot = f"snapshot={quote(taken.headers['x-ms-snapshot'])}"
        assert (await self.world.ask("DELETE", "docs/blob", snapshot)).status == 202

    async def overwrite(self, data: bytes) -> None:
        """Put a blob that has these bytes, and another one in its place."""
        await self.put(data)
        await self.put(b"current")

    async def delete_a_version(self, data: bytes) -> None:
        """Make a version that has these bytes the past one, and delete it."""
        version = await self.put(data)
        self.now += 1
        await self.put(b"current")
        assert (await self.world.ask("DELETE", "docs/blob", f"versionid={quote(version)}")).status == 202

    async def delete(self, data: bytes) -> None:
        """Put a blob that has these bytes, and delete it with all that it has."""
        await self.put(data)
        answer = await self.world.ask("DELETE", "docs/blob", x_ms_delete_snapshots="include")
        assert answer.status == 202, answer

    async def deleted(self) -> int:
        """Return how many states are deleted, and kept."""
        query = "restype=container&comp=list&include=deleted,snapshots,versions"
        listed = await self.world.ask("GET", "docs", query)
        assert listed.status == 200, listed
        return listed.body.count(b"<Deleted>true</Deleted>")


Delete = Callable[[Clocked, bytes], Awaitable[None]]
"""Keeps a state of the blob as a deleted one, given its bytes."""


@pytest.fixture
async def clocked() -> AsyncIterator[Clocked]:
    clocked = Clocked()
    async with opened(lambda: clocked.now) as clocked.world:
        answer = await clocked.world.ask("PUT", "", "restype=service&comp=properties", KEEP.encode())
        assert answer.status == 202, answer
        yield clocked


def keep_versions(world: World) -> None:
    account = world.directory.get(ACCOUNT)
    assert account is not None
    world.directory = AccountDirectory({ACCOUNT: Account(ACCOUNT, account.keys, switches=Switches(versioning=True))})
    world.restart()


@pytest.mark.parametrize("delete", [Clocked.delete_a_snapshot, Clocked.overwrite, Clocked.delete_a_version])
async def test_each_state_is_kept_for_its_own_days(clocked: Clocked, delete: Delete) -> None:
    """One state is deleted a day, so that each day's removal meets others that have days left."""
    if delete is Clocked.delete_a_version:
        keep_versions(clocked.world)
    expiries: list[int] = []
    await clocked.put(b"current")
    for step in range(8 * 4):
        if step % 4 == 0 and step < 4 * 4:
            before = await clocked.deleted()
            await delete(clocked, b"%d" % step)
            expiries += [clocked.now + DAYS * TICKS_PER_DAY] * (await clocked.deleted() - before)
        await clocked.world.context.maintain()
        at_most = sum(clocked.now < (expiry // TICKS_PER_DAY + 1) * TICKS_PER_DAY for expiry in expiries)
        assert sum(clocked.now < expiry for expiry in expiries) <= await clocked.deleted() <= at_most
        clocked.now += 6 * HOUR
    assert expiries
    assert await clocked.deleted() == 0


@pytest.mark.parametrize("early", [1, TICKS_PER_DAY - 1])
async def test_a_blob_that_has_days_left_survives_the_removal_of_what_was_deleted_before(
    clocked: Clocked, early: int
) -> None:
    await clocked.delete_a_snapshot(b"first")
    clocked.now += TICKS_PER_DAY + HOUR
    await clocked.delete(b"second")
    expiry = clocked.now + DAYS * TICKS_PER_DAY
    clocked.now = expiry - early
    await clocked.world.context.maintain()
    assert (await clocked.world.ask("PUT", "docs/blob", "comp=undelete")).status == 200
    assert (await clocked.world.ask("GET", "docs/blob")).body == b"second"


async def test_a_container_is_kept_for_its_days_to_the_tick(clocked: Clocked) -> None:
    world = clocked.world
    account = world.directory.get(ACCOUNT)
    assert account is not None
    switches = Switches(container_retention_days=DAYS)
    world.directory = AccountDirectory({ACCOUNT: Account(ACCOUNT, account.keys, switches=switches)})
    world.restart()
    assert (await world.ask("DELETE", "docs", "restype=container")).status == 202
    for moment, kept in ((DAYS * TICKS_PER_DAY - 1, True), (DAYS * TICKS_PER_DAY, False)):
        clocked.now = NOON + moment
        await world.context.maintain()
        listed = await world.ask("GET", "", "comp=list&include=deleted")
        assert (b"<Name>docs</Name>" in listed.body) is kept
