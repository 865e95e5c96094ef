"""Backups of contents: whole for the rows of one moment, while processes write and delete."""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from lazulite.engine.content import backup, generations, space_files
from lazulite.engine.content.backup import deletions_held, link_files
from lazulite.engine.content.contract import ContentId, ContentMissingError, Owner
from lazulite.engine.content.files import ContentFiles

from .test_contract import get, put
from .test_files import Rows, files_in, reject_links

ROUNDS = 4


@pytest.fixture(name="stores")
async def _stores(path: Path) -> AsyncIterator[list[ContentFiles]]:
    """Two processes."""
    stores = [ContentFiles(path) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


async def waits(call: Awaitable[None]) -> "asyncio.Task[None]":
    """Begin a call, and find it waiting while others go through."""
    task = asyncio.ensure_future(call)
    for _ in range(3):
        await asyncio.to_thread(int)
    assert not task.done()
    return task


async def test_deletions_of_all_processes_wait(stores: list[ContentFiles], path: Path) -> None:
    one, other = stores
    contents = [
        await put(store, b"x", Owner(space, "a")) for store, space in zip([one, other, one], [5, 6, 7], strict=True)
    ]
    async with deletions_held(path):
        waiting = [await waits(one.delete(contents[:1])), await waits(other.delete(contents[1:2]))]
        waiting.append(await waits(other.drop(7)))
        assert [await get(other, content, 0, 1) for content in contents] == [b"x"] * 3
        assert await get(other, await put(one, b"new"), 0, 3) == b"new"
    await asyncio.gather(*waiting)
    for content in contents:
        with pytest.raises(ContentMissingError):
            await get(one, content, 0, 1)


async def test_no_generation_is_settled_meanwhile(
    stores: list[ContentFiles], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept after the checkpoint of the rows would never be searched."""
    for module in (generations, space_files):
        monkeypatch.setattr(module, "FILES_MAX", 1)
    async with deletions_held(path):
        content = await put(stores[0], b"x")
        stores[0].keep(content)
        await asyncio.to_thread(link_files, path, tmp_path / "copy")
    await stores[0].close()
    assert (files_in(path), files_in(tmp_path / "copy")) == (["5/0/000"], ["5/0.open/000"])


async def test_backups_take_turns(path: Path) -> None:
    async with deletions_held(path):
        entered = asyncio.Event()

        async def hold() -> None:
            async with deletions_held(path):
                entered.set()

        second = await waits(hold())
        assert not entered.is_set()
    await second


async def test_a_backup_that_is_cancelled_before_its_turn_holds_nothing(stores: list[ContentFiles], path: Path) -> None:
    async def hold() -> None:
        async with deletions_held(path):
            raise AssertionError

    content = await put(stores[0], b"x")
    async with deletions_held(path):
        second = await waits(hold())
        second.cancel()
        for _ in range(3):
            await asyncio.to_thread(int)
    await asyncio.wait([second])
    assert second.cancelled()
    await stores[0].delete([content])


async def test_there_may_be_no_contents(tmp_path: Path) -> None:
    await asyncio.to_thread(link_files, tmp_path / "content", tmp_path / "copy")
    assert files_in(tmp_path / "copy") == []


async def test_files_are_copied_where_they_cannot_be_linked(
    stores: list[ContentFiles], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = await put(stores[0], b"abc")
    monkeypatch.setattr(backup.os, "link", reject_links)  # type: ignore[attr-defined]  # imported there
    await asyncio.to_thread(link_files, path, tmp_path / "copy")
    copy = ContentFiles(tmp_path / "copy")
    assert await get(copy, content, 0, 3) == b"abc"
    await copy.close()


async def test_a_copy_has_what_the_rows_of_its_moment_refer_to_and_no_more(
    stores: list[ContentFiles], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (generations, space_files):
        monkeypatch.setattr(module, "FILES_MAX", 3)
    rows: dict[ContentId, bytes] = {}
    garbage: set[ContentId] = set()
    """Rows, too, in a service: they name what is to be deleted."""
    over = asyncio.Event()

    async def work(store: ContentFiles, seed: int) -> None:
        chance = random.Random(seed)
        while not over.is_set():
            if rows and chance.random() < 0.5:
                content = chance.choice(list(rows))
                del rows[content]
                garbage.add(content)
                await store.delete([content])
                garbage.remove(content)
            else:
                data = chance.randbytes(9)
                content = await put(store, data, Owner(chance.choice([5, 6]), "a"))
                rows[content] = data
                store.keep(content)

    workers = [asyncio.create_task(work(store, seed)) for seed, store in enumerate(stores * 2)]
    for number in range(ROUNDS):
        for _ in range(30):
            await asyncio.to_thread(int)
        target = tmp_path / f"copy-{number}"
        async with deletions_held(path):
            moment, to_delete = dict(rows), set(garbage)
            for _ in range(5):
                await asyncio.to_thread(int)
            await asyncio.to_thread(link_files, path, target)
        copy = ContentFiles(target)
        await copy.sweep(Rows(*moment).references)
        await copy.delete(to_delete)
        for content, data in moment.items():
            assert await get(copy, content, 0, len(data)) == data
        assert len(files_in(target)) == len(moment)
        await copy.close()
        shutil.rmtree(target)
    over.set()
    await asyncio.gather(*workers)
