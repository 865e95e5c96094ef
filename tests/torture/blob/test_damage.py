"""A short form of the campaign, and what it must find."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server_process import LAZULITE, Program
from tests.torture.campaign import Budget, Report, mutation_cases

from .damage import DAMAGES_MIN, on_files, on_postgres

SECONDS_MAX = 300

Run = Callable[[Budget, int, Path, Program], Report]


@pytest.mark.parametrize("run", [on_files, on_postgres])
def test_reads_and_checks_notice_damaged_content(run: Run, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, DAMAGES_MIN), 1, tmp_path, LAZULITE)
    assert report.problems == ()
    assert int(report.counts["reads broken off"]) > 0


@pytest.mark.parametrize(
    ("run", "mutation"),
    mutation_cases(
        "blob-unchecked-files",
        [
            (on_files, "blob-unchecked-files"),
            (on_files, "blob-unclaimed-files"),
            (on_postgres, "blob-unchecked-rows"),
        ],
    ),
)
def test_mutation_is_found(run: Run, mutation: str, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 4 * DAMAGES_MIN), 1, tmp_path, ("tests.torture.mutations", mutation))
    assert report.problems != ()
