"""The Queue service under test: that of `LAZULITE_TEST_QUEUE_ENDPOINT`, or of a server of our own."""

import os
from collections.abc import Iterator

import pytest
from tests.conformance.client import Client
from tests.conformance.conftest import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from tests.conformance.signing import Endpoint
from tests.server_process import emulator

from .queues import Queue, Queues, new_name


@pytest.fixture(scope="session")
def queue_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The endpoint under test."""
    account = os.environ.get("LAZULITE_TEST_ACCOUNT", DEVELOPMENT_ACCOUNT)
    key = os.environ.get("LAZULITE_TEST_KEY", DEVELOPMENT_KEY)
    url = os.environ.get("LAZULITE_TEST_QUEUE_ENDPOINT")
    if url:
        yield Endpoint.parse(url, account, key)
        return
    with emulator(tmp_path_factory.mktemp("queue") / "data") as served:
        yield Endpoint.parse(served.queue_endpoint, served.name, served.key)


@pytest.fixture(scope="session")
def queues(queue_endpoint: Endpoint) -> Iterator[Queues]:
    """One keep-alive connection for the whole suite."""
    client = Client(queue_endpoint)
    yield Queues(client)
    client.close()


@pytest.fixture(scope="session")
def queue_secondary(queue_endpoint: Endpoint) -> Iterator[Queues]:
    """A connection to the secondary endpoint."""
    client = Client(queue_endpoint.secondary)
    yield Queues(client)
    client.close()


@pytest.fixture
def missing_queue(queues: Queues) -> Queue:
    """A queue that does not exist."""
    return Queue(queues, new_name())


@pytest.fixture
def queue(queues: Queues) -> Iterator[Queue]:
    """A queue of the test's own."""
    queue = Queue(queues, new_name())
    queue.send("PUT").expect(201)
    yield queue
    queue.send("DELETE")
