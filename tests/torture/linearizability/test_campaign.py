"""The campaign in short, and what it must not be content with."""

from pathlib import Path

import pytest

from tests.sdk.server import Server
from tests.torture.campaign import Budget

from .campaign import linearizability
from .on_postgres import PROCESSES, linearizability_on_postgres
from .sabotages import SABOTAGES, SABOTAGES_ON_POSTGRES

SECONDS_MAX = 120


def test_every_answer_fits_one_order(tmp_path: Path) -> None:
    report = linearizability(Budget(SECONDS_MAX, 3000), 1, tmp_path, round_operations=1000)
    assert report.problems == ()
    assert int(report.counts["operations"]) >= 3000
    assert int(report.counts["kills"]) >= 2


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_is_found(tmp_path: Path, name: str) -> None:
    def start(location: Path) -> list[Server]:
        return [Server.start(location, program=("tests.torture.sabotage", name))]

    report = linearizability(Budget(SECONDS_MAX, 20_000), 1, tmp_path, start, round_operations=400)
    assert any("no order explains" in problem for problem in report.problems)


def test_a_store_that_forgets_is_found(tmp_path: Path) -> None:
    def start(location: Path) -> list[Server]:
        return [Server.start(location, "--in-memory")]

    report = linearizability(Budget(SECONDS_MAX, 20_000), 1, tmp_path, start, round_operations=400)
    assert any("no order explains" in problem for problem in report.problems)
    assert list(tmp_path.glob("p*.history"))


def test_every_answer_of_three_processes_fits_one_order(tmp_path: Path) -> None:
    report = linearizability_on_postgres(Budget(SECONDS_MAX, 2000), 1, tmp_path, round_operations=1000)
    assert report.problems == ()
    assert int(report.counts["operations"]) >= 2000
    assert int(report.counts["crashes of the database"]) >= 1


@pytest.mark.parametrize("name", SABOTAGES_ON_POSTGRES)
def test_a_sabotage_of_three_processes_is_found(tmp_path: Path, name: str) -> None:
    processes = dict.fromkeys(PROCESSES, ("tests.torture.sabotage", name))
    report = linearizability_on_postgres(Budget(SECONDS_MAX, 20_000), 1, tmp_path, processes, round_operations=1000)
    assert any("no order explains" in problem for problem in report.problems)
