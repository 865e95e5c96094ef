"""Commands to a running process: where they find it, and what its workers answer."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from lazulite import __version__
from lazulite.app.commands import CHECKPOINT, COUNT_RESOURCES, STATUS
from lazulite.control.command import AccountArguments, ControlError, NoArguments
from lazulite.testing import server as storage_server
from tests.server_process import running

from .test_serve import lazulite, rejected, serving
from .test_serve_workers import BOTH, children


def status(*flags: str) -> list[dict[str, Any]]:
    done = lazulite("status", "--json", *flags)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_server_in_memory_takes_commands_at_a_path(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with running("--in-memory", "--silent", "--control-socket", str(path), lines=2) as server:
        (process,) = status("--control-socket", str(path))
        assert (process["process"], process["pid"]) == ("server", server.process.pid)
        assert process["version"] == __version__
        shown = lazulite("status", "--control-socket", str(path)).stdout
        assert shown.startswith(f"server: process {server.process.pid}, version {__version__}, up ")
        assert (
            "another process takes commands"
            in lazulite(
                "serve", "--in-memory", "--table-port", "0", "--services", "table", "--control-socket", str(path)
            ).stderr
        )
        assert len(status("--control-socket", str(path))) == 1, "the second server left the socket alone"
        assert server.stop() == (0, "")
    assert not path.exists()


def test_workers_answer_by_their_primary(tmp_path: Path) -> None:
    here, path = ("-l", str(tmp_path / "data")), tmp_path / "control"
    with serving(tmp_path / "data", *BOTH, "--silent", "--control-socket", str(path)) as server:
        for flags in (here, ("--control-socket", str(path))):
            primary, *workers = status(*flags)
            assert (primary["process"], primary["pid"]) == ("primary", server.process.pid)
            assert [each["process"] for each in workers] == ["worker 1", "worker 2"]
            assert {each["pid"] for each in workers} == set(children(server.process.pid))
        os.kill(workers[0]["pid"], signal.SIGKILL)
        while workers[0]["pid"] in (found := [each.get("pid") for each in status(*here)]) or len(found) < 3:
            pass  # Until its successor accepts requests.
        server.process.terminate()
        assert server.process.wait(60) == 0
        server.process.communicate()
    assert not path.exists()


def test_a_command_says_which_server_it_misses(tmp_path: Path) -> None:
    assert f"no server takes commands at {tmp_path}/lazulite.sock" in rejected(1, "status", "-l", str(tmp_path))
    assert "pass --control-socket PATH" in rejected(2, "status", "--engine", "postgresql://u@h/d")


def test_a_socket_that_cannot_be_made_ends_the_start(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "control")
    flags = ("--in-memory", "--services", "table", "--table-port", "0", "--control-socket", path)
    assert f"--control-socket: {path}: No such file" in rejected(1, "serve", *flags)


def test_a_test_sends_commands_to_its_server(tmp_path: Path) -> None:
    with storage_server() as storage:
        item: Any = storage.control.ask(STATUS, NoArguments())
        assert item["pid"] == os.getpid()
        assert storage.control.ask(COUNT_RESOURCES, AccountArguments("devstoreaccount1")) == {}
        with pytest.raises(ControlError, match="has no command 'checkpoint'"):
            storage.control.ask(CHECKPOINT, NoArguments())
        asked = [threading.Thread(target=storage.control.ask, args=(STATUS, NoArguments())) for _ in range(8)]
        for thread in asked:
            thread.start()
        for thread in asked:
            thread.join()
    with storage_server(tmp_path) as storage:
        assert storage.control.ask(CHECKPOINT, NoArguments()) == "checkpoint"
        (process,) = status("-l", str(tmp_path))
        assert process["pid"] == os.getpid()
