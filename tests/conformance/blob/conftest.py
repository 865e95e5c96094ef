"""The Blob service under test: that of `LAZULITE_TEST_BLOB_ENDPOINT`, or of a server of our own.

Leases end by time. The clock of a server in this process is put forward; elsewhere the tests wait.
"""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from tests.conformance.client import Client
from tests.conformance.conftest import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from tests.conformance.signing import Endpoint
from tests.postgres.engine_under_test import in_process
from tests.server_process import serving

import lazulite.testing

from .blobs import Blobs, Container, new_name
from .resources import Resource

Pass = Callable[[float], None]
"""Lets seconds pass for the service."""


class _Tested(NamedTuple):
    endpoint: Endpoint
    pass_seconds: Pass


@pytest.fixture(scope="session")
def _tested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Tested]:
    account = os.environ.get("LAZULITE_TEST_ACCOUNT", DEVELOPMENT_ACCOUNT)
    key = os.environ.get("LAZULITE_TEST_KEY", DEVELOPMENT_KEY)
    url = os.environ.get("LAZULITE_TEST_BLOB_ENDPOINT")
    if url:
        yield _Tested(Endpoint.parse(url, account, key), time.sleep)
    elif in_process():
        ahead = [timedelta()]

        def pass_seconds(seconds: float) -> None:
            ahead[0] += timedelta(seconds=seconds)

        with lazulite.testing.server(clock=lambda: datetime.now(UTC) + ahead[0]) as storage:
            yield _Tested(Endpoint.parse(storage.development.blob_endpoint, account, key), pass_seconds)
    else:
        flags = ("--services", "table,blob", "--blob-port", "0")
        with serving(tmp_path_factory.mktemp("blob") / "data", *flags) as server:
            found = server.account
            yield _Tested(Endpoint.parse(found.blob_endpoint, found.name, found.key), time.sleep)


@pytest.fixture(scope="session")
def blob_endpoint(_tested: _Tested) -> Endpoint:
    """The endpoint under test."""
    return _tested.endpoint


@pytest.fixture(scope="session")
def pass_seconds(_tested: _Tested) -> Pass:
    """Lets seconds pass for the service: 16 end a lease of 15."""
    return _tested.pass_seconds


@pytest.fixture(scope="session")
def blobs(blob_endpoint: Endpoint) -> Iterator[Blobs]:
    """One keep-alive connection for the whole suite."""
    client = Client(blob_endpoint)
    yield Blobs(client)
    client.close()


@pytest.fixture
def container(blobs: Blobs) -> Iterator[Container]:
    """A container of the test's own."""
    container = Container(blobs, new_name())
    container.send("PUT", query="restype=container").expect(201)
    yield container
    container.send("DELETE", query="restype=container")


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
