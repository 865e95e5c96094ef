"""Blobs of `$logs` in a store: names, processes that race, age. Source: reference §18.1."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lazulite.analytics.log_container import TICKS_PER_HOUR, LogContainer, folder_of
from lazulite.app.analytics import delete_expired
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.blob.requests.call import Context, make_context
from lazulite.engine.content.memory import ContentMemory, MemoryWriter
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.service.definition import ServiceDependencies
from lazulite.service.properties import Logging, PropertiesStore, PropertiesUpdate, RetentionPolicy
from tests.fuzz.memory import MemoryEngine

HOUR = 3_750_000
NOW = HOUR * TICKS_PER_HOUR
FOLDER = folder_of("table", HOUR)
METADATA = (("LogType", "read"),)


def dependencies_of(engine: Engine, contents: ContentMemory) -> ServiceDependencies:
    """Return what a process has; several may share an engine and contents."""
    return ServiceDependencies(engine=engine, accounts=AccountDirectory({}), contents=contents, clock=lambda: NOW)


@asynccontextmanager
async def processes(count: int = 1) -> AsyncIterator[list[Context]]:
    """Yield the Blob service's contexts of several processes on one store."""
    engine, contents = MemoryEngine(lambda: NOW), ContentMemory()
    contexts = [make_context(dependencies_of(engine, contents)) for _ in range(count)]
    yield contexts
    for context in contexts:
        await context.garbage.wait_until_idle()
    await engine.close()


async def names_of(context: Context, account: str = "acct") -> list[str]:
    """Return the names of the blobs of `$logs`."""
    container = LogContainer(context)
    found = await container.require(account)
    return sorted(await container._names(found, "", "~", None))


def test_folders() -> None:
    assert FOLDER == "table/2028/10/19/0000/"
    assert folder_of("blob", HOUR + 23) == "blob/2028/10/19/2300/"


async def test_numbers_count_from_zero_in_each_hour_and_service() -> None:
    async with processes() as (context,):
        container = LogContainer(context)
        names = [await container.put("acct", folder, b"x\n", METADATA) for folder in (FOLDER, FOLDER, "blob/h/")]
        assert names == [f"{FOLDER}000000.log", f"{FOLDER}000001.log", "blob/h/000000.log"]
        assert await container.put("other", FOLDER, b"x\n", METADATA) == f"{FOLDER}000000.log"


async def test_a_later_process_goes_on_behind_the_last_blob_and_fills_no_gap() -> None:
    async with processes(2) as (first, second):
        container = LogContainer(first)
        for _ in range(4):
            await container.put("acct", FOLDER, b"x\n", METADATA)
        found = await container.require("acct")
        from lazulite.analytics.log_container import _delete  # noqa: PLC0415

        for number in (1, 2):
            await first.changes.commit((found.space, f"{FOLDER}00000{number}.log"), _delete)
        assert await LogContainer(second).put("acct", FOLDER, b"x\n", METADATA) == f"{FOLDER}000004.log"


@pytest.mark.parametrize("size", [10, 100_000])
async def test_processes_that_race_never_use_one_name_twice(size: int) -> None:
    async with processes(4) as contexts:
        containers = [LogContainer(context) for context in contexts]

        async def publish(number: int) -> list[str]:
            content = f"{number}".encode() * size
            return [await containers[number].put("acct", FOLDER, content, METADATA) for _ in range(10)]

        names = [name for each in await asyncio.gather(*map(publish, range(4))) for name in each]
        assert sorted(names) == [f"{FOLDER}{number:06d}.log" for number in range(40)]
        assert await names_of(contexts[0]) == sorted(names)


async def test_a_name_that_was_taken_between_look_and_commit_is_left_alone() -> None:
    async with processes(2) as (context, other):
        container, rival = LogContainer(context), LogContainer(other)
        await container.require("acct")
        located = context.partitions.get

        async def overtaken(space: int, name: str, row: str = "b") -> object:
            found = await located(space, name, row)
            if name.endswith("0.log") and found is None:
                await rival.put("acct", FOLDER, b"rival\n", METADATA)
            return found

        context.partitions.get = overtaken  # type: ignore[method-assign,assignment]  # the rival comes in between
        assert await container.put("acct", FOLDER, b"x" * 50_000, METADATA) == f"{FOLDER}000001.log"
        found = await container.require("acct")
        blob = await other.partitions.get(found.space, f"{FOLDER}000000.log")
        assert blob is not None
        assert blob.inline == b"rival\n"
        assert isinstance(context.contents, ContentMemory)
        assert len(context.contents._contents) == 1, "the content that has no name is deleted"


async def test_a_blob_has_type_metadata_and_all_bytes() -> None:
    async with processes() as (context,):
        container = LogContainer(context)
        name = await container.put("acct", FOLDER, b"y" * 700_000, METADATA)
        found = await container.require("acct")
        blob = await context.partitions.get(found.space, name)
        assert blob is not None
        assert (blob.length, blob.metadata, blob.headers.type) == (700_000, METADATA, "application/octet-stream")
        assert found.public_access == ""


async def test_what_a_failed_write_has_stored_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    discarded: list[MemoryWriter] = []

    async def fail(*_: object) -> None:
        raise EngineUnavailableError("disk full")

    async def discard(writer: MemoryWriter) -> None:
        discarded.append(writer)

    async with processes() as (context,):
        container = LogContainer(context)
        await container.require("acct")
        monkeypatch.setattr(MemoryWriter, "write", fail)
        monkeypatch.setattr(MemoryWriter, "discard", discard)
        with pytest.raises(EngineUnavailableError):
            await container.put("acct", FOLDER, b"y" * 700_000, METADATA)
        assert len(discarded) == 1
        assert await names_of(context) == []


async def test_retention_deletes_what_is_older_and_goes_on_when_logging_is_off() -> None:
    engine, contents = MemoryEngine(lambda: NOW), ContentMemory()
    dependencies = dependencies_of(engine, contents)
    context = make_context(dependencies)
    container = LogContainer(context)
    for hour in (HOUR - 49, HOUR - 48, HOUR - 47, HOUR):
        await container.put("acct", folder_of("table", hour), b"z" * 20_000, METADATA)
        await container.put("acct", folder_of("blob", hour), b"z\n", METADATA)
    policy = Logging(retention=RetentionPolicy(enabled=True, days=2))
    await PropertiesStore(engine, "table").update("acct", PropertiesUpdate(logging=policy))
    assert await delete_expired(["acct", "nobody"], container, dependencies) == 1
    kept = [name for name in await names_of(context) if name.startswith("table/")]
    assert kept == [f"{folder_of('table', hour)}000000.log" for hour in (HOUR - 48, HOUR - 47, HOUR)]
    assert len(await names_of(context)) == 7
    await context.garbage.wait_until_idle()
    await engine.close()
