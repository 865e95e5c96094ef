"""Several processes on one directory of contents: each writes, reads and deletes, and one may be killed."""

import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lazulite.engine.content.contract import WINDOW_BYTES, ContentId, ContentMissingError, Owner
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError

from .test_contract import OWNER, get, put, sample
from .test_files import Rows, files_in, kill

_WORKER = """
import asyncio, sys
from pathlib import Path
from lazulite.engine.content.contract import WINDOW_BYTES, Owner
from lazulite.engine.content.files import ContentFiles

async def work():
    store = ContentFiles(Path(sys.argv[1]))
    for name in ("wanted", "unwanted"):
        writer = await store.create(Owner(5, name))
        await writer.write(name.encode())
        print((await writer.seal()).number)
    writer = await store.create(Owner(5, "unsealed"))
    await writer.write(bytes(2 * WINDOW_BYTES))
    await writer.write(bytes(WINDOW_BYTES))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(work())
"""


@contextmanager
def worker(path: Path) -> Iterator[tuple["subprocess.Popen[str]", ContentId, ContentId]]:
    """Yield a process that has sealed two contents and is writing a third, and the two."""
    command = [sys.executable, "-c", _WORKER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        wanted, unwanted, _ = (process.stdout.readline().strip() for _ in range(3))
        yield process, ContentId(5, int(wanted)), ContentId(5, int(unwanted))
        process.kill()


def slots_in(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("*.process"))


@pytest.fixture(name="stores")
async def _stores(path: Path) -> AsyncIterator[list[ContentFiles]]:
    stores = [ContentFiles(path) for _ in range(3)]
    yield stores
    for store in stores:
        await store.close()
    assert slots_in(path) == [], "an orderly end leaves no slot"


async def test_each_process_has_what_the_others_wrote(stores: list[ContentFiles]) -> None:
    contents = [await put(store, bytes([index])) for index, store in enumerate(stores)]
    assert len(set(contents)) == len(stores)
    for store in stores:
        assert [await get(store, content, 0, 1) for content in contents] == [b"\0", b"\1", b"\2"]
    await stores[0].delete(contents[1:])
    for store in stores:
        with pytest.raises(ContentMissingError):
            await get(store, contents[1], 0, 1)


async def test_what_a_living_process_writes_is_not_swept(stores: list[ContentFiles]) -> None:
    contents = [await put(store, b"x") for store in stores]
    contents.append(await stores[0].copy(contents[1], OWNER))
    unsealed = await stores[0].create(OWNER)
    await unsealed.write(sample(WINDOW_BYTES))
    await unsealed._written()
    rows = Rows()
    for store in stores * 3:
        assert await store.sweep(rows.references) == 0
    assert rows.asked == []
    assert [await get(stores[1], content, 0, 1) for content in contents] == [b"x"] * 4
    assert await get(stores[1], await unsealed.seal(), 0, WINDOW_BYTES) == sample(WINDOW_BYTES)


async def test_a_drop_ends_what_other_processes_write(stores: list[ContentFiles]) -> None:
    one, other, _ = stores
    begun, late = [await one.create(OWNER) for _ in range(2)]
    await begun.write(sample(WINDOW_BYTES))
    await begun._written()
    await other.drop(OWNER.space)
    for writer in (begun, late):
        with pytest.raises(SpaceDroppedError):
            await writer.seal()
        await writer.discard()
    with pytest.raises(SpaceDroppedError):
        await one.create(OWNER)


async def test_what_a_killed_worker_left_is_swept_by_the_second_sweep(path: Path) -> None:
    primary = ContentFiles(path)
    assert await primary.sweep(Rows().references) == 0
    with worker(path) as (process, wanted, unwanted):
        rows = Rows(wanted=wanted)
        assert await primary.sweep(rows.references) == 0
        process.kill()
        process.wait()
    assert await primary.sweep(rows.references) == 0, "a commit of the worker may be on its way"
    assert rows.asked == []

    successor = ContentFiles(path)
    await put(successor, b"x")
    assert slots_in(path) == ["0.process", "1.process", "2.process"], "a left slot is not taken"
    assert await primary.sweep(rows.references) == 2
    assert slots_in(path) == ["0.process", "2.process"]
    assert await get(primary, wanted, 0, 6) == b"wanted"
    with pytest.raises(ContentMissingError):
        await get(primary, unwanted, 0, 1)
    assert files_in(path) == ["5/1/000", "5/2.open/000"]
    for store in (primary, successor):
        await store.close()


async def test_what_an_earlier_life_left_is_swept_at_once(path: Path) -> None:
    with worker(path) as (process, wanted, _):
        process.kill()
        process.wait()
    store = ContentFiles(path)
    assert await store.sweep(Rows(wanted=wanted).references) == 2
    assert slots_in(path) == ["1.process"]
    await store.close()


async def test_a_slot_stays_left_if_its_sweep_fails(path: Path) -> None:
    async def fail(owner: Owner) -> Collection[ContentId]:
        raise EngineUnavailableError("the rows cannot be read now")

    crashed = ContentFiles(path)
    await put(crashed, b"x")
    kill(crashed)
    store = ContentFiles(path)
    with pytest.raises(EngineUnavailableError):
        await store.sweep(fail)
    assert slots_in(path) == ["0.process", "1.process"]
    assert await store.sweep(Rows().references) == 1
    assert slots_in(path) == ["1.process"]
    for each in (store, crashed):
        await each.close()


async def test_open_generations_without_slots_are_swept_by_the_first_sweep(path: Path) -> None:
    """A backup has none."""
    crashed = [ContentFiles(path) for _ in range(3)]
    for each in crashed:
        await put(each, b"x")
    for each in crashed:
        kill(each)
    for name in slots_in(path):
        (path / name).unlink()
    store = ContentFiles(path)
    assert await store.sweep(Rows().references) == 3
    await store.close()
    for each in crashed:
        await each.close()
