"""The tiers of tests: `make check` is a part of `make test`, which CI runs with coverage."""

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .conftest import NOT_IN_CHECK, ROOT
from .torture.campaign import mutation_cases

CHECKOUT = ROOT.parent


def planned(target: str) -> str:
    command = ["make", "-n", target]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout


class Copy:
    """A checkout's Makefile, and a `.venv` whose Python is another one."""

    def __init__(self, directory: Path, python: str) -> None:
        self.directory = directory
        (directory / ".venv/bin").mkdir(parents=True)
        interpreter = directory / ".venv/bin/python"
        interpreter.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        interpreter.chmod(0o755)
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(CHECKOUT / name, directory / name)
        (directory / ".venv/.runtime").touch()

    def make(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = ["make", *arguments]
        environ = {
            name: value for name, value in os.environ.items() if name not in ("PYTHON", "MAKEFLAGS", "MAKELEVEL")
        }
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.directory, env=environ)


THIS_PYTHON = f'exec {shlex.quote(sys.executable)} "$@"'
NEW_VENV = "-m venv --clear .venv"


def test_a_venv_of_an_old_python_or_without_pip_is_made_again(tmp_path: Path) -> None:
    plan = Copy(tmp_path / "right", THIS_PYTHON).make("-n", "serve").stdout
    assert NEW_VENV not in plan
    assert plan == "exec .venv/bin/lazulite serve \n"
    without_pip = f'case "$*" in *pip*) exit 1;; esac; {THIS_PYTHON}'
    for number, python in enumerate(("exit 1", "exit 0", without_pip)):
        plan = Copy(tmp_path / str(number), python).make("-n", "serve").stdout
        steps = [plan.find(step) for step in (NEW_VENV, "pip install", ".venv/bin/lazulite serve")]
        assert -1 not in steps, plan
        assert steps == sorted(steps)


def test_another_python_that_is_asked_for_gets_a_venv_of_its_own(tmp_path: Path) -> None:
    copy = Copy(tmp_path, THIS_PYTHON)
    same, other = tmp_path / "same", tmp_path / "other"
    same.write_text(f"#!/bin/sh\n{THIS_PYTHON}\n", encoding="utf-8")
    other.write_text("#!/bin/sh\necho 3.99\n", encoding="utf-8")
    for path, expected in ((same, False), (other, True)):
        path.chmod(0o755)
        assert (NEW_VENV in copy.make("-n", "serve", f"PYTHON={path}").stdout) == expected


def test_without_a_python_that_fits_make_says_so_and_leaves_the_venv(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "exit 1")
    made = copy.make("serve", "PYTHON=false")
    assert made.returncode == 2
    assert made.stderr.startswith("Lazulite needs Python 3.11 or newer, which 'false' is not: run make with PYTHON=")
    assert (tmp_path / ".venv/bin/python").exists()


def test_the_oldest_python_of_the_makefile_is_that_of_the_package() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    assert f"sys.version_info >= ({oldest.replace('.', ', ')})" in makefile
    assert f"Lazulite needs Python {oldest} or newer" in makefile


def test_programs_that_a_user_saves_in_the_checkout_are_not_linted(tmp_path: Path) -> None:
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    for name in ("orders.py", "mine/program.py", "src/lazulite/own.py", "tests/test_own.py", "patterns/src/own.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    command = [sys.executable, "-m", "ruff", "check", "--show-files", "."]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert sorted(Path(line).relative_to(tmp_path).as_posix() for line in shown.splitlines()) == [
        "patterns/src/own.py",
        "pyproject.toml",
        "src/lazulite/own.py",
        "tests/test_own.py",
    ]


def test_each_path_that_check_leaves_out_exists() -> None:
    paths = [each for paths in NOT_IN_CHECK.values() for each in paths]
    assert [each for each in paths if not (ROOT / each).exists()] == []
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("part", ["ruff check", "ruff format --check", "bin/mypy", "lint-imports", "-m pytest"])
def test_both_tiers_lint_and_run_tests(part: str) -> None:
    assert part in planned("check")
    assert part in planned("test")


def test_each_target_has_its_tier_and_one_measures_coverage() -> None:
    plans = {target: planned(target) for target in ("check", "test", "ci", "coverage")}
    flags = {
        "check": "--tier check -o testpaths=tests",
        "test": "--tier test",
        "ci": "--tier ci",
        "coverage": "--cov --cov-report=term:skip-covered",
    }
    assert len({plan.replace(flags[target], "") for target, plan in plans.items()}) == 1


@pytest.mark.parametrize(("failing", "code"), [("", 0), ("mypy", 2), ("python", 2)])
def test_lint_and_tests_run_to_their_ends_side_by_side(tmp_path: Path, failing: str, code: int) -> None:
    copy = Copy(tmp_path, f"case $* in *pytest*) echo tested; exit {int(failing == 'python')};; esac; {THIS_PYTHON}")
    for name in ("ruff", "mypy", "lint-imports"):
        tool = tmp_path / ".venv/bin" / name
        tool.write_text(f"#!/bin/sh\necho linted by {name}\nexit {int(failing == name)}\n", encoding="utf-8")
        tool.chmod(0o755)
    for package in ("patterns", "patterns/simulation"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "pyproject.toml").touch()
    (tmp_path / ".venv/.test").touch()
    made = copy.make("check")
    assert made.returncode == code, made.stderr
    assert "tested\n" in made.stdout
    assert "linted by mypy\n" in made.stdout
    assert ("linted by lint-imports\n" in made.stdout) == (failing != "mypy")


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


def test_newer_pythons_run_the_tests_of_the_request_path_if_they_are_there() -> None:
    made = subprocess.run(
        ["make", "--silent", "--no-print-directory", "versions", "NEWER_PYTHONS=no-such-python"],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
    )
    assert made.stdout == "skipped: no-such-python is not installed\n"
    assert "tests/protocol tests/auth" in planned("versions")


def test_ci_runs_all_tests_and_some_on_other_versions() -> None:
    lines = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("make")] == ["make ci", "make versions"]


def test_what_check_leaves_out_is_not_imported(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    hook = pytestconfig.pluginmanager.hook.pytest_ignore_collect
    tier = pytestconfig.getoption("--tier")
    for each in (ROOT / "sdk", ROOT / "test_package.py"):
        assert hook(collection_path=each, config=pytestconfig) is (True if tier == "check" else None)
    assert hook(collection_path=tmp_path, config=pytestconfig) is None
