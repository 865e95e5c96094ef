import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lazulite.app.checkpoints import DIRECTORY, Checkpoints, borrowed_checkpoint
from lazulite.app.commands import CHECKPOINT
from lazulite.control.channel import Channel
from lazulite.control.command import ControlError
from lazulite.control.socket_file import SOCKET, listening
from lazulite.engine.contract import EngineUnavailableError


async def make(path: Path) -> None:
    (path / "file").write_text("as it was")


async def fail(path: Path) -> None:
    raise EngineUnavailableError("the disk is full")


@asynccontextmanager
async def served(location: Path, checkpoint: Callable[[Path], Awaitable[None]] = make) -> AsyncIterator[None]:
    channel = Channel("1")
    channel.register(CHECKPOINT, Checkpoints(location, checkpoint).lend)
    async with listening(channel, location / SOCKET):
        yield
        await channel.close()


def borrow(location: Path) -> str | None:
    with borrowed_checkpoint(location) as path:
        return None if path is None else (path / "file").read_text()


def gone(location: Path) -> bool:
    return not (location / DIRECTORY).exists()


async def test_a_checkpoint_is_lent_and_taken_back(tmp_path: Path) -> None:
    async with served(tmp_path):
        assert await asyncio.to_thread(borrow, tmp_path) == "as it was"
        assert await asyncio.to_thread(borrow, tmp_path) == "as it was", "the one before is out of the way"
    assert gone(tmp_path)
    assert borrow(tmp_path) is None


async def test_the_end_waits_for_a_removal_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, released = threading.Event(), threading.Event()
    remove = shutil.rmtree

    def remove_late(path: Path, *, ignore_errors: bool) -> None:
        entered.set()
        assert released.wait(30)
        remove(path, ignore_errors=ignore_errors)

    async def serve() -> None:
        async with served(tmp_path):
            monkeypatch.setattr(shutil, "rmtree", remove_late)
            assert await asyncio.to_thread(borrow, tmp_path) == "as it was"
            assert await asyncio.to_thread(entered.wait, 30)

    service = asyncio.create_task(serve())
    assert await asyncio.to_thread(entered.wait, 30)
    for _ in range(20):
        await asyncio.sleep(0)
    early = service.done()
    released.set()
    await service
    assert not early, "the checkpoint is still being removed"
    assert gone(tmp_path)


async def test_what_a_killed_service_left_is_removed(tmp_path: Path) -> None:
    os.mkdir(tmp_path / DIRECTORY)
    async with served(tmp_path):
        assert await asyncio.to_thread(borrow, tmp_path) == "as it was"


async def test_a_failure_is_reported(tmp_path: Path) -> None:
    async with served(tmp_path, fail):
        with pytest.raises(ControlError, match="made no checkpoint: the disk is full"):
            await asyncio.to_thread(borrow, tmp_path)
    assert gone(tmp_path)


async def test_the_end_of_the_service_is_reported(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def hang(path: Path) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with served(tmp_path, hang):
        visit = asyncio.create_task(asyncio.to_thread(borrow, tmp_path))
        await entered.wait()
    with pytest.raises(ControlError, match="it is stopping"):
        await visit
    assert gone(tmp_path)


async def test_checkpoints_are_made_one_after_the_other(tmp_path: Path) -> None:
    borrowed, returned = threading.Event(), threading.Event()

    def keep() -> None:
        with borrowed_checkpoint(tmp_path):
            borrowed.set()
            assert returned.wait(30)

    async with served(tmp_path):
        first = asyncio.create_task(asyncio.to_thread(keep))
        assert await asyncio.to_thread(borrowed.wait, 30)
        second = asyncio.create_task(asyncio.to_thread(borrow, tmp_path))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not second.done()
        returned.set()
        await first
        assert await second == "as it was"
