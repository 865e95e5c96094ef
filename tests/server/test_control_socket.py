import asyncio
import contextlib
import os
import shutil
import socket
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.server.control_socket import (
    CHECKPOINT,
    SOCKET,
    ControlError,
    Procedure,
    ask,
    borrowed_checkpoint,
    control,
)


async def make(path: Path) -> None:
    (path / "file").write_text("as it was")


async def fail(path: Path) -> None:
    raise EngineUnavailableError("the disk is full")


def nothing(text: str) -> None:
    raise AssertionError(text)


def borrow(location: Path) -> str | None:
    with borrowed_checkpoint(location) as path:
        return None if path is None else (path / "file").read_text()


async def asked(location: Path, checkpoint: Callable[[Path], Awaitable[None]]) -> str | None:
    async with control(location, checkpoint, nothing):
        return await asyncio.to_thread(borrow, location)


def gone(location: Path) -> bool:
    return not (location / CHECKPOINT).exists()


async def test_a_checkpoint_is_lent_and_taken_back(tmp_path: Path) -> None:
    async with control(tmp_path, make, nothing):
        assert await asyncio.to_thread(borrow, tmp_path) == "as it was"
        assert await asyncio.to_thread(borrow, tmp_path) == "as it was", "the one before is out of the way"
    assert gone(tmp_path)
    assert borrow(tmp_path) is None


async def test_close_waits_for_a_removal_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, released = threading.Event(), threading.Event()
    remove = shutil.rmtree

    def remove_late(path: Path, *, ignore_errors: bool) -> None:
        entered.set()
        assert released.wait(30)
        remove(path, ignore_errors=ignore_errors)

    async def serve() -> None:
        async with control(tmp_path, make, nothing):
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


async def test_only_the_owner_may_ask(tmp_path: Path) -> None:
    async with control(tmp_path, make, nothing):
        assert stat.S_IMODE(os.stat(tmp_path / SOCKET).st_mode) == 0o600


async def test_the_path_may_be_long(tmp_path: Path) -> None:
    location = tmp_path / ("x" * 120)
    os.mkdir(location)
    assert await asked(location, make) == "as it was"


async def test_what_a_killed_service_left_is_removed(tmp_path: Path) -> None:
    os.mkdir(tmp_path / CHECKPOINT)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / SOCKET))
    assert borrow(tmp_path) is None, "nobody listens"
    assert await asked(tmp_path, make) == "as it was"


async def test_a_failure_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ControlError, match="disk is full"):
        await asked(tmp_path, fail)
    assert gone(tmp_path)


async def test_the_end_of_the_service_is_reported(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def hang(path: Path) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with control(tmp_path, hang, nothing):
        visit = asyncio.create_task(asyncio.to_thread(borrow, tmp_path))
        await entered.wait()
    with pytest.raises(ControlError, match="it is stopping"):
        await visit
    assert gone(tmp_path)


@pytest.mark.parametrize("line", [b"", b"something\n", b"x" * 100_000 + b"\n"])
async def test_anything_else_is_hung_up_on(tmp_path: Path, line: bytes) -> None:
    async with control(tmp_path, make, nothing):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / SOCKET))
        writer.write(line)
        if not line:
            writer.write_eof()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def test_without_a_socket_the_service_goes_on(tmp_path: Path) -> None:
    os.mkdir(tmp_path / SOCKET)
    said: list[str] = []
    async with control(tmp_path, make, said.append):
        pass
    assert "no backups while serving" in said[0]


async def test_in_memory_there_is_nothing_to_ask_for(tmp_path: Path) -> None:
    async with control(None, make, nothing):
        assert os.listdir(tmp_path) == []


async def count(account: str) -> dict[str, int]:
    if account == "sick":
        raise EngineUnavailableError("the disk is full")
    return {"tables": len(account)}


async def test_a_procedure_is_run_for_a_command(tmp_path: Path) -> None:
    procedures: dict[str, Procedure] = {}
    async with control(tmp_path, make, nothing, procedures):
        procedures["count"] = count
        assert await asyncio.to_thread(ask, tmp_path, "count", "orders") == {"tables": 6}
        with pytest.raises(ControlError, match="the disk is full"):
            await asyncio.to_thread(ask, tmp_path, "count", "sick")
        with pytest.raises(ControlError, match="or of an older version"):
            await asyncio.to_thread(ask, tmp_path, "other", "orders")
    assert ask(tmp_path, "count", "orders") is None, "no service is there"
