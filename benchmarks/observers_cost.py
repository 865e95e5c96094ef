"""`python -m benchmarks.observers_cost`: the processor time that the meter and the recorder of requests take.

All servers are in this process and take turns, without sockets: one whose operations call no meter at all, one with the
meter switched off, one with a meter, and one whose requests are recorded for the explorer. A turn is a block of
requests, of which the median counts. Ratios are those of neighbouring blocks, so that other programs disturb few.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.in_process import Side
from benchmarks.in_process_cases import CASES
from benchmarks.workload import NUMBERS_PER_RUN
from lazulite.app.services import tune_garbage_collector
from lazulite.table.operations.entity_read import EntityRead
from lazulite.table.operations.entity_writes import ValidatedWrite

WORKLOADS: Mapping[str, str] = {
    "point GET": "point GET by SAS, whole",
    "insert": "insert, 64 connections, whole",
}
"""The name of a row -> its case of `benchmarks.in_process`."""
BARE, OFF, METER, RECORDER = "without calls", "off", "meter", "recorder"
BOUNDS: Mapping[str, tuple[str, float]] = {OFF: (BARE, 1.01), METER: (OFF, 1.05), RECORDER: (OFF, 1.05)}
"""What is measured -> what its time is divided by, and the greatest ratio that is asked for."""
_REQUESTS = 1024
"""The requests of a block."""


class Times(NamedTuple):
    """Microseconds of processor time for a request, of each turn, and by what the server has."""

    bare: float
    off: float
    meter: float
    recorder: float

    def of(self, name: str) -> float:
        """Return those of a server by its name in `BOUNDS`."""
        return self[(BARE, OFF, METER, RECORDER).index(name)]


@contextmanager
def _without_calls() -> Iterator[None]:
    """Have the operations of entities call no meter, whatever the server has."""

    def body(read: EntityRead, _partition: str, value: bytes | None) -> bytes:
        return b"" if value is None else read._writer.entity(value)

    def note(_write: ValidatedWrite, _entity: object, _bytes: object) -> None:
        """Count nothing."""

    with patch.object(EntityRead, "_body", body), patch.object(ValidatedWrite, "note", note):
        yield


async def _block(running: AsyncIterator[float], rounds: int) -> float:
    times = [await anext(running) for _ in range(rounds)]
    return median(times[rounds // 4 :])


async def measure(name: str, turns: int, requests: int = _REQUESTS) -> list[Times]:
    """Return the times of a workload, one of `WORKLOADS`, by turns of so many requests of each server."""
    case, found = CASES[WORKLOADS[name]], []
    rounds = max(requests // case.workload.connections, 4)
    async with AsyncExitStack() as stack:
        sides = [Side(), Side(), Side(metered=True), Side(recorded=True)]
        running = []
        for number, side in enumerate(sides):
            stack.push_async_callback(side.engine.close)
            for request in case.fill():
                await side.send(case, [request])
            running.append(await stack.enter_async_context(aclosing(side.rounds(case, number * NUMBERS_PER_RUN))))
        tune_garbage_collector()
        for turn in range(-1, turns):
            # Each turn begins with another server; the first turn warms all.
            times = dict.fromkeys(range(4), 0.0)
            for index in ((turn + each) % 4 for each in range(4)):
                if index:
                    times[index] = await _block(running[index], rounds)
                else:
                    with _without_calls():
                        times[index] = await _block(running[index], rounds)
            found.append(Times(*times.values()))
    return found[1:]


def table(measured: Mapping[str, Sequence[Times]]) -> list[str]:
    """Return the lines of a table of what was measured, by the names of workloads."""
    lines = ["| workload | server | µs a request | ÷ | median of the turns | asked |", "|---|---|---:|---|---|---:|"]
    for workload, turns in measured.items():
        for name, (other, bound) in BOUNDS.items():
            ratios = sorted(each.of(name) / each.of(other) for each in turns)
            quarter = len(ratios) // 4
            spread = f"{median(ratios):.3f} ({ratios[quarter]:.3f}–{ratios[-1 - quarter]:.3f})"
            took = median(each.of(name) for each in turns)
            lines.append(f"| {workload} | {name} | {took:.1f} | {other} | {spread} | {bound} |")
    return lines


def main() -> None:
    """Measure, and print a table; the range is that of the middle half of the turns."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observers_cost", description=__doc__)
    parser.add_argument("--turns", type=int, default=60, help="of each server (%(default)s)")
    given = parser.parse_args()
    print("\n".join(table({name: asyncio.run(measure(name, given.turns)) for name in WORKLOADS})))


if __name__ == "__main__":
    main()
