"""Measure ways to do the same by turns, so that each of them meets the same noise of the machine."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple


class Seconds(NamedTuple):
    """What one turn took."""

    wall: float
    cpu: float
    """The time of this process, all threads."""

    def for_each(self, count: int) -> "Seconds":
        """Return what one of as many operations took."""
        return Seconds(self.wall / count, self.cpu / count)


class Turns(NamedTuple):
    """What the turns of one way took, in the order of the rounds."""

    turns: tuple[Seconds, ...]

    def for_each(self, count: int) -> "Turns":
        """Return what one of as many operations took, in each turn."""
        return Turns(tuple(each.for_each(count) for each in self.turns))

    @property
    def median(self) -> Seconds:
        """The median of the turns."""
        return Seconds(median(each.wall for each in self.turns), median(each.cpu for each in self.turns))

    def ratio(self, other: "Turns") -> Seconds:
        """Return the median over the rounds of the ratio to another way.

        Both turns of a round are next to each other. Work of other processes that lasts for some rounds slows both.
        """
        rounds = list(zip(self.turns, other.turns, strict=True))
        return Seconds(
            median(own.wall / another.wall for own, another in rounds),
            median(own.cpu / another.cpu for own, another in rounds),
        )


def measure(work: Callable[[], object]) -> Seconds:
    """Return what a call takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def by_turns(ways: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, Turns]:
    """Run each way once in each round, and return what each turn took.

    Args:
        ways: by their names; each is called with the number of the round, from 0. Round 0 warms up and is left out.
        rounds: that count.
    """
    taken: dict[str, list[Seconds]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        names = list(ways)
        for name in names if number % 2 else reversed(names):
            seconds = measure(lambda name=name, number=number: ways[name](number))  # type: ignore[misc] # bound here
            if number:
                taken[name].append(seconds)
    return {name: Turns(tuple(turns)) for name, turns in taken.items()}
