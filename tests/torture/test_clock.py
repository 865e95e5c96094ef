"""A short form of the clock campaign, and what it must find."""

from pathlib import Path

import pytest

from .campaign import Budget, mutation_cases
from .clock import run

SECONDS_MAX = 300


def test_timestamps_increase_and_deadlines_hold_while_the_clock_steps(tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 2), 2, tmp_path)
    assert report.problems == ()
    assert report.counts["restarts"] == 2
    assert {"Shared Key: 403", "SAS forever: 200", "batch"} <= report.counts.keys()


@pytest.mark.parametrize(
    "mutation", mutation_cases("timestamp_by_clock", ["timestamp_by_clock", "forget_timestamp", "wall_deadlines"])
)
def test_mutation_is_found(mutation: str, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 100), 1, tmp_path, ("tests.torture.mutations", mutation))
    assert report.problems != ()
