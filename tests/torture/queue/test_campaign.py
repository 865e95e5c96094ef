"""Short forms of the campaigns of queues."""

from pathlib import Path

import pytest

from tests.torture.campaign import Budget, mutation_cases
from tests.torture.power.recorder import COMPILER, compiler_missing

from . import campaign, failover, on_postgres, power
from .mutations import MUTATIONS as BY_KILLS
from .servers import STEPPING

SECONDS_MAX = 300
WITH_COMPILER = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")


def test_messages_are_accounted_for_through_kills(tmp_path: Path) -> None:
    report = campaign.run(Budget(SECONDS_MAX, 3), 1, tmp_path)
    assert report.problems == ()
    assert int(report.counts["kills"]) >= 3
    assert int(report.counts["deletes"]) > 0


@WITH_COMPILER
def test_messages_are_accounted_for_through_power_cuts(tmp_path: Path) -> None:
    report = power.run(Budget(SECONDS_MAX, 2), 1, tmp_path)
    assert report.problems == ()
    assert int(report.counts["power cuts"]) >= 2
    assert int(report.counts["deletes"]) > 0


def test_messages_of_several_processes_are_accounted_for(tmp_path: Path) -> None:
    report = on_postgres.run(Budget(SECONDS_MAX, 1), 1, tmp_path, {0: STEPPING, 1: "scripts"})
    assert report.problems == ()
    assert int(report.counts["deletes"]) > 0


@pytest.mark.mutation  # It takes a minute; `tests/engine/postgres/test_failures.py` fails over in CI.
def test_messages_are_accounted_for_through_a_failover(tmp_path: Path) -> None:
    report = failover.run(Budget(SECONDS_MAX, 1), 1, tmp_path, {0: STEPPING, 1: "scripts"})
    assert report.problems == ()
    assert int(report.counts["failovers"]) >= 1
    assert int(report.counts["deletes"]) > 0


FOUND_WITHIN = 60
"""Kills. As a rule the first queue shows a mutation, after four kills at most."""
SEEDS = {"queue-barrier-forgotten": 4, "queue-hand-out-twice": 2}
"""Of mutations that the first seed shows only after many kills, or in a long epoch."""


@pytest.mark.parametrize("mutation", mutation_cases("queue-hand-out-twice", [*BY_KILLS, "answer_from_memory"]))
def test_mutation_is_found(mutation: str, tmp_path: Path) -> None:
    report = campaign.run(Budget(SECONDS_MAX, FOUND_WITHIN), SEEDS.get(mutation, 1), tmp_path, mutation)
    assert report.problems != ()


@pytest.mark.mutation
def test_replication_that_is_not_synchronous_is_found(tmp_path: Path) -> None:
    settings = ("synchronous_commit = 'local'", "synchronous_standby_names = ''")
    report = failover.run(Budget(SECONDS_MAX, FOUND_WITHIN), 1, tmp_path, {0: STEPPING}, settings=settings)
    assert report.problems != ()


@WITH_COMPILER
@pytest.mark.parametrize(
    ("mutation", "finding"),
    mutation_cases("sync-nothing", [("sync-nothing", ""), ("answer-early", "message "), ("show-unsynced", "")]),
)
def test_mutation_is_found_by_power_cuts(mutation: str, finding: str, tmp_path: Path) -> None:
    mix = power.MIX._replace(early=0, in_sync=1, hindsight=0)
    report = power.run(Budget(SECONDS_MAX, FOUND_WITHIN), 1, tmp_path, mutation, mix)
    assert any(problem.startswith(finding) for problem in report.problems)
