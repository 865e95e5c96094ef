"""The old Python SDKs, unmodified: each in an environment of its own, each case of its program one test here.

The programs and the pins of the SDKs are in `legacy`; `cases.py` there says how a program tells what it found.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from tests.server_process import Account

from .environment import cases_of, environment
from .environment import outcomes as run_cases

HERE = Path(__file__).parent / "legacy"
NEEDS = {"queue_service.py": "QueueEndpoint=", "blob_service.py": "BlobEndpoint="}
"""A program, and what a connection string must have for it."""
QUEUES, BLOBS = NEEDS
TABLES = ("table_service.py", "table_values.py", "table_access.py")
RUNS = (
    ("azure-storage-0.20.3", "table_service_atom.py"),
    *product(("azure-storage-0.33.0", "azure-storage-0.36.0", "azure-cosmosdb-table-1.0.6"), TABLES),
    *product(("azure-storage-0.36.0", "azure-storage-queue-2.1.0"), (QUEUES,)),
    *product(("azure-storage-0.36.0", "azure-storage-blob-2.1.0"), (BLOBS,)),
)
"""Each SDK with its version, and a program that drives it."""
Outcomes = Callable[[str, str, str], dict[str, str | None]]
"""Takes an SDK, a program and a connection string to the failure of each case, or None."""


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """Run an SDK's program against an account, once; return what became of each case."""

    @cache
    def run(sdk: str, program: str, connection_string: str) -> dict[str, str | None]:
        if NEEDS.get(program, "") not in connection_string:
            pytest.skip("the account has no such service")
        return run_cases(HERE / f"{sdk}.txt", HERE / program, connection_string)

    return run


@pytest.mark.parametrize(
    ("sdk", "program", "case"), [(*each, case) for each in RUNS for case in cases_of(HERE / each[1])]
)
def test_an_old_sdk(sdk: str, program: str, case: str, account: Account, outcomes: Outcomes) -> None:
    failure = outcomes(sdk, program, account.connection_string)[case]
    if failure:
        pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize(("sdk", "program"), RUNS, ids=["-".join(each) for each in RUNS])
def test_an_old_sdk_with_an_account_of_another_name(
    sdk: str, program: str, named_account: Account, outcomes: Outcomes
) -> None:
    found = outcomes(sdk, program, named_account.connection_string)
    assert list(found) == cases_of(HERE / program)
    failures = [failure for failure in found.values() if failure]
    assert not failures, "\n".join(failures)


def test_every_package_is_pinned() -> None:
    files = sorted(HERE.glob("*.txt"))
    assert [file.stem for file in files] == sorted({sdk for sdk, _ in RUNS})
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), file
        name, version = file.stem.rsplit("-", 1)
        assert f"{name}=={version}" in lines


def test_environment_is_installed_once_or_again_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[str] = []

    def install(*command: str) -> None:
        commands.append(next(word for word in command if word in {"venv", "install", "check"}))
        if "venv" in command:
            assert "--clear" in command
            Path(command[-1]).mkdir(exist_ok=True)

    monkeypatch.setattr(f"{environment.__module__}._run", install)
    requirements = tmp_path / "sdk-1.0.txt"
    requirements.write_text("sdk==1.0\n", encoding="utf-8")
    python = environment(requirements, tmp_path / "cache")
    assert environment(requirements, tmp_path / "cache") == python
    assert commands == ["venv", "install", "check"]
    (python.parents[1] / ".installed").unlink()
    assert environment(requirements, tmp_path / "cache") == python
    assert commands == ["venv", "install", "check"] * 2
    requirements.write_text("sdk==1.1\n", encoding="utf-8")
    assert environment(requirements, tmp_path / "cache") != python
