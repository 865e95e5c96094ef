"""The endpoint under test: the one that the environment names, or a Lazulite server of our own.

`LAZULITE_TEST_ENDPOINT` (such as `http://127.0.0.1:10002/devstoreaccount1`, or a host-style URL of the cloud),
`LAZULITE_TEST_ACCOUNT` and `LAZULITE_TEST_KEY` point the suite anywhere. It speaks HTTP only, and its expectations are
those of the protocol's reference, not of an implementation. What the reference leaves open is marked `unverified` and
asks no more than that a client survives. Tables have fresh names and are deleted; the account's service properties
are reset to their defaults, so use an account that no other client uses. The cloud takes half a minute to apply
policies and service properties: there, expect the tests of those to fail.

A server of our own runs in this process, in memory. `LAZULITE_TEST_ENGINE=postgres` gives it a process and a database.
"""

import os
from collections.abc import Callable, Iterator

import pytest
from tests.server_process import emulator

from .client import Client
from .compatibility import OUTCOMES, case_name
from .signing import Endpoint
from .tables import Table, new_name, new_table

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of tests whose subject the reference leaves open, and what notes outcomes."""
    config.addinivalue_line("markers", "unverified: the real service's behaviour is not recorded; only survival counts")
    config.stash[OUTCOMES] = {}
    config.pluginmanager.register(_Outcomes(config.stash[OUTCOMES]))


class _Outcomes:
    """Notes what became of each case of this suite, for the page of behaviours, whose test runs last."""

    def __init__(self, outcomes: dict[str, bool]) -> None:
        self._outcomes = outcomes

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.nodeid.endswith("test_compatibility.py::test_the_page"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = case_name(report.nodeid)
        if case is not None and (report.when == "call" or not report.passed):
            self._outcomes[case] = self._outcomes.get(case, True) and report.passed


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The endpoint under test; a server of our own must come down cleanly in the end."""
    url = os.environ.get("LAZULITE_TEST_ENDPOINT")
    account = os.environ.get("LAZULITE_TEST_ACCOUNT", DEVELOPMENT_ACCOUNT)
    key = os.environ.get("LAZULITE_TEST_KEY", DEVELOPMENT_KEY)
    if url:
        yield Endpoint.parse(url, account, key)
        return
    with emulator(tmp_path_factory.mktemp("conformance") / "data") as served:
        yield Endpoint.parse(served.endpoint, served.name, served.key)


@pytest.fixture(scope="session")
def client(endpoint: Endpoint) -> Iterator[Client]:
    """One keep-alive connection for the whole suite."""
    client = Client(endpoint)
    yield client
    client.close()


@pytest.fixture(scope="session")
def secondary(endpoint: Endpoint) -> Iterator[Client]:
    """A connection to the secondary endpoint."""
    client = Client(endpoint.secondary)
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """The name of a table that does not exist."""
    return new_name()


@pytest.fixture
def table(client: Client) -> Iterator[Table]:
    """A table of the test's own."""
    yield from new_table(client)


@pytest.fixture
def missing(client: Client) -> Table:
    """A table that does not exist."""
    return Table(client, new_name())


@pytest.fixture(scope="module")
def shared_table(client: Client) -> Iterator[Table]:
    """A table that the tests of a module share; they only read it, or keep to keys of their own."""
    yield from new_table(client)


@pytest.fixture
def disposable(client: Client) -> Iterator[Callable[[str], str]]:
    """Notes names of tables that a test creates itself, and deletes them afterwards."""
    names: list[str] = []

    def note(name: str) -> str:
        names.append(name)
        return name

    yield note
    for each in names:
        client.send("DELETE", f"/Tables('{each}')")
