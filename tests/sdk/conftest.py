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
from tests.certificates import Authority

import lazulite.testing

from .server import Account, serving


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """The account to test, on a server that must come down cleanly in the end."""
    given = os.environ.get("LAZULITE_TEST_CONNECTION_STRING")
    if given:
        yield Account.parse(given)
        return
    with serving(tmp_path_factory.mktemp("sdk") / "data") as server:
        yield server.account


@pytest.fixture(scope="session")
def named_account() -> Iterator[Account]:
    """An account of another name than the emulator's, which SDKs know by heart, on a server of its own."""
    with lazulite.testing.server() as storage:
        yield Account.parse(storage.account("contoso").connection_string)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the certificates of a module's servers."""
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
