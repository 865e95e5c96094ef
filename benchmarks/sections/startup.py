"""How long a command takes that does nothing, and how much memory a server takes that nobody asks."""

import subprocess
import sys
import time
from contextlib import ExitStack

from benchmarks.bench import Bench
from benchmarks.processes import SERVER_CPU, pinned
from benchmarks.subjects import AZURITE, FLOOR, LAZULITE, azurite, floor, lazulite

COMMANDS = {
    "python": ["-c", ""],
    "import lazulite": ["-c", "import lazulite"],
    "lazulite --help": ["-m", "lazulite", "--help"],
}
"""By name: arguments of the interpreter. The first one says what of the others is Python's own."""
ATTEMPTS = 10


def run(bench: Bench) -> None:
    """Measure commands, and idle servers."""
    bench.say("commands")
    with pinned(SERVER_CPU, pin=bench.plan.pin):
        for name, arguments in COMMANDS.items():
            bench.note(name, LAZULITE, [_seconds(arguments) for _ in range(ATTEMPTS)])
    bench.say("idle servers")
    pin = bench.plan.pin
    with ExitStack() as stack:
        servers = {
            LAZULITE: stack.enter_context(lazulite(bench.location / "idle", pin=pin)),
            FLOOR: stack.enter_context(floor(200, 1024, pin=pin)),
        }
        if bench.plan.azurite:
            servers[AZURITE] = stack.enter_context(azurite(bench.location / "idle-azurite", pin=pin))
        for subject, server in servers.items():
            bench.note("idle", subject, (), server=server)


def _seconds(arguments: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
