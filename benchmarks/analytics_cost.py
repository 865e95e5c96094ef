"""`python -m benchmarks.analytics_cost`: what Storage Analytics costs the requests of a table.

One server takes turns: with nothing, with all logs, and with nothing again. Counted is the processor time of the server
for a request, with the lines that it makes and publishes meanwhile. So the loss is that of a server with one core, even
where client and server share the processors.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from statistics import median
from typing import NamedTuple

from benchmarks.catalogue import Catalogue
from benchmarks.exchange import exchange, probe
from benchmarks.load import run_asyncio
from benchmarks.processes import Server, running
from benchmarks.workload import NUMBERS_PER_RUN, BenchmarkError, Limits, Workload

ENTITIES = 10_000
WORKLOADS: Mapping[str, Callable[[Catalogue], Workload]] = {
    "point GET": Catalogue.get,
    "durable insert": Catalogue.insert,
}
BOUNDS: Mapping[str, float] = {"point GET": 0.35, "durable insert": 0.10}
"""The shares of the rate that may be lost."""
_UNLIMITED = 10**9
_PUBLISH_SECONDS = "2"
"""A turn has some blobs."""
_SWITCH = (
    "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>{0}</Delete><Read>{0}</Read><Write>{0}</Write>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging></StorageServiceProperties>"
)


class Turn(NamedTuple):
    """Microseconds of processor time for a request, without logs and with them."""

    off: float
    on: float

    @property
    def loss(self) -> float:
        """The share of its rate that a server with one core loses."""
        return 1 - self.off / self.on


def _switch(tables: Catalogue, server: Server, logged: bool) -> None:
    body = _SWITCH.format(str(logged).lower()).encode()
    put = tables.requests.signed("PUT", "", "comp=properties&restype=service", body, "application/xml")
    reply = exchange(server.port, put)
    if reply.status != 202:
        raise BenchmarkError(f"the properties were not set: {reply.status} {reply.body!r}")


def _cost(workload: Workload, server: Server, first: int, seconds: float) -> float:
    """Return microseconds of processor time for a request."""
    before = server.cpu_seconds() or 0.0
    found = run_asyncio(workload, server.port, first, Limits(seconds, _UNLIMITED), nap_s=0.001)
    if found.errors:
        raise BenchmarkError(f"{workload.name}: {found.errors} errors")
    return ((server.cpu_seconds() or 0.0) - before) / found.requests * 1e6


@contextmanager
def _server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as location:
        options = ("--silent", "--services", "table", "--table-port", "0", "--location", location)
        command = [sys.executable, "-m", "lazulite", "serve", *options, "--analytics-seconds", _PUBLISH_SECONDS]
        with running(command, {}, pin=False) as server:
            yield server


def measure(seconds: float, turns: int, only: str = "") -> dict[str, list[Turn]]:
    """Return the turns of each workload whose name contains a text."""
    numbers = count(NUMBERS_PER_RUN, NUMBERS_PER_RUN)
    found: dict[str, list[Turn]] = {}
    with _server() as server:
        tables = Catalogue(server.host, ENTITIES)
        probe(Workload("preparing", 1, 1, 201, [tables.create()]), server.port)
        load = tables.preload()
        run_asyncio(load, server.port, 0, Limits(_UNLIMITED, ENTITIES // load.units))
        for name, asked in WORKLOADS.items():
            if only not in name:
                continue
            workload = asked(tables)
            _cost(workload, server, next(numbers), seconds / 4)
            for _ in range(turns):
                costs = []
                for logged in (False, True, False):
                    _switch(tables, server, logged)
                    costs.append(_cost(workload, server, next(numbers), seconds))
                found.setdefault(name, []).append(Turn((costs[0] + costs[2]) / 2, costs[1]))
    return found


def table(turns: Mapping[str, Sequence[Turn]]) -> list[str]:
    """Return the lines of a table; of the turns, the median counts."""
    lines = [
        "| µs of processor for a request | without logs | with logs | rate lost | bound |",
        "|---|---|---|---|---|",
    ]
    for name, found in turns.items():
        losses = sorted(turn.loss for turn in found)
        spread = f"{median(losses):.0%} ({losses[0]:.0%}–{losses[-1]:.0%})"
        off, on = (median(costs) for costs in zip(*found, strict=True))
        lines.append(f"| {name} | {off:.1f} | {on:.1f} | {spread} | {BOUNDS[name]:.0%} |")
    return lines


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics_cost", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each half of a turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="of each workload (%(default)s)")
    given = parser.parse_args()
    print("\n".join(table(measure(given.seconds, given.turns, given.only))))


if __name__ == "__main__":
    main()
