"""What the campaign `blobs-postgres` must find; CI has its clients and mutations in `test_crash`."""

from pathlib import Path

import pytest

from tests.torture.campaign import Budget

from .blobs_on_postgres import run

SECONDS_MAX = 300
FOUND_WITHIN = 20
"""Rounds. As a rule the first shows it."""


@pytest.mark.mutation
def test_a_sweep_that_takes_young_contents_is_found(tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, FOUND_WITHIN), 1, tmp_path, mutation="blob-database-swept-early")
    assert report.problems != ()
