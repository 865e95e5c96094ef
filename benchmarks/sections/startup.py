"""The time of commands that do nothing, and of an embedded server's start; the memory of idle servers."""

import subprocess
import sys
import timeit
from contextlib import ExitStack
from functools import partial

from benchmarks.bench import Bench
from benchmarks.processes import SERVER_CPU, pinned
from benchmarks.subjects import AZURITE, BASELINE, LAZULITE, start
from lazulite.testing import server as embedded

COMMANDS = {
    "python": ["-c", ""],
    "import lazulite": ["-c", "import lazulite"],
    "lazulite --help": ["-m", "lazulite", "--help"],
}
"""By name: arguments of the interpreter. The time of the first one is Python's own."""
ATTEMPTS = 10


def run(bench: Bench) -> None:
    """Measure commands, embedded servers until they are ready, and idle servers."""
    bench.say("commands")
    with pinned(SERVER_CPU, pin=bench.plan.pin):
        for name, arguments in COMMANDS.items():
            command = partial(subprocess.run, [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            bench.note(name, LAZULITE, timeit.repeat(command, number=1, repeat=ATTEMPTS))
        with ExitStack() as stack:
            seconds = timeit.repeat(lambda: stack.enter_context(embedded()), number=1, repeat=ATTEMPTS)
        bench.note("lazulite.testing.server", LAZULITE, seconds)
    bench.say("idle servers")
    with ExitStack() as stack:
        for subject in bench.present(LAZULITE, BASELINE, AZURITE):
            options = () if subject == BASELINE else ("--location", bench.location / subject)
            server = stack.enter_context(start(subject, *options, pin=bench.plan.pin))
            bench.note("idle", subject, server=server)
