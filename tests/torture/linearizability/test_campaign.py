"""The campaign in short, and what it must not be content with."""

from math import inf
from pathlib import Path

import pytest

from tests.postgres.engine_under_test import on_database
from tests.server_process import ServerProcess
from tests.torture.campaign import Budget, mutation_cases

from .campaign import linearizability
from .mutations import MUTATIONS, MUTATIONS_ON_POSTGRES
from .on_postgres import FORWARDING, PROCESSES, linearizability_on_postgres
from .on_workers import KILLS, linearizability_on_workers
from .worker_mutations import DETECTED_BY
from .worker_mutations import MUTATIONS as MUTATIONS_OF_WORKERS

MUTATED_SECONDS_MAX = 400
"""A mutation is found within a few kills. This is time for twenty and more, on a machine that is very busy."""
OF_ROCKSDB = pytest.mark.skipif(on_database(), reason="the mutations are those of RocksDB's engine")
AT_ONCE = pytest.mark.skipif(on_database(), reason="workers on a database know within two seconds, not at once")


def test_history_through_kills_is_linearizable(tmp_path: Path) -> None:
    report = linearizability(Budget(inf, 1200), 1, tmp_path, round_operations=600)
    assert report.problems == ()
    assert int(report.counts["operations"]) >= 1200
    assert int(report.counts["kills"]) >= 2


@OF_ROCKSDB
@pytest.mark.parametrize("name", mutation_cases("read-stale", MUTATIONS))
def test_mutation_is_found(tmp_path: Path, name: str) -> None:
    def start(location: Path) -> list[ServerProcess]:
        return [ServerProcess.start(location, program=("tests.torture.mutations", name))]

    report = linearizability(Budget(MUTATED_SECONDS_MAX, 20_000), 1, tmp_path, start, round_operations=400)
    assert any("no order explains" in problem for problem in report.problems), report


@pytest.mark.mutation
def test_store_in_memory_is_found(tmp_path: Path) -> None:
    def start(location: Path) -> list[ServerProcess]:
        return [ServerProcess.start(location, "--in-memory")]

    report = linearizability(Budget(MUTATED_SECONDS_MAX, 20_000), 1, tmp_path, start, round_operations=400)
    assert any("no order explains" in problem for problem in report.problems)
    assert list(tmp_path.glob("p*.history"))


def test_history_of_three_processes_is_linearizable(tmp_path: Path) -> None:
    report = linearizability_on_postgres(Budget(inf, 800), 1, tmp_path, round_operations=400)
    assert report.problems == ()
    assert int(report.counts["operations"]) >= 800
    assert int(report.counts["crashes of the database"]) >= 1


def test_history_of_processes_that_commit_for_each_other_is_linearizable(tmp_path: Path) -> None:
    two = {seconds: FORWARDING[seconds] for seconds in (0, -3)}
    report = linearizability_on_postgres(Budget(inf, 800), 1, tmp_path, two, round_operations=400)
    assert report.problems == ()
    assert int(report.counts["operations"]) >= 800
    assert int(report.counts["crashes of the database"]) >= 1


@pytest.mark.parametrize("name", mutation_cases("write-whatever-others-wrote", MUTATIONS_ON_POSTGRES))
def test_mutation_of_three_processes_is_found(tmp_path: Path, name: str) -> None:
    processes = dict.fromkeys(PROCESSES, ("tests.torture.mutations", name))
    report = linearizability_on_postgres(
        Budget(MUTATED_SECONDS_MAX, 20_000), 1, tmp_path, processes, round_operations=400
    )
    assert any("no order explains" in problem for problem in report.problems), report


@AT_ONCE
def test_history_of_killed_workers_is_linearizable(tmp_path: Path) -> None:
    report = linearizability_on_workers(Budget(inf, 1000), 1, tmp_path, round_operations=500)
    assert report.problems == ()
    assert int(report.counts["operations"]) >= 1000
    assert int(report.counts["kills of workers"]) >= KILLS
    assert int(report.counts["tables created and deleted"]) > 0


@AT_ONCE
@pytest.mark.parametrize("name", mutation_cases("cache-rows", MUTATIONS_OF_WORKERS))
def test_mutation_of_workers_is_found(tmp_path: Path, name: str) -> None:
    report = linearizability_on_workers(Budget(MUTATED_SECONDS_MAX, 20_000), 1, tmp_path, name, round_operations=500)
    assert any(DETECTED_BY[name] in problem for problem in report.problems), report
