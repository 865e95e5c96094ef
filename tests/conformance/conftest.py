"""The endpoint under test: the one that the environment names, or a Lazulite server of our own.

`LAZULITE_TEST_ENDPOINT` (such as `http://127.0.0.1:10002/devstoreaccount1`, or a host-style URL of the cloud),
`LAZULITE_TEST_ACCOUNT` and `LAZULITE_TEST_KEY` point the suite anywhere. It speaks HTTP only, and its expectations are
those of the protocol's reference, not of an implementation. What the reference leaves open is marked `unverified` and
asks no more than that a client survives. Tables have fresh names and are deleted; the account's service properties
are reset to their defaults, so use an account that nobody else is using. The cloud takes half a minute to apply
policies and service properties: there, expect the tests of those to fail.

A server of our own is on PostgreSQL if LAZULITE_TEST_ENGINE says so.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.postgres.engine_under_test import store_at

from .client import Client
from .compatibility import OUTCOMES, case_name
from .signing import Endpoint
from .tables import Table, new_name, new_table

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60


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
    place = tmp_path_factory.mktemp("conformance")
    with (place / "server.log").open("w+", encoding="utf-8") as log:
        process = _start(place / "data", log.fileno())
        try:
            yield Endpoint.parse(_printed_url(process, place / "server.log"), DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)
        finally:
            code = _stop(process)
        assert code == 0, f"the server answered SIGTERM with exit code {code}"


def _start(location: Path, log: int) -> "subprocess.Popen[str]":
    store = store_at(location)
    command = [sys.executable, "-m", "lazulite", "serve", "--table-port", "0", "--silent", *store.arguments]
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_ACCOUNTS")}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, text=True, env={**environment, **store.variables}
    )


def _printed_url(process: "subprocess.Popen[str]", log: Path) -> str:
    assert process.stdout is not None
    watchdog = threading.Timer(START_SECONDS_MAX, process.kill)
    watchdog.start()
    try:
        for line in process.stdout:
            if "TableEndpoint=" in line:
                return line.split("TableEndpoint=", 1)[1].split(";")[0].strip()
    finally:
        watchdog.cancel()
    raise AssertionError(f"the server printed no table endpoint; it said: {log.read_text(encoding='utf-8')}")


def _stop(process: "subprocess.Popen[str]") -> int:
    process.terminate()
    try:
        return process.wait(STOP_SECONDS_MAX)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


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
