"""The JavaScript SDKs, of today and of old, against a server: installed once, then driven by node's own test runner."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.issuer import TENANT
from tests.server_process import Account
from tests.tokens import READER

from .bearers import secured
from .environment import exclusive

SDKS = ["javascript", "javascript-legacy"]
"""Directories, each with the tests of one SDK."""
INSTALL_SECONDS_MAX = 300
RUN_SECONDS_MAX = 300


def run(directory: Path, arguments: list[str], environment: dict[str, str], seconds_max: int) -> None:
    """Run a command; its whole output is the failure's text."""
    done = subprocess.run(
        arguments,
        cwd=directory,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(arguments)} exited with {done.returncode}:\n{done.stdout}"


@pytest.fixture(scope="module", params=SDKS)
def directory(request: pytest.FixtureRequest) -> Path:
    """Tests with their SDK installed beside them exactly as the lock file says."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed: the JavaScript SDKs are not run")
    found = Path(__file__).parent / str(request.param)
    locked = (found / "package-lock.json").read_bytes()
    installed = found / "node_modules" / ".installed-lock.json"
    with exclusive(found.name):
        if not installed.exists() or installed.read_bytes() != locked:
            run(found, [npm, "ci", "--no-audit", "--no-fund"], {}, INSTALL_SECONDS_MAX)
            installed.write_bytes(locked)
    return found


def run_tests(directory: Path, account: Account) -> None:
    """Run all tests of a directory against an account. The old SDK rejects the keys of secondary endpoints."""
    connection_string = account.connection_string
    if directory.name == "javascript-legacy":
        connection_string = re.sub(r"\w+SecondaryEndpoint=[^;]*;", "", connection_string)
    environment = {"LAZULITE_TEST_CONNECTION_STRING": connection_string, "NO_COLOR": "1"}
    run(directory, ["node", "--test", "--test-reporter=spec"], environment, RUN_SECONDS_MAX)


def test_a_javascript_sdk(directory: Path, account: Account) -> None:
    run_tests(directory, account)


def test_a_javascript_sdk_with_an_account_of_another_name(directory: Path, named_account: Account) -> None:
    run_tests(directory, named_account)


@pytest.mark.parametrize("directory", ["javascript"], indirect=True)
def test_the_javascript_sdk_with_tokens(directory: Path, tmp_path: Path) -> None:
    with secured(tmp_path) as server:
        tokens = {
            "endpoint": server.endpoint,
            "tenant": TENANT,
            "contributor": server.token(),
            "reader": server.token(roles=[READER]),
            "expired": server.token(exp=0),
        }
        environment = {
            "LAZULITE_TEST_BEARER": json.dumps(tokens),
            "NODE_EXTRA_CA_CERTS": str(server.root),
            "NO_COLOR": "1",
        }
        run(directory, ["node", "--test", "--test-reporter=spec", "bearer.mjs"], environment, RUN_SECONDS_MAX)


@pytest.mark.parametrize("sdk", SDKS)
def test_the_lock_file_names_no_registry(sdk: str) -> None:
    assert '"resolved"' not in (Path(__file__).parent / sdk / "package-lock.json").read_text(encoding="utf-8")
