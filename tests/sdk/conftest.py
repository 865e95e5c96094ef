"""The server under test and the SDK clients that point at it.

With LAZULITE_TEST_CONNECTION_STRING set, the same tests run against that account instead of a server of their own.
Clients never retry: a failure shows at once, and an expected one costs one request.
"""

import os
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, TableServiceClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient
from azure.storage.queue.aio import QueueServiceClient as AsyncQueueServiceClient
from tests.certificates import Authority
from tests.server_process import Account, emulator

import lazulite.testing

from . import blob_clients
from .queue_clients import connect, new_name


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """The account to test, on a server in this process."""
    given = os.environ.get("LAZULITE_TEST_CONNECTION_STRING")
    if given:
        yield Account.parse(given)
        return
    with emulator(tmp_path_factory.mktemp("sdk") / "data") as served:
        yield served


@pytest.fixture(scope="session")
def named_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """An account of another name than the emulator's, which SDKs know by heart, on a server of its own."""
    with emulator(tmp_path_factory.mktemp("named") / "data", "contoso") as served:
        yield served


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Sign the certificates of a module's servers."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def service(account: Account) -> Iterator[TableServiceClient]:
    """A service client made from the connection string."""
    with TableServiceClient.from_connection_string(account.connection_string, retry_total=0) as client:
        yield client


@pytest.fixture
def table(service: TableServiceClient) -> Iterator[TableClient]:
    """A client of a table of its own."""
    client = service.create_table(f"t{uuid4().hex}")
    yield client
    client.delete_table()


@pytest.fixture
async def aservice(account: Account) -> AsyncIterator[AsyncTableServiceClient]:
    """An asynchronous service client made from the connection string."""
    connection_string = account.connection_string
    async with AsyncTableServiceClient.from_connection_string(connection_string, retry_total=0) as client:
        yield client


@pytest.fixture
async def atable(aservice: AsyncTableServiceClient) -> AsyncIterator[AsyncTableClient]:
    """An asynchronous client of a table of its own."""
    client = await aservice.create_table(f"t{uuid4().hex}")
    yield client
    await client.delete_table()


@pytest.fixture(scope="session", params=["devstoreaccount1", "contoso"])
def queue_account(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lazulite.testing.Account]:
    """The emulator's account, which SDKs know by heart, and one of another name: each on a server of its own."""
    with emulator(tmp_path_factory.mktemp("queue") / "data", request.param) as found:
        yield lazulite.testing.Account(
            found.name, found.key, found.endpoint, found.connection_string, found.queue_endpoint, found.blob_endpoint
        )


@pytest.fixture
def queue_service(queue_account: lazulite.testing.Account) -> Iterator[QueueServiceClient]:
    """A client of the account's queues."""
    with connect(queue_account) as client:
        yield client


@pytest.fixture
def queue(queue_service: QueueServiceClient) -> Iterator[QueueClient]:
    """A client of a queue of its own."""
    client = queue_service.create_queue(new_name())
    yield client
    client.delete_queue()


@pytest.fixture
async def aqueue_service(queue_account: lazulite.testing.Account) -> AsyncIterator[AsyncQueueServiceClient]:
    """An asynchronous client of the account's queues, made from the connection string."""
    async with AsyncQueueServiceClient.from_connection_string(queue_account.connection_string, retry_total=0) as client:
        yield client


@pytest.fixture(scope="session")
def blob_account(queue_account: lazulite.testing.Account) -> lazulite.testing.Account:
    """The account of the queues has blobs, too."""
    return queue_account


@pytest.fixture
def blob_service(blob_account: lazulite.testing.Account) -> Iterator[BlobServiceClient]:
    """A client of the account's blobs."""
    with blob_clients.connect(blob_account) as client:
        yield client


@pytest.fixture
def container(blob_service: BlobServiceClient) -> Iterator[ContainerClient]:
    """A client of a container of its own."""
    client = blob_service.create_container(blob_clients.new_name())
    yield client
    client.delete_container()


@pytest.fixture
async def ablob_service(blob_account: lazulite.testing.Account) -> AsyncIterator[AsyncBlobServiceClient]:
    """An asynchronous client of the account's blobs."""
    async with AsyncBlobServiceClient.from_connection_string(
        blob_account.connection_string, retry_total=0, **blob_clients.PARTS
    ) as client:
        yield client
