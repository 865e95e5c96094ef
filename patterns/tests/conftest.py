"""An endpoint for the tests: that of PATTERNS_CONNECTION_STRING, or Lazulite in this process."""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.storage.queue import QueueClient
from hypothesis import HealthCheck, settings

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
