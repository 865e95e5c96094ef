"""`python -m benchmarks.observers_cost`: the processor time that the meter and the recorder of requests take.

Servers in this process take turns of 256 requests, without sockets: one with neither, one with a meter, and one
whose requests are recorded for the explorer. So other programs and the processor's clock disturb all of them alike.
What the calls of a meter that is off take is too little for that. They are timed alone.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager, nullcontext
from operator import truediv
from statistics import fmean, median
from timeit import repeat
from typing import NamedTuple

from benchmarks.in_process import Side
from benchmarks.in_process_cases import CASES
from benchmarks.workload import NUMBERS_PER_RUN
from lazulite.app.services import tune_garbage_collector
from lazulite.table.operations.entity_read import EntityRead
from lazulite.table.operations.entity_writes import ValidatedWrite
from lazulite.traffic.meter import PENDING_MAX, Meter

WORKLOADS: Mapping[str, str] = {
    "point GET": "point GET by SAS, whole",
    "insert": "insert, 64 connections, whole",
}
"""The name of a row -> its case of `benchmarks.in_process`."""
OFF_CALLS: Mapping[str, tuple[str, type[EntityRead | ValidatedWrite]]] = {
    "point GET": ("if one._meter is not None: pass", EntityRead),
    "insert": ("one.note(None, 1)", ValidatedWrite),
}
"""What an operation does for a meter that is off, for each request."""
OFF, METER, RECORDER = "off", "meter", "recorder"
BOUNDS: Mapping[str, float] = {OFF: 1.01, METER: 1.05, RECORDER: 1.05}
"""What is measured -> the greatest ratio that is asked for."""
_REQUESTS = PENDING_MAX
"""The requests of a server in each of its blocks: so many a meter keeps before it counts them."""
_BLOCKS = 20
"""The blocks of a turn, for each server."""
_CALLS = 20_000


class Turn(NamedTuple):
    """What the servers took in a turn."""

    off: float
    """Microseconds of processor time for a request, without meter and recorder."""
    meter: float
    """The median of the ratios of neighbouring blocks, with a meter and without."""
    recorder: float
    """The same for the recorder."""


class TurnsClock:
    """The time of a server that others take turns with: its turns alone. A meter counts so many requests a second."""

    def __init__(self) -> None:
        self._before = time.time()
        self._since: float | None = None

    def __call__(self) -> float:
        """Return the seconds."""
        return self._before if self._since is None else self._before + time.perf_counter() - self._since

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have the time pass."""
        self._since = time.perf_counter()
        yield
        self._before, self._since = self(), None


async def measure(name: str, turns: int, blocks: int = _BLOCKS) -> list[Turn]:
    """Return the turns of a workload, one of `WORKLOADS`, with so many blocks of each server."""
    case = CASES[WORKLOADS[name]]
    rounds = max(_REQUESTS // case.workload.connections, 1)
    async with AsyncExitStack() as stack:
        clock = TurnsClock()
        sides = [Side(), Side(Meter(clock)), Side(recorded=True)]
        running = []
        for number, side in enumerate(sides):
            stack.push_async_callback(side.engine.close)
            for request in case.fill():
                await side.send(case, [request])
            running.append(await stack.enter_async_context(aclosing(side.rounds(case, number * NUMBERS_PER_RUN))))
        tune_garbage_collector()
        found = []
        for _ in range(turns + 1):
            times: list[list[float]] = [[] for _ in sides]
            for block in range(blocks):
                for each in range(len(sides)):  # Each block begins with another server.
                    at = (block + each) % len(sides)
                    with clock.running() if at == 1 else nullcontext():
                        times[at].append(fmean([await anext(running[at]) for _ in range(rounds)]))
            off = times[0]
            ratios = [median(map(truediv, others, off)) for others in times[1:]]
            found.append(Turn(median(off), *ratios))
    return found[1:]  # The first turn has warmed all.


def time_calls_when_off(name: str) -> float:
    """Return the microseconds that the calls of a meter which is off take for a request of `WORKLOADS`."""
    statement, operation = OFF_CALLS[name]
    one = operation.__new__(operation)
    for attribute in ("_meter", "_metered"):
        if hasattr(operation, attribute):
            setattr(one, attribute, None)
    return min(repeat(statement, globals={"one": one}, number=_CALLS)) / _CALLS * 1e6


def table(measured: Mapping[str, tuple[float, Sequence[Turn]]]) -> list[str]:
    """Return the lines of a table, by the names of workloads: of the time of calls that are off, and of the turns."""
    lines = ["| workload | server | µs a request | ÷ off, median of the turns | asked |", "|---|---|---:|---|---:|"]
    for workload, (calls_us, turns) in measured.items():
        took = median(each.off for each in turns)
        lines.append(f"| {workload} | {OFF} | {took:.1f} | {took / (took - calls_us):.3f} of none | {BOUNDS[OFF]} |")
        for name in (METER, RECORDER):
            ratios = sorted(getattr(each, name) for each in turns)
            spread = f"{median(ratios):.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f})"
            lines.append(f"| {workload} | {name} | {took * median(ratios):.1f} | {spread} | {BOUNDS[name]} |")
    return lines


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observers_cost", description=__doc__)
    parser.add_argument("--turns", type=int, default=20, help="of each server (%(default)s)")
    given = parser.parse_args()
    measured = {name: (time_calls_when_off(name), asyncio.run(measure(name, given.turns))) for name in WORKLOADS}
    print("\n".join(table(measured)))


if __name__ == "__main__":
    main()
