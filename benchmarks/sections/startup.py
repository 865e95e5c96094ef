"""The time of commands that do nothing, and of an embedded server's start; the memory of idle servers."""

import subprocess
import sys
import timeit
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from benchmarks.bench import Bench
from benchmarks.catalogue import Catalogue
from benchmarks.processes import SERVER_CPU, pinned
from benchmarks.subjects import AZURITE, LAZULITE
from lazulite.testing import server as embedded

COMMANDS = {
    "python": ["-c", ""],
    "import lazulite": ["-c", "import lazulite"],
    "lazulite --help": ["-m", "lazulite", "--help"],
}
"""By name: arguments of the interpreter. The time of the first one is Python's own."""


def run(bench: Bench) -> None:
    """Measure commands, embedded servers until they are ready, and idle servers."""
    attempts: dict[str, Callable[[], object]] = {
        name: partial(subprocess.run, [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        for name, arguments in COMMANDS.items()
    }
    with ExitStack() as stack:
        attempts["lazulite.testing.server"] = lambda: stack.enter_context(embedded())
        with pinned(SERVER_CPU, pin=bench.plan.pin):
            for name, attempt in attempts.items():
                bench.say(name)
                bench.note(name, LAZULITE, timeit.repeat(attempt, number=1, repeat=10))
    with bench.stages(Catalogue, LAZULITE, AZURITE, entities=0) as stages:
        for stage in stages:
            bench.note("idle", stage.subject, server=stage.server)
