"""Snapshots, soft delete, versions: what is kept, for how long, and that nothing is left of what goes."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.switches import Switches
from lazulite.blob.model.blob import Blob
from lazulite.blob.model.rows import CURRENT
from tests.blob.world import ACCOUNT, VERSION, World, opened

LARGE = bytes(20_000)
TYPE = {"x_ms_blob_type": "BlockBlob"}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


async def put(world: World, data: bytes) -> str:
    answer = await world.ask("PUT", "docs/blob", "", data, VERSION, **TYPE)
    assert answer.status == 201, answer
    return answer.headers.get("x-ms-version-id", "")


async def snapshot(world: World, **headers: str) -> str:
    answer = await world.ask("PUT", "docs/blob", "comp=snapshot", b"", VERSION, **headers)
    assert answer.status == 201, answer
    return f"snapshot={quote(answer.headers['x-ms-snapshot'])}"


async def get(world: World, query: str = "") -> bytes:
    answer = await world.ask("GET", "docs/blob", query)
    return answer.body if answer.status == 200 else str(answer.status).encode()


async def soft_delete(world: World, days: int = 3, permanent: str = "false") -> None:
    body = (
        f"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days>"
        f"<AllowPermanentDelete>{permanent}</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>"
    )
    answer = await world.ask("PUT", "", "restype=service&comp=properties", body.encode())
    assert answer.status == 202, answer


def keep_versions(world: World) -> None:
    account = world.directory.get(ACCOUNT)
    assert account is not None
    world.directory = AccountDirectory({ACCOUNT: Account(ACCOUNT, account.keys, switches=Switches(versioning=True))})
    world.restart()


async def test_a_blob_with_snapshots_is_deleted_with_them_or_not(world: World) -> None:
    await put(world, LARGE)
    first = await snapshot(world)
    answer = await world.ask("DELETE")
    assert (answer.status, answer.code) == (409, "SnapshotsPresent")
    assert (await world.ask("DELETE", x_ms_delete_snapshots="only")).status == 202
    assert (await get(world), await get(world, first)) == (LARGE, b"404")
    await snapshot(world)
    assert (await world.ask("DELETE", "docs/blob", await snapshot(world))).status == 202
    assert (await world.ask("DELETE", x_ms_delete_snapshots="include")).status == 202
    assert (await world.rows(), await world.kept()) == ([], set())


async def test_what_was_deleted_comes_back_until_its_days_are_over(world: World) -> None:
    await soft_delete(world)
    await put(world, LARGE)
    query = await snapshot(world)
    deleted = await world.ask("DELETE", x_ms_delete_snapshots="include")
    assert deleted.headers["x-ms-delete-type-permanent"] == "false"
    assert (await get(world), await get(world, query)) == (b"404", b"404")
    assert (await world.ask("PUT", query="comp=metadata")).code == "BlobNotFound"
    assert (await world.ask("PUT", query="comp=undelete")).status == 200
    assert (await get(world), await get(world, query)) == (LARGE, LARGE)
    await world.ask("DELETE", x_ms_delete_snapshots="include")
    world.days = 2
    await world.context.maintain()
    assert len(await world.kept()) == 1
    world.days = 5
    await world.context.maintain()
    assert (await world.rows(), await world.kept()) == ([], set())
    assert (await world.ask("PUT", query="comp=undelete")).code == "BlobNotFound"


async def test_an_overwritten_blob_is_kept_as_a_deleted_snapshot(world: World) -> None:
    await soft_delete(world)
    await put(world, LARGE)
    await put(world, b"new")
    assert (await world.ask("DELETE")).status == 202, "a deleted snapshot is none"
    await put(world, b"newer")
    assert await get(world) == b"newer"
    assert (await world.ask("PUT", query="comp=undelete")).status == 200
    assert sorted(row[0] for row in await world.rows()) == ["a", "b", "s", "s"]
    assert (await world.ask("DELETE")).code == "SnapshotsPresent"


async def test_each_write_keeps_the_version_before(world: World) -> None:
    await put(world, b"before versions")
    keep_versions(world)
    first, second = await put(world, LARGE + b"1"), await put(world, LARGE + b"2")
    changed = await world.ask("PUT", "docs/blob", "comp=metadata", b"", VERSION, x_ms_meta_a="b")
    third = changed.headers["x-ms-version-id"]
    versions = [f"versionid={quote(version)}" for version in (first, second, third)]
    assert [await get(world, query) for query in versions[:2]] == [LARGE + b"1", LARGE + b"2"]
    current = await world.ask("HEAD")
    assert (current.headers["x-ms-version-id"], current.headers["x-ms-is-current-version"]) == (third, "true")
    past = await world.ask("HEAD", "docs/blob", versions[0])
    assert not {"x-ms-is-current-version", "x-ms-lease-state"} & past.headers.keys()
    rejected = await world.ask("DELETE", "docs/blob", versions[2])
    assert (rejected.status, rejected.code) == (403, "OperationNotAllowedOnRootBlob")
    assert (await world.ask("DELETE")).status == 202
    assert (await get(world), await get(world, versions[2])) == (b"404", LARGE + b"2")
    for query in versions:
        assert (await world.ask("DELETE", "docs/blob", query)).status == 202
    assert [row[0] for row in await world.rows()] == ["v"], "the state before versions were kept has an id, too"
    assert await world.kept() == set()


async def test_a_snapshot_makes_a_version(world: World) -> None:
    keep_versions(world)
    first = await put(world, LARGE)
    answer = await world.ask("PUT", query="comp=snapshot")
    assert answer.headers["x-ms-version-id"] > first
    assert await get(world, f"versionid={quote(first)}") == LARGE


async def test_a_version_is_found_while_it_is_overwritten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current version becomes a past one between the read of its row and that of the current blob."""
    keep_versions(world)
    await put(world, b"1")
    id_ = (await world.ask("HEAD")).headers["x-ms-version-id"]
    partitions = world.context.partitions
    rows: list[str] = []
    read = partitions.get

    async def get(space: int, name: str, row: str = CURRENT) -> Blob | None:
        rows.append(row)
        if len(rows) == 2:
            await put(world, b"2")
        return await read(space, name, row)

    monkeypatch.setattr(partitions, "get", get)
    answer = await world.ask("GET", query=f"versionid={quote(id_)}")
    assert (answer.body, answer.headers.get("x-ms-is-current-version")) == (b"1", None)
    assert rows.count(rows[0]) == 2
