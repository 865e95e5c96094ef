"""Measure ways to do the same by turns, so that each of them meets the same noise of the machine."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple


class Seconds(NamedTuple):
    """What one turn took."""

    wall: float
    cpu: float
    """Of this process, all threads."""

    def for_each(self, count: int) -> "Seconds":
        """Return what one of as many operations took."""
        return Seconds(self.wall / count, self.cpu / count)


def measure(work: Callable[[], object]) -> Seconds:
    """Return what a call takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def by_turns(ways: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, Seconds]:
    """Run each way once in each round, and return the median of each.

    Args:
        ways: by their names; each is called with the number of the round, from 0. Round 0 warms up and is left out.
        rounds: that count.
    """
    seen: dict[str, list[Seconds]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        names = list(ways)
        for name in names if number % 2 else reversed(names):
            taken = measure(lambda name=name, number=number: ways[name](number))  # type: ignore[misc] # bound here
            if number:
                seen[name].append(taken)
    return {
        name: Seconds(median(each.wall for each in turns), median(each.cpu for each in turns))
        for name, turns in seen.items()
    }
