"""The Blob service under test: that of `LAZULITE_TEST_BLOB_ENDPOINT`, or of a server of our own.

Leases end by time. The clock of a server in this process is put forward; elsewhere the tests wait.
A server of our own has other accounts, which have switches on.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conformance.client import Client
from tests.conformance.conftest import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from tests.conformance.signing import Endpoint
from tests.postgres.engine_under_test import DATABASE, in_process, store_at
from tests.server_process import serving

import lazulite.testing
from lazulite.app.database import DatabaseAccounts
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT as DEVELOPMENT
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.accounts.switches import Switches
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.settings.config import account_file

from .blobs import Blobs, Container, new_name
from .matrix import new_target, put_source
from .resources import Resource

Pass = Callable[[float], None]
"""Lets seconds pass for the service."""
VERSIONED, REHYDRATING = "versioned", "rehydrating"
SWITCHED = {VERSIONED: Switches(versioning=True), REHYDRATING: Switches(rehydrate_after=3600)}
"""Accounts that keep versions, and whose blobs take an hour to leave Archive."""
New = Callable[[str], Resource]
"""Makes a blob of a kind, or a container."""


class _Tested(NamedTuple):
    endpoint: Endpoint
    switched: Mapping[str, Endpoint]
    """The accounts that have switches on, by name, as far as there are such."""
    pass_seconds: Pass = time.sleep
    clock: Callable[[], float] = time.time
    """The time of the service."""


@pytest.fixture(scope="session")
def _tested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Tested]:
    account = os.environ.get("LAZULITE_TEST_ACCOUNT", DEVELOPMENT_ACCOUNT)
    key = os.environ.get("LAZULITE_TEST_KEY", DEVELOPMENT_KEY)
    url = os.environ.get("LAZULITE_TEST_BLOB_ENDPOINT")
    if url:
        yield _Tested(Endpoint.parse(url, account, key), {})
    elif in_process():
        ahead = [0.0]

        def pass_seconds(seconds: float) -> None:
            ahead[0] += seconds

        def clock() -> float:
            return time.time() + ahead[0]

        with lazulite.testing.server(clock=lambda: datetime.fromtimestamp(clock(), UTC)) as storage:
            found = [storage.account(name, **switches._asdict()) for name, switches in SWITCHED.items()]
            switched = {each.name: Endpoint.parse(each.blob_endpoint, each.name, each.key) for each in found}
            development = Endpoint.parse(storage.development.blob_endpoint, account, key)
            yield _Tested(development, switched, pass_seconds, clock)
    else:
        location = tmp_path_factory.mktemp("blob") / "data"
        _add_accounts(location)
        with serving(location, "--services", "table,blob", "--blob-port", "0") as server:
            url, own, key = server.account.blob_endpoint, server.account.name, server.account.key
            switched = {name: Endpoint.parse(url.replace(own, name), name, key) for name in SWITCHED}
            yield _Tested(Endpoint.parse(url, own, key), switched)


def _add_accounts(location: Path) -> None:
    """Add the development account and those with switches, with one key, to a store before its first start."""
    dsn = store_at(location).variables.get(DATABASE)
    store = account_file(location) if dsn is None else DatabaseAccounts(PostgresSettings(dsn=dsn))
    switches = {DEVELOPMENT.name: DEVELOPMENT.switches, **SWITCHED}
    store.edit(lambda _: {name: StoredAccount(DEVELOPMENT.keys * 2, switches=each) for name, each in switches.items()})


@pytest.fixture(scope="session")
def blob_endpoint(_tested: _Tested) -> Endpoint:
    """The endpoint under test."""
    return _tested.endpoint


@pytest.fixture(scope="session")
def pass_seconds(_tested: _Tested) -> Pass:
    """Lets seconds pass for the service: 16 end a lease of 15."""
    return _tested.pass_seconds


@pytest.fixture(scope="session")
def blobs(_tested: _Tested) -> Iterator[Blobs]:
    """One keep-alive connection for the whole suite."""
    client = Client(_tested.endpoint, _tested.clock)
    yield Blobs(client)
    client.close()


@pytest.fixture
def container(blobs: Blobs) -> Iterator[Container]:
    """A container of the test's own."""
    container = Container(blobs, new_name())
    container.send("PUT", query="restype=container").expect(201)
    yield container
    container.send("DELETE", query="restype=container")


@pytest.fixture(scope="session")
def versioned(_tested: _Tested) -> Iterator[Container]:
    """A container of an account that keeps versions, for blobs of tests' own."""
    if VERSIONED not in _tested.switched:
        pytest.skip("this endpoint has no account that is known to keep versions")
    client = Client(_tested.switched[VERSIONED], _tested.clock)
    container = Container(Blobs(client), new_name())
    container.send("PUT", query="restype=container").expect(201)
    yield container
    container.send("DELETE", query="restype=container")
    client.close()


@pytest.fixture
def archived(_tested: _Tested) -> Iterator[Resource]:
    """An archived blob of ten bytes, in an account whose blobs take an hour to leave Archive."""
    if REHYDRATING not in _tested.switched:
        pytest.skip("there is no account that rehydrates its blobs in an hour")
    client = Client(_tested.switched[REHYDRATING], _tested.clock)
    container = Container(Blobs(client), new_name())
    container.send("PUT", query="restype=container").expect(201)
    blob = Resource(container, "archived")
    blob.put(b"0123456789", {"x-ms-access-tier": "Archive"}).expect(201)
    yield blob
    container.send("DELETE", query="restype=container")
    client.close()


@pytest.fixture
def own(container: Container) -> Resource:
    """The container, as a resource of its own."""
    return Resource(container)


@pytest.fixture(scope="session")
def shared(blobs: Blobs) -> Iterator[Container]:
    """A container for blobs of tests' own."""
    container = Container(blobs, new_name())
    container.send("PUT", query="restype=container").expect(201)
    yield container
    container.send("DELETE", query="restype=container")


@pytest.fixture(scope="session")
def sources(shared: Container) -> Container:
    """The shared container, with the source of copies."""
    put_source(shared)
    return shared


@contextmanager
def making(sources: Container) -> Iterator[New]:
    """Yield what makes new resources, and delete the containers among them."""
    made: list[Container] = []

    def make(kind: str) -> Resource:
        if kind != "container":
            return new_target(sources, kind)
        made.append(Container(sources.blobs, new_name()))
        made[-1].send("PUT", query="restype=container").expect(201)
        return Resource(made[-1])

    yield make
    for container in made:
        Resource(container).lease("break", break_period=0)
        container.send("DELETE", query="restype=container")


@pytest.fixture
def new(sources: Container) -> Iterator[New]:
    """Makes a new resource of a kind for a test."""
    with making(sources) as make:
        yield make


@pytest.fixture
def missing(shared: Container) -> Resource:
    """A blob that does not exist."""
    return Resource(shared, new_name())


@pytest.fixture
def blob(shared: Container) -> Resource:
    """A block blob of the test's own, of ten bytes."""
    blob = Resource(shared, new_name())
    blob.put(b"0123456789").expect(201)
    return blob
