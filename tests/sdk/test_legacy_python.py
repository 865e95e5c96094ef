"""The old Python SDKs, unmodified: each in an environment of its own, each case of its program one test here.

The programs and the pins of the SDKs are in `legacy`; `cases.py` there says how a program tells what it found.
"""

import ast
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from .environment import bare, environment
from .server import Account, Server

HERE = Path(__file__).parent / "legacy"
RUN_SECONDS_MAX = 120
PROGRAMS = {
    "azure-storage-0.33.0": "table_service.py",
    "azure-storage-0.36.0": "table_service.py",
    "azure-cosmosdb-table-1.0.6": "table_service.py",
}
"""Each SDK with its version, and the program that drives it."""
NAMED = "contoso:Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""An account of another name than the emulator's; its key is the public one, with which a server shows its address."""

Outcomes = Callable[[str, str], dict[str, str | None]]


def cases_of(program: str) -> list[str]:
    """The cases of a program, which cannot be imported here."""
    tree = ast.parse((HERE / program).read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


@pytest.fixture(scope="module")
def named_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """The account of another name, on a server of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAZULITE_ACCOUNTS", NAMED)
        server = Server.start(tmp_path_factory.mktemp("legacy") / "data")
    try:
        yield server.account
    finally:
        code = server.terminate()
    assert code == 0, f"the server answered SIGTERM with exit code {code}"


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """Run an SDK's program against an account, once; return what became of each case."""

    @cache
    def run(sdk: str, connection_string: str) -> dict[str, str | None]:
        done = subprocess.run(
            [environment(HERE / f"{sdk}.txt"), HERE / PROGRAMS[sdk]],
            env=bare() | {"LAZULITE_TEST_CONNECTION_STRING": connection_string, "NO_PROXY": "*"},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{sdk} exited with {done.returncode}:\n{done.stderr}"
        found: dict[str, str | None] = json.loads(done.stdout)
        return found

    return run


@pytest.mark.parametrize(("sdk", "case"), [(sdk, case) for sdk in PROGRAMS for case in cases_of(PROGRAMS[sdk])])
def test_an_old_sdk(sdk: str, case: str, account: Account, outcomes: Outcomes) -> None:
    failure = outcomes(sdk, account.connection_string)[case]
    if failure:
        pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("sdk", PROGRAMS)
def test_an_old_sdk_with_an_account_of_another_name(sdk: str, named_account: Account, outcomes: Outcomes) -> None:
    assert named_account.name == "contoso"
    found = outcomes(sdk, named_account.connection_string)
    assert list(found) == cases_of(PROGRAMS[sdk])
    failures = [failure for failure in found.values() if failure]
    assert not failures, "\n".join(failures)


def test_every_package_is_pinned() -> None:
    files = sorted(HERE.glob("*.txt"))
    assert [file.stem for file in files] == sorted(PROGRAMS)
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), file
        name, version = file.stem.rsplit("-", 1)
        assert f"{name}=={version}" in lines


def test_an_environment_is_installed_once_and_completed_if_it_was_interrupted(tmp_path: Path) -> None:
    requirements = tmp_path / "nothing.txt"
    requirements.touch()
    python = environment(requirements, tmp_path / "cache")
    made = python.stat().st_ctime_ns, (python.parents[1] / "pyvenv.cfg").stat().st_mtime_ns
    assert environment(requirements, tmp_path / "cache") == python
    assert ((python.stat().st_ctime_ns), (python.parents[1] / "pyvenv.cfg").stat().st_mtime_ns) == made
    (python.parents[1] / ".installed").unlink()
    (python.parents[1] / "half").touch()
    assert environment(requirements, tmp_path / "cache") == python
    assert not (python.parents[1] / "half").exists()
