"""The campaign in short, and what it must not be content with."""

from pathlib import Path

import pytest

from tests.torture.campaign import Budget, mutation_cases

from .campaign import run
from .mutations import MUTATIONS

SECONDS_MAX = 300
FOUND_WITHIN = 40
"""Kills. As a rule the first shows a mutation."""


def test_leases_and_conditions_are_linearizable_through_kills(tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 2), 1, tmp_path)
    assert report.problems == ()
    assert int(report.counts["lease actions"]) > 0
    assert int(report.counts["writes"]) > 0


@pytest.mark.parametrize(
    "mutation", mutation_cases("blob-unchecked-append", [*MUTATIONS, "check-then-write", "answer_from_memory"])
)
def test_mutation_is_found(mutation: str, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, FOUND_WITHIN), 1, tmp_path, mutation)
    assert any("no order explains" in problem for problem in report.problems), report
