"""The file of the socket: its mode, and what it replaces."""

import asyncio
import fcntl
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from lazulite.control import socket_file
from lazulite.control.channel import CONNECTIONS_MAX, Channel, close
from lazulite.control.client import Client
from lazulite.control.command import Command, ControlError, Json, NoArguments
from lazulite.control.socket_file import listening

PING = Command("ping", NoArguments)


def channel(answer: Json = "pong") -> Channel:
    async def ping(_: NoArguments) -> AsyncGenerator[Json, None]:
        yield answer

    made = Channel("1")
    made.register(PING, ping)
    return made


async def ask(path: Path) -> Json:
    return await asyncio.to_thread(Client.at(path).ask, PING, NoArguments())


async def reason(path: Path) -> str:
    """Return why there can be no socket at a path."""
    with pytest.raises(ControlError) as raised:
        async with listening(channel(), path):
            pass
    assert raised.value.code == "no-socket"
    return str(raised.value)


async def test_commands_reach_the_channel_while_it_listens(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with listening(channel(), path):
        assert await ask(path) == "pong"
    assert not path.exists()
    with pytest.raises(ControlError, match="no server takes commands at") as raised:
        await ask(path)
    assert raised.value.code == "no-server"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
async def test_only_the_owner_may_connect(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []

    def note(*arguments: object) -> None:
        modes.append(stat.S_IMODE(os.lstat(tmp_path / "socket").st_mode))

    monkeypatch.setattr(socket_file.os, "chmod", note)  # type: ignore[attr-defined]  # its own import
    before = os.umask(umask)
    try:
        async with listening(channel(), tmp_path / "socket"):
            pass
    finally:
        os.umask(before)
    assert modes == [0o600 & ~umask], "the file never had more permissions"


async def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        async with listening(channel(), tmp_path / "socket"):
            assert stat.S_IMODE(os.lstat(tmp_path / "socket").st_mode) == 0o600
    finally:
        os.umask(before)


async def test_the_directory_may_have_a_long_path(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120) / "socket"
    path.parent.mkdir()
    async with listening(channel(), path):
        assert await ask(path) == "pong"
    assert not path.exists()


async def test_a_name_that_is_too_long_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    assert "too long" in await reason(path)
    with pytest.raises(ControlError, match="too long"):
        await ask(path)


async def test_what_a_killed_process_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
        left.listen()
    with pytest.raises(ControlError, match="no server"):
        await ask(path)
    async with listening(channel(), path):
        assert await ask(path) == "pong"


@pytest.mark.parametrize("backlog", [5, 0])
async def test_a_socket_that_is_listened_on_is_not_replaced(tmp_path: Path, backlog: int) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as waiting:
        other.bind(str(path))
        other.listen(backlog)
        waiting.connect(str(path))  # Without a backlog, the next one would wait.
        assert f"another process takes commands at {path}" in await reason(path)
        assert path.is_socket()


async def test_of_two_servers_the_first_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with listening(channel(1), path):
        assert "another process takes commands" in await reason(path)
        assert await ask(path) == 1


async def test_the_socket_of_a_successor_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with listening(channel(1), path):
        path.unlink()
        second = listening(channel(2), path)
        await second.__aenter__()
    assert await ask(path) == 2
    await second.__aexit__(None, None, None)


async def test_a_file_that_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    path.write_text("{}")
    assert "is no socket" in await reason(path)
    assert path.read_text() == "{}"


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "socket"
    path.symlink_to(target)
    assert "is no socket" in await reason(path)
    assert not target.exists()


@pytest.mark.parametrize(("mode", "rejected"), [(0o777, True), (0o770, True), (0o1777, False), (0o755, False)])
async def test_other_users_must_not_replace_the_socket(tmp_path: Path, mode: int, rejected: bool) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(mode)
    if rejected:
        assert "other users may write to" in await reason(directory / "socket")
    else:
        async with listening(channel(), directory / "socket"):
            assert await ask(directory / "socket") == "pong"


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert "No such file or directory" in await reason(tmp_path / "missing" / "socket")


async def test_one_process_at_a_time_binds_in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_file, "_LOCK_SECONDS", 0)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert "locked" in await reason(tmp_path / "socket")
    os.close(descriptor)
    async with listening(channel(), tmp_path / "socket"):
        assert await ask(tmp_path / "socket") == "pong"


async def test_a_flood_of_connections_is_survived(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    served = channel()
    async with listening(served, path):
        held = []
        for _ in range(CONNECTIONS_MAX):
            held.append(await asyncio.open_unix_connection(str(path)))
            await held[-1][0].readline()
        for _ in range(200):
            reader, writer = await asyncio.open_unix_connection(str(path))
            assert b"busy" in (await reader.read()).splitlines()[-1]
            await close(writer)
        for _, writer in held:
            await close(writer)
        await asyncio.gather(*served._connections)
        assert await ask(path) == "pong"
        await served.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_another_user_cannot_connect(tmp_path: Path) -> None:
    for directory in (tmp_path, *tmp_path.parents[:-1]):
        if not directory.stat().st_mode & 0o001 and directory.stat().st_uid == os.getuid():
            directory.chmod(directory.stat().st_mode | 0o011)
    path = tmp_path / "socket"
    code = "import os, socket, sys; os.setuid(65534); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    async with listening(channel(), path):
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert "PermissionError" in done.stderr
