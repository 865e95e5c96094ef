"""The JavaScript SDK against the same server: installs it once, then runs node's own test runner on it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.issuer import TENANT
from tests.tokens import READER

from .bearers import secured
from .server import Account

HERE = Path(__file__).parent / "javascript"
INSTALL_SECONDS_MAX = 300
RUN_SECONDS_MAX = 300


def run(arguments: list[str], environment: dict[str, str], seconds_max: int) -> None:
    """Run a command; its whole output is the failure's text."""
    done = subprocess.run(
        arguments,
        cwd=HERE,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(arguments)} exited with {done.returncode}:\n{done.stdout}"


@pytest.fixture(scope="module")
def node() -> str:
    """The node executable, with the SDK installed beside the tests exactly as the lock file says."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed: the JavaScript SDK is not run")
    locked = (HERE / "package-lock.json").read_bytes()
    installed = HERE / "node_modules" / ".installed-lock.json"
    if not installed.exists() or installed.read_bytes() != locked:
        run([npm, "ci", "--no-audit", "--no-fund"], {}, INSTALL_SECONDS_MAX)
        installed.write_bytes(locked)
    return node


def test_the_javascript_sdk(node: str, account: Account) -> None:
    environment = {"LAZULITE_TEST_CONNECTION_STRING": account.connection_string, "NO_COLOR": "1"}
    run([node, "--test", "--test-reporter=spec"], environment, RUN_SECONDS_MAX)


def test_the_javascript_sdk_with_tokens(node: str, tmp_path: Path) -> None:
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
        run([node, "--test", "--test-reporter=spec", "bearer.mjs"], environment, RUN_SECONDS_MAX)


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (HERE / "package-lock.json").read_text(encoding="utf-8")
