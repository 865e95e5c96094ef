"""Mutations that the campaign must find. Each test makes a cluster, so the programs must have the extension."""

import os
from pathlib import Path

import pytest

from tests.torture.campaign import Budget, mutation_cases

from .campaign import PARTS
from .cluster import Cluster, is_installed

SECONDS_MAX = 300
OF_A_SLOW_MACHINE = "AssertionError", "LostConnectionError", "after the start", "requests were not answered"
"""Problems that are no finding of the checker."""
GOALS = {"tables": 20_000, "queues": 40, "blobs": 20}
MUTATIONS = (
    ("tables", "answer-before-commit"),
    ("tables", "failed-write-succeeds"),
    ("tables", "failed-read-is-empty"),
    ("tables", "statements-apart"),
    ("tables", "version-unchecked"),
    ("queues", "failed-write-succeeds"),
    ("queues", "version-unchecked"),
    ("queues", "drop-forgotten"),
    ("blobs", "version-unchecked"),
)


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if "LAZULITE_TEST_POSTGRES_BIN" not in os.environ or not is_installed():
        pytest.skip("LAZULITE_TEST_POSTGRES_BIN names no PostgreSQL with Citus")


@pytest.mark.parametrize(("part", "mutation"), mutation_cases("tables answer-before-commit", MUTATIONS))
def test_mutation_is_found(part: str, mutation: str, tmp_path: Path) -> None:
    with Cluster() as cluster:
        report = PARTS[part](cluster, Budget(SECONDS_MAX, GOALS[part]), 1, tmp_path, f"citus-{mutation}")
    found = [problem for problem in report.problems if not problem.startswith(OF_A_SLOW_MACHINE)]
    assert found, report
