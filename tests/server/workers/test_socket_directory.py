"""A directory of sockets goes with its process, and that of a killed process when the next one starts."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from lazulite.server.workers import socket_directory as module
from lazulite.server.workers.socket_directory import PREFIX, socket_directory

HOLD = """
import sys
from pathlib import Path
from lazulite.server.workers.socket_directory import socket_directory
with socket_directory(Path(sys.argv[1])) as path:
    (path / "socket").touch()
    print(path, flush=True)
    sys.stdin.read()
"""


def hold(parent: Path) -> tuple["subprocess.Popen[str]", Path]:
    """Start a process that has a directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_directory_is_closed_to_others_and_removed_at_the_end(tmp_path: Path) -> None:
    with socket_directory(tmp_path) as path:
        assert path.stat().st_mode & 0o777 == 0o700
        (path / "socket").touch()
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_killed_process_is_removed_and_that_of_a_live_one_stays(tmp_path: Path) -> None:
    (live, used), (killed, abandoned) = hold(tmp_path), hold(tmp_path)
    with killed, live:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert sorted(tmp_path.iterdir()) == sorted([used, abandoned])
        with socket_directory(tmp_path) as path:
            assert sorted(tmp_path.iterdir()) == sorted([used, path])
            assert (used / "socket").exists()
        live.communicate("")
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.mkdir()
    others = [tmp_path / f"{PREFIX}link", tmp_path / f"{PREFIX}file", target]
    others[0].symlink_to(target)
    others[1].touch()
    with socket_directory(tmp_path):
        assert all(each.exists() for each in others)
    theirs = tmp_path / f"{PREFIX}theirs"
    theirs.mkdir()
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    module._remove_abandoned(theirs)
    assert theirs.exists()


@pytest.mark.parametrize("moment", ["before it is opened", "before it is locked"])
def test_a_directory_that_is_taken_for_abandoned_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    made: list[str] = []
    mkdtemp, flock = tempfile.mkdtemp, fcntl.flock

    def make(prefix: str, dir: Path) -> str:  # noqa: A002 - the library's
        made.append(mkdtemp(prefix=prefix, dir=dir))
        if moment == "before it is opened" and len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    def lock(descriptor: int, operation: int) -> None:
        if moment == "before it is locked" and len(made) == 1 and os.path.exists(made[0]):
            os.rmdir(made[0])
        flock(descriptor, operation)

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    monkeypatch.setattr(fcntl, "flock", lock)
    with ExitStack() as stack:
        path = stack.enter_context(socket_directory(tmp_path))
        assert [str(path)] == made[1:]
