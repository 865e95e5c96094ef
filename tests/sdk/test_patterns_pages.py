"""The pages and the example of the pattern library print the same against the emulator Azurite.

`benchmarks/azurite` pins the emulator. Its checks of the version are off, as the SDKs are newer than it is.
"""

import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from benchmarks.subjects import free_port, install_azurite

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT

from .environment import ROOT, exclusive

AZURITE = ROOT / "benchmarks" / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"
NAME, KEY = DEVELOPMENT_ACCOUNT.name, b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()
SERVICES = ("blob", "queue", "table")
ATTEMPTS = 5
"""Starts, as another process may take a port that was free."""
OTHERS = {
    "fat": "Azurite counts the sizes of properties in another way, and rejects the last part",
    "sas": "Azurite does not check the range of keys of a signature",
}
"""The pages that print something else, and why."""
PAGES_SECONDS_MAX = 600


@contextmanager
def azurite(location: Path) -> Iterator[str]:
    """Run the emulator, and yield the connection string of its account."""
    for _ in range(ATTEMPTS):
        ports = {service: free_port() for service in SERVICES}
        flags = [part for service, port in ports.items() for part in (f"--{service}Port", str(port))]
        command = ["node", str(AZURITE), "--silent", "--disableTelemetry", "--skipApiVersionCheck", *flags]
        with subprocess.Popen([*command, "--location", str(location)], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                listening = (line for line in process.stdout if "successfully listening" in line)
                if sum(1 for _ in zip(SERVICES, listening, strict=False)) == len(SERVICES):
                    endpoints = (
                        f"{service.capitalize()}Endpoint=http://127.0.0.1:{port}/{NAME}"
                        for service, port in ports.items()
                    )
                    yield ";".join([f"AccountName={NAME}", f"AccountKey={KEY}", *endpoints])
                    return
            finally:
                with suppress(ProcessLookupError):
                    process.terminate()
    raise AssertionError("Azurite does not start")


@pytest.fixture(scope="module")
def connection_string(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the connection string of an emulator that is installed and runs."""
    with exclusive("azurite"):
        if install_azurite() is None:
            pytest.skip("node and npm are not installed: Azurite does not run")
    with azurite(tmp_path_factory.mktemp("azurite")) as found:
        yield found


def test_the_pages_print_what_they_say(connection_string: str) -> None:
    tests = ("tests/test_docs.py", "tests/test_examples.py")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-k", "prints or company", *tests]
    environment = {**os.environ, "PATTERNS_CONNECTION_STRING": connection_string}
    done = subprocess.run(
        command,
        cwd=ROOT / "patterns",
        env=environment,
        capture_output=True,
        text=True,
        timeout=PAGES_SECONDS_MAX,
        check=False,
    )
    passed = re.findall(r"^PASSED tests/(\w+)\.py", done.stdout, re.MULTILINE)
    failed = re.findall(r"^FAILED tests/\w+\.py::\w+(?:\[(.*?)\])?", done.stdout, re.MULTILINE)
    assert set(failed) == {f"docs/{name}.md" for name in OTHERS}, done.stdout
    assert len(passed) > 20
    assert "test_examples" in passed
