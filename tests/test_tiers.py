"""The tiers of tests: `make check` is a part of `make test`, which CI runs with coverage."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import NOT_IN_CHECK, ROOT
from .torture.campaign import mutation_cases

CHECKOUT = ROOT.parent


def planned(target: str) -> str:
    command = ["make", "-n", target]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout


def test_each_path_that_check_leaves_out_exists() -> None:
    paths = [each for paths in NOT_IN_CHECK.values() for each in paths]
    assert [each for each in paths if not (ROOT / each).exists()] == []
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("part", ["ruff check", "ruff format --check", "bin/mypy", "lint-imports", "-m pytest"])
def test_both_tiers_lint_and_run_tests(part: str) -> None:
    assert part in planned("check")
    assert part in planned("test")


def test_each_target_has_its_tier_and_only_ci_measures_coverage() -> None:
    plans = {target: planned(target) for target in ("check", "test", "coverage")}
    flags = {
        "check": "--tier check --deselect patterns/tests",
        "test": "--tier test",
        "coverage": "--cov --cov-report=term:skip-covered",
    }
    assert len({plan.replace(flags[target], "") for target, plan in plans.items()}) == 1


@pytest.mark.parametrize(("tier", "mutations", "others"), [("test", 0, 1), ("ci", 1, 1), ("mutations", 3, 0)])
def test_one_mutation_of_each_campaign_is_found_in_ci(tier: str, mutations: int, others: int) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--tier", tier, "tests/torture/test_clock.py"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT).stdout
    assert found.count("::test_mutation_is_found") == mutations
    assert found.count("::test_timestamps_increase_and_deadlines_hold") == others


def test_the_mutation_for_ci_is_a_case() -> None:
    cases = mutation_cases("b", ["a", ("b", 1), ("c", "d")])
    assert [[mark.name for mark in case.marks] for case in cases] == [["mutation"], ["campaign"], ["mutation"]]
    with pytest.raises(ValueError, match="c is not one of"):
        mutation_cases("c", [("c", "d")])


def test_campaigns_are_torture_mutations_and_fuzz() -> None:
    plan = planned("campaigns")
    assert "-m tests.torture --seconds 600" in plan
    assert "--tier mutations tests/torture" in plan
    assert "-m tests.fuzz --seconds 60" in plan


def test_ci_runs_make_coverage() -> None:
    lines = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("make")] == ["make coverage"]


def test_what_check_leaves_out_is_not_imported(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    hook = pytestconfig.pluginmanager.hook.pytest_ignore_collect
    tier = pytestconfig.getoption("--tier")
    for each in (ROOT / "sdk", ROOT / "test_package.py"):
        assert hook(collection_path=each, config=pytestconfig) is (True if tier == "check" else None)
    assert hook(collection_path=tmp_path, config=pytestconfig) is None
