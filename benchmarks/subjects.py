"""The subjects: Lazulite, the emulator Azurite, the baseline server and the minimal servers; how each is started."""

import json
import shutil
import socket
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.processes import Server, running
from benchmarks.workload import BenchmarkError

LAZULITE, AZURITE, BASELINE, MINIMAL, PGBENCH = "lazulite", "azurite", "baseline", "minimal", "pgbench"
PLAIN = "lazulite, PostgreSQL"  # beside one on a Citus cluster
EMPTY = "lazulite, empty queue"  # beside one whose queue is not
FILES = "file server"
TWO, HELD, TWO_HELD = "lazulite × 2", "lazulite, ¼ CPU", "lazulite × 2, ¼ CPU each"
"""Two processes on one database; one, and two, each held to a quarter of a CPU (see `throttle`)."""
WORKERS = {"lazulite, 2 workers": 2, "lazulite, 3 workers": 3}
"""By subject: the number of workers on one store."""
DISK = "disk"  # the subject of rows that measure the disk alone

_AZURITE = Path(__file__).with_name("azurite")
_AZURITE_SERVICES = _AZURITE / "node_modules" / "azurite" / "dist" / "src"
_SERVE = ("serve", "--silent", "--services", "SERVICE", "--SERVICE-port")
_COMMANDS = {
    LAZULITE: [sys.executable, "-m", "lazulite", *_SERVE],
    AZURITE: ["node", f"{_AZURITE_SERVICES}/SERVICE/main.js", "--silent", "--disableTelemetry", "--SERVICEPort"],
    BASELINE: [sys.executable, "-m", "benchmarks.baseline_server"],
    MINIMAL: [sys.executable, "-m", "benchmarks.minimal_SERVICE_server"],
    FILES: [sys.executable, "-m", "benchmarks.file_server"],
}
"""SERVICE stands for the name of a service. Each takes a port as the next argument, and prints its endpoint when it is
ready."""


def start(
    subject: str, *options: str | Path, pin: bool, service: str = "table", engine: str = ""
) -> AbstractContextManager[Server]:
    """Run a subject with these options, on its own files or on a database, until the block ends."""
    port = free_port() if subject in (AZURITE, FILES) else 0  # These do not print which free port they took.
    command = [part.replace("SERVICE", service) for part in _COMMANDS[subject]]
    return running([*command, str(port), *map(str, options)], {"LAZULITE_ENGINE": engine} if engine else {}, pin=pin)


def baseline(status: int, body_bytes: int, *, pin: bool) -> AbstractContextManager[Server]:
    """Run the baseline server, which gives every request this response."""
    return start(BASELINE, str(status), str(body_bytes), pin=pin)


def free_port() -> int:
    """Return a port that no server has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install_azurite() -> str | None:
    """Install the pinned Azurite unless it is there; return its version in words, or None without node and npm."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return None
    command = [npm, "install", "--no-audit", "--no-fund", "--prefer-offline"]
    done = subprocess.run(command, cwd=_AZURITE, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise BenchmarkError(f"npm could not install Azurite: {done.stdout}{done.stderr}")
    azurite = json.loads((_AZURITE / "package.json").read_text(encoding="utf-8"))["dependencies"]["azurite"]
    runtime = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"Azurite {azurite}, one service at a time, on disk, --silent --disableTelemetry; Node {runtime}"
