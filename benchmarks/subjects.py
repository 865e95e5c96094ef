"""What is measured: Lazulite, the emulator Azurite, the floor and the bare path; how each is installed and started."""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.measurement import BenchmarkError
from benchmarks.processes import Server, running

LAZULITE, AZURITE, FLOOR, BARE = "lazulite", "azurite", "floor", "bare"
TWO, PGBENCH = "lazulite × 2", "pgbench"
"""Two processes on one database; the statements alone, without a service."""
HELD, TWO_HELD = "lazulite, ¼ CPU", "lazulite × 2, ¼ CPU each"
"""The same, each process held to a quarter of a CPU (see `throttle`)."""
DISK = "disk"
"""The subject of rows that measure `fdatasync`."""

_AZURITE = Path(__file__).with_name("azurite")
_INSTALL_SECONDS_MAX = 600


def lazulite(location: Path, options: Sequence[str] = (), *, pin: bool) -> AbstractContextManager[Server]:
    """Run Lazulite with its data in `location`, without a request log, and with whatever options are added."""
    options = ["--table-port", "0", "--location", str(location), "--silent", *options]
    return running([sys.executable, "-m", "lazulite", "serve", *options], pin=pin)


def lazulite_on(dsn: str, options: Sequence[str] = (), *, pin: bool) -> AbstractContextManager[Server]:
    """Run Lazulite on a database, without a request log. The password is not on the command line."""
    command = [sys.executable, "-m", "lazulite", "serve", "--table-port", "0", "--silent", *options]
    return running(command, pin=pin, variables={"LAZULITE_ENGINE": dsn})


def azurite(location: Path, *, pin: bool) -> AbstractContextManager[Server]:
    """Run Azurite's table service alone, with its data in `location`, without logs and telemetry."""
    location.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:  # told to take any free port, it would not say which it took
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    program = _AZURITE / "node_modules" / "azurite" / "dist" / "src" / "table" / "main.js"
    options = ["--tablePort", str(port), "--location", str(location), "--silent", "--disableTelemetry"]
    return running(["node", str(program), *options], pin=pin)


def floor(status: int, body_bytes: int, *, pin: bool) -> AbstractContextManager[Server]:
    """Run the floor, which gives every request this answer."""
    options = ["--status", str(status), "--body-bytes", str(body_bytes)]
    return running([sys.executable, "-m", "benchmarks.floor", *options], pin=pin)


def bare(location: Path, *, pin: bool) -> AbstractContextManager[Server]:
    """Run the bare path with its data in `location`."""
    return running([sys.executable, "-m", "benchmarks.bare", "--location", str(location)], pin=pin)


def install_azurite() -> str | None:
    """Install the pinned Azurite unless it is there; return what runs, in words, or None without node and npm.

    Raises:
        BenchmarkError: npm failed.
    """
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return None
    wanted = json.loads((_AZURITE / "package.json").read_text(encoding="utf-8"))["dependencies"]["azurite"]
    if _installed_azurite() != wanted:
        command = [npm, "ci", "--no-audit", "--no-fund"]
        done = subprocess.run(
            command, cwd=_AZURITE, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS_MAX
        )
        if done.returncode:
            raise BenchmarkError(f"npm could not install Azurite: {done.stdout}{done.stderr}")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"Azurite {wanted}, table service only, on disk, --silent --disableTelemetry; Node {version}"


def _installed_azurite() -> str | None:
    try:
        text = (_AZURITE / "node_modules" / "azurite" / "package.json").read_text(encoding="utf-8")
    except OSError:
        return None
    version: str = json.loads(text)["version"]
    return version
