"""Servers with a table in them, ready to be measured."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from benchmarks.bench import PRELOAD_SECONDS_MAX, Bench
from benchmarks.catalogue import Catalogue
from benchmarks.entities import TRANSACTION_ROWS
from benchmarks.processes import Server
from benchmarks.subjects import AZURITE, BARE, LAZULITE, azurite, bare, lazulite, lazulite_on


class Stage:
    """A subject, its server, and the workloads that fit it."""

    def __init__(self, subject: str, server: Server, catalogue: Catalogue) -> None:
        self.subject, self.server, self.catalogue = subject, server, catalogue


@contextmanager
def stages(
    bench: Bench, *, emulator: bool, with_bare: bool = False, options: Sequence[str] = (), dsn: str | None = None
) -> Iterator[list[Stage]]:
    """Run Lazulite, with these options, and others if asked for: each with the plan's entities stored.

    `emulator`: Azurite, if it takes part at all. `with_bare`: the bare path.
    `dsn`: of the database that Lazulite is to serve from, if it is one.
    """
    pin = bench.plan.pin
    starts: dict[str, Callable[[Path], AbstractContextManager[Server]]] = {
        LAZULITE: lambda location: lazulite(location, options, pin=pin) if dsn is None else lazulite_on(dsn, pin=pin)
    }
    if emulator and bench.plan.azurite:
        starts[AZURITE] = lambda location: azurite(location, pin=pin)
    if with_bare:
        starts[BARE] = lambda location: bare(location, pin=pin)
    with ExitStack() as stack:
        found = []
        for subject, start in starts.items():
            server = stack.enter_context(start(bench.location / f"{bench.section}-{subject}"))
            catalogue = Catalogue(server.host, bench.plan.entities)
            bench.say(f"{bench.plan.entities:,} entities into {subject}")
            bench.create_table(server, catalogue)
            bench.store(server, catalogue.preload(), 0, bench.plan.entities // TRANSACTION_ROWS, PRELOAD_SECONDS_MAX)
            found.append(Stage(subject, server, catalogue))
        yield found
