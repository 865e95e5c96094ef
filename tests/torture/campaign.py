"""What the campaigns share: how long one lasts, what it reports.

A campaign drives a real server process through the worst of days, over and over, and holds what it observes against an
account kept outside the server. Every number in its report is a count of what was done and checked, not of what was
planned.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest


class Budget:
    """When a campaign ends: its time is up, or it has done as much as was asked."""

    def __init__(self, seconds: float, goal: int | None = None) -> None:
        """`goal` counts in the campaign's own unit (`Campaign.unit`); None: only the time ends it."""
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._goal = goal

    def more(self, done: int) -> bool:
        """Say whether to go on, `done` units having been done. The first unit is always granted."""
        return done == 0 or (time.monotonic() < self._end and (self._goal is None or done < self._goal))

    def shares(self, count: int) -> Iterator["Budget"]:
        """Yield as many budgets, one to be spent after the other: the time is shared out, each has the whole goal."""
        for _ in range(count):
            yield Budget(self._seconds / count, self._goal)


@dataclass(frozen=True)
class Report:
    """What a campaign did and found.

    Attributes:
        counts: what was done and checked, by name, in the order to print.
        problems: broken promises, a sentence each.
    """

    counts: Mapping[str, int | str]
    problems: tuple[str, ...] = ()


class Servers(Protocol):
    """What serves the clients of a campaign in rounds, and breaks meanwhile."""

    async def again(self) -> None:
        """Start for a round."""
        ...

    async def disturb(self) -> None:
        """Break something while clients work; return when their round is to end."""
        ...

    async def end(self) -> None:
        """End the servers so that nothing can take effect any more."""
        ...

    async def close(self) -> None:
        """End whatever runs."""
        ...


class Campaign(NamedTuple):
    """One kind of worst day.

    Attributes:
        promise: what must hold, a sentence.
        unit: what is counted towards a goal: "kills", "power cuts", "operations".
        weight: its share of the time of a run of all campaigns.
        run: works in an empty directory until the budget is spent, all randomness from the seed.
    """

    promise: str
    unit: str
    weight: int
    run: Callable[[Budget, int, Path], Report]


def mutation_cases(in_ci: str, cases: Iterable[str | tuple[object, ...]]) -> list["pytest.ParameterSet"]:
    """Return the cases of a test that a campaign finds mutations: CI runs one of them, `make mutations` all.

    Args:
        in_ci: the name of the case that CI runs: a mutation that is found early.
        cases: the parameters of each. Their texts, with blanks between them, are its name.

    Raises:
        ValueError: not one case has the name.
    """
    parameters = [(case,) if isinstance(case, str) else case for case in cases]
    names = [" ".join(each for each in values if isinstance(each, str)).strip() for values in parameters]
    if names.count(in_ci) != 1:
        raise ValueError(f"{in_ci} is not one of {names}")
    marks = [pytest.mark.campaign if name == in_ci else pytest.mark.mutation for name in names]
    return [pytest.param(*values, marks=mark) for values, mark in zip(parameters, marks, strict=True)]
