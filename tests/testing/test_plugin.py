"""The pytest plugin, as other projects have it."""

import subprocess
import sys

import pytest

from tests.docs_support import fences

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


FAULTS = """
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient

def status(account):
    with TableServiceClient.from_connection_string(account.connection_string, retry_total=0) as service:
        try:
            list(service.list_tables())
        except HttpResponseError as error:
            return error.status_code

def test_rules_apply(lazulite_account, lazulite_faults):
    lazulite_faults.add_rule(error="ServerBusy")
    assert status(lazulite_account) == 503

def test_rules_of_other_tests_are_gone(lazulite_account, lazulite_faults):
    assert lazulite_faults.hits() == {}
    assert status(lazulite_account) is None
"""


SEEDED = """
import pytest
from azure.data.tables import TableServiceClient

@pytest.mark.parametrize("number", range(2))
def test_each_begins_with_the_seed(number, lazulite_storage):
    with TableServiceClient.from_connection_string(lazulite_storage.connection_string) as service:
        assert [table.name for table in service.list_tables()] == ["Seeded"]
        service.delete_table("Seeded")
"""


def test_rules_of_faults_end_with_their_test_and_data_return_to_the_seed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_faults=FAULTS, test_seed=SEEDED)
    pytester.makefile(".toml", state="[tables.Seeded]")
    pytester.makeini("[pytest]\nlazulite_seed = state.toml")
    pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=4)


def recipe() -> str:
    """Return the recipe of the page on ambiguous writes."""
    (found,) = [fence.text for fence in fences("docs/ambiguous-writes.md") if "def test_" in fence.text]
    return found


def test_the_recipe_for_ambiguous_writes_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(recipe())
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_recipe_fails_for_a_program_that_does_not_survive(pytester: pytest.Pytester) -> None:
    """It sends what may have been done already again, as a program with a retry of its own does."""
    begin = "def transfer(accounts):"
    wrong = f"""{begin}
    for key, change in (("a", -1), ("z", 1)):
        found = accounts.get(Account("b", key))
        written = {{"PartitionKey": "b", "RowKey": key, "amount": found.amount + change}}
        try:
            accounts.client.update_entity(written)
        except Exception:
            transfer_one = accounts.get(Account("b", key))
            accounts.client.upsert_entity({{**written, "amount": transfer_one.amount + change}})


def test_"""
    before, _, rest = recipe().partition(begin)
    pytester.makepyfile(before + wrong + rest.partition("def test_")[2])
    pytester.runpytest_subprocess().assert_outcomes(failed=1)
