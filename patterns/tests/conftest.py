"""An endpoint for the tests: that of PATTERNS_CONNECTION_STRING, or Lazulite in this process."""

import asyncio
import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient
from hypothesis import HealthCheck, settings

from lazulite_patterns.aio.driver import Driver as AsyncDriver
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime

from .faults import Run

settings.register_profile("patterns", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patterns")  # No property test fails because the machine is busy.

VARIABLE = "PATTERNS_CONNECTION_STRING"


@pytest.fixture(scope="session")
def connection_string() -> Iterator[str]:
    """Yield the connection string of a storage account."""
    if given := os.environ.get(VARIABLE):
        yield given
        return
    testing = pytest.importorskip("lazulite.testing", reason=f"set {VARIABLE}, or install lazulite")
    with testing.server() as storage:
        yield storage.account().connection_string


@pytest.fixture
def table_client(connection_string: str) -> Iterator[TableClient]:
    """Yield a client of a new table, which is deleted after the test."""
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0) as client:
        client.create_table()
        yield client
        client.delete_table()


@pytest.fixture
def queue_client(connection_string: str) -> Iterator[QueueClient]:
    """Yield a client of a new queue, which is deleted after the test."""
    with QueueClient.from_connection_string(connection_string, f"q{uuid4().hex}", retry_total=0) as client:
        client.create_queue()
        yield client
        client.delete_queue()


@pytest.fixture
def container_client(connection_string: str) -> Iterator[ContainerClient]:
    """Yield a client of a new container, which is deleted after the test."""
    with ContainerClient.from_connection_string(connection_string, f"c{uuid4().hex}", retry_total=0) as client:
        client.create_container()
        yield client
        client.delete_container()


@pytest.fixture(params=["sync", "async"])
def on_service(request: pytest.FixtureRequest, connection_string: str, table_client: TableClient) -> Iterator[Run]:
    """Yield what runs a protocol, with failpoints, on a table by its name, and does not wait."""
    name = table_client.table_name
    if request.param == "sync":
        yield lambda protocol, failpoints: Driver(
            {name: table_client}, Runtime(failpoints=failpoints), lambda _: None
        ).run(protocol)
        return
    with asyncio.Runner() as runner:
        client = AsyncTableClient.from_connection_string(connection_string, name)

        async def nothing(_: float) -> None:
            return

        yield lambda protocol, failpoints: runner.run(
            AsyncDriver({name: client}, Runtime(failpoints=failpoints), nothing).run(protocol)
        )
        runner.run(client.close())
