"""The pytest plugin, as other projects have it."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from azure.data.tables import TableServiceClient

@pytest.mark.parametrize("number", range(4))
def test_it(number, lazulite_account, lazulite_server):
    with TableServiceClient.from_connection_string(lazulite_account.connection_string) as service:
        assert list(service.list_tables()) == []
        service.create_table("Orders")
    assert lazulite_account.endpoint.startswith(f"http://127.0.0.1:{lazulite_server.port}/")
"""


def test_each_test_of_two_processes_has_an_empty_account(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=4)


def test_the_plugin_loads_neither_the_engine_nor_the_server() -> None:
    program = "import sys, lazulite.testing.plugin; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "lazulite.testing.plugin" in loaded
    assert {
        name for name in loaded if name.split(".")[0] in ("rocksdict", "uvloop", "asyncpg", "cryptography")
    } == set()
    assert {name for name in loaded if name.startswith("lazulite.")} == {"lazulite.testing", "lazulite.testing.plugin"}
