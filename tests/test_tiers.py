"""The tiers of tests: `make check` is a part of `make test`, which CI runs with coverage."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import NOT_IN_CHECK, ROOT

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


@pytest.mark.parametrize(("tier", "collects"), [("test", False), ("all", True)])
def test_mutations_for_campaigns_to_find_are_ci_s(tier: str, collects: bool) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--tier", tier, "tests/torture/test_clock.py"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout
    assert ("test_mutation_is_found" in found) is collects
    assert "test_timestamps_increase_and_deadlines_hold" in found


def test_campaigns_are_torture_and_fuzz() -> None:
    plan = planned("campaigns")
    assert "-m tests.torture --seconds 600" in plan
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
