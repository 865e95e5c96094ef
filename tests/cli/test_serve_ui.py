"""`lazulite serve --ui-port` and `lazulite ui`: the link and its file, workers, and what a command has opened."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.server_process import running
from tests.ui.explorer import Client


def test_the_explorer_of_workers_asks_them_and_its_link_is_in_a_file(tmp_path: Path) -> None:
    flags = ("--location", str(tmp_path), "--silent", "--ui-port", "0", "--ui-read-only", "--workers", "2")
    with running(*flags, lines=3) as server:
        file = tmp_path / "explorer-link"
        assert server.lines[-1].startswith("explorer: http://127.0.0.1:")
        assert "token" not in server.lines[-1]
        assert file.stat().st_mode & 0o777 == 0o600
        client = Client(file.read_text(encoding="ascii").strip())
        assert not file.exists()
        processes = [each["process"] for each in client.json("/")["processes"]]
        assert processes[0] == "primary"
        assert len(processes) == 3
        refused = client.post("/accounts?do=add", {"name": "orders"})
        assert (refused.status, "read-only" in refused.text) == (403, True)
        assert not (tmp_path / "accounts.json").exists()
        assert client.post("/sessions?do=sign-out").location == "/sign-in"
        assert client.get("/").status == 401


def test_the_command_closes_what_it_has_opened(tmp_path: Path) -> None:
    with running("--location", str(tmp_path), "--silent"):
        command = [sys.executable, "-m", "lazulite", "ui", "--no-browser", "--location", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as first:
            assert first.stdout is not None
            link = first.stdout.readline().strip()
            assert Client(link).get("/").status == 200
            assert "Ctrl-C" in first.stdout.readline()
            first.send_signal(signal.SIGINT)
            assert first.wait(300) == 0
