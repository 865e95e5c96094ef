"""The distributions: built, installed with the base dependencies alone, and run from there.

The command and the module run from an empty environment, in another directory than the checkout's.
"""

import os
import shutil
import subprocess
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from azure.data.tables import TableServiceClient

from lazulite import __version__
from tests.server_process import FREE_PORTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
(BUILD,) = PROJECT["build-system"]["requires"]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
OPTIONAL = {"asyncpg", "cryptography", "jwt", "opentelemetry", "prometheus_client"}
START_SECONDS_MAX = 300


class Installed(NamedTuple):
    """An environment with the wheel, and the files that were built."""

    programs: Path
    sdist: Path
    wheel: Path

    def run(self, *command: str) -> str:
        return run(self.programs.parent.parent, str(self.programs / command[0]), *command[1:])


def run(directory: Path, *command: str) -> str:
    """Return what a command prints in a directory, in an environment without this project's variables."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LAZULITE_", "PYTHON", "COV"))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("package")
    for environment in ("build", "empty"):
        venv.create(place / environment, with_pip=True)
    build, empty = (str(place / each / "bin" / "python") for each in ("build", "empty"))
    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    if subprocess.run([build, *pip, "install", BUILD], capture_output=True, check=False, cwd=place).returncode:
        pytest.skip("no package index can be reached")
    checkout, built = place / "checkout", place / "built"
    checkout.mkdir()
    for source in SOURCES:
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, checkout / source)
    shutil.rmtree(checkout / "src" / "lazulite.egg-info", ignore_errors=True)
    run(checkout, build, "-c", f"from setuptools import build_meta; build_meta.build_sdist({str(built)!r})")
    (sdist,) = built.iterdir()
    # The wheel is made of the sdist, which so is shown to be whole.
    run(place, build, *pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(built), str(sdist))
    (wheel,) = built.glob("*.whl")
    run(place, empty, *pip, "install", "--only-binary", ":all:", str(wheel))
    return Installed(place / "empty" / "bin", sdist, wheel)


@pytest.fixture
def connection_string(installed: Installed, tmp_path: Path) -> Iterator[str]:
    flags = [*FREE_PORTS, "--location", str(tmp_path / "data")]
    command = [str(installed.programs / "lazulite"), "serve", *flags]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LAZULITE_", "PYTHON", "COV"))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environ) as process:
        try:
            assert process.stdout is not None
            yield next(line for line in process.stdout if "TableEndpoint=" in line).strip()
        finally:
            process.terminate()
            assert process.wait(START_SECONDS_MAX) == 0


def test_the_command_and_the_module_run_from_an_empty_environment(installed: Installed) -> None:
    expected = f"lazulite {__version__}\n"
    assert installed.run("lazulite", "--version") == expected
    assert installed.run("python", "-m", "lazulite", "--version") == expected


def test_an_entity_is_kept_by_a_server_with_base_dependencies(connection_string: str) -> None:
    with TableServiceClient.from_connection_string(connection_string, retry_total=0) as service:
        table = service.create_table("Orders")
        table.create_entity({"PartitionKey": "2026-11", "RowKey": "0001", "Total": 12.5})
        assert table.get_entity("2026-11", "0001")["Total"] == 12.5


def test_no_optional_package_is_installed(installed: Installed) -> None:
    found = installed.run("python", "-c", "import pkgutil; print(*(each.name for each in pkgutil.iter_modules()))")
    assert OPTIONAL.isdisjoint(found.split())
    assert {"httptools", "lazulite", "rocksdict", "uvloop"} <= set(found.split())


def test_the_distributions_hold_the_package_and_nothing_else(installed: Installed) -> None:
    package = ROOT / "src" / "lazulite"
    data = (package / "faults" / "presets", package / "ui" / "static")
    folders = chain.from_iterable(folder.iterdir() for folder in data)
    sources = [*package.rglob("*.py"), *package.rglob("*.html"), *folders]
    modules = {str(each.relative_to(ROOT / "src")) for each in sources}
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        metadata = wheel.read(f"lazulite-{__version__}.dist-info/METADATA").decode()
    assert names == modules | {"lazulite/py.typed"}
    with tarfile.open(installed.sdist) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    assert {f"src/{name}" for name in names} | {"LICENSE", "README.md", "pyproject.toml"} <= held
    headers = HeaderParser().parsestr(metadata)
    assert headers["Version"] == __version__
    assert set(headers.get_all("Provides-Extra", [])) >= {"all", "metrics", "oidc", "otel", "postgres", "tls"}


def test_the_version_is_the_package_s() -> None:
    assert PROJECT["project"]["version"] == __version__


def test_no_dependency_is_pinned() -> None:
    project = PROJECT["project"]
    for requirement in (*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())):
        assert "==" not in requirement
