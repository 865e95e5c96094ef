"""A short form of the campaign, and what it must find."""

from pathlib import Path

import pytest

from tests.torture.campaign import Budget, mutation_cases
from tests.torture.power.recorder import COMPILER, compiler_missing

from .crash import run
from .crash_mutations import MUTATIONS

SECONDS_MAX = 300
FOUND_WITHIN = 40
"""Kills. As a rule three show a mutation."""
SEEDS = {"blob-kept-garbage": 3, "blob-kept-orphans": 3}
"""Of mutations that the first seed shows only after many kills."""

pytestmark = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the faulty disk with")


def test_blobs_survive_kills_and_full_disks(tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 3), 1, tmp_path)
    assert report.problems == ()
    assert int(report.counts["files counted"]) > 0


@pytest.mark.parametrize("mutation", mutation_cases("blob-swept-all", [*MUTATIONS, "answer_from_memory"]))
def test_mutation_is_found(mutation: str, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, FOUND_WITHIN), SEEDS.get(mutation, 1), tmp_path, mutation)
    assert report.problems != ()
