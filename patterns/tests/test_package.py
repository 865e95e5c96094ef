"""The distributions: built, installed with the base dependencies alone, and used from there as the README says."""

import os
import shutil
import subprocess
import tarfile
import tomllib
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

from .test_docs import ROOT, fences

BASE = {"azure-core", "azure-data-tables", "msgspec"}
EXTRAS = {"aiohttp", "azure.storage", "cryptography", "lazulite", "pydantic", "rich"}
SOURCES = (
    *("CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"),
    *("docs", "examples", "simulation", "src", "tests"),
)
UNBUILT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")


class Built(NamedTuple):
    """An environment with the wheel, and the archive that the wheel was made of."""

    python: str
    sdist: Path


def run(directory: Path, *command: str, **variables: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=directory, env={**environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    place = tmp_path_factory.mktemp("package")
    for environment in ("build", "empty"):
        venv.create(place / environment, with_pip=True)
    programs = "Scripts" if os.name == "nt" else "bin"
    build, empty = (str(place / each / programs / "python") for each in ("build", "empty"))
    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requires = project["build-system"]["requires"]
    if subprocess.run([build, *pip, "install", *requires], capture_output=True, check=False, cwd=place).returncode:
        pytest.skip("no package index can be reached")
    copy, archives = place / "copy", place / "archives"
    copy.mkdir()
    for each in SOURCES:
        if (ROOT / each).is_dir():
            shutil.copytree(ROOT / each, copy / each, ignore=UNBUILT)
        else:
            shutil.copy(ROOT / each, copy / each)
    run(copy, build, "-c", f"from setuptools import build_meta; build_meta.build_sdist({str(archives)!r})")
    (sdist,) = archives.iterdir()
    wheel = (*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(archives), str(sdist))
    run(place, build, *wheel)
    run(place, empty, *pip, "install", str(next(archives.glob("*.whl"))))
    return Built(empty, sdist)


def test_the_base_needs_three_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {each.partition(">=")[0] for each in project["dependencies"]} == BASE


def test_first_steps_need_no_extra(built: Built, tmp_path: Path, connection_string: str) -> None:
    code, printed = (next(text for kind, text in fences("README.md") if kind == each) for each in ("python", "output"))
    (tmp_path / "first_steps.py").write_text(code, encoding="utf-8")
    found = run(tmp_path, built.python, "first_steps.py", STORAGE_CONNECTION_STRING=connection_string)
    assert found.splitlines() == printed.splitlines()
    absent = f"from importlib.util import find_spec; print([each for each in {sorted(EXTRAS)!r} if find_spec(each)])"
    assert run(tmp_path, built.python, "-c", absent).strip() == "[]"


def test_the_archive_has_pages_examples_and_all_tests(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    folders = {"docs": "*.md", "examples": "*.py", "simulation": "*.py", "src": "*.py", "tests": "*.py"}
    wanted = {
        each.relative_to(ROOT).as_posix() for folder, name in folders.items() for each in (ROOT / folder).rglob(name)
    }
    assert wanted - held == set()
    assert "src/lazulite_patterns/py.typed" in held


def test_the_installed_package_has_the_pages(built: Built, tmp_path: Path) -> None:
    code = "import lazulite_patterns, os; print(*sorted(os.listdir(lazulite_patterns.__path__[0] + '/docs')))"
    held = run(tmp_path, built.python, "-c", code).split()
    assert held == sorted(each.name for each in (ROOT / "docs").iterdir())
