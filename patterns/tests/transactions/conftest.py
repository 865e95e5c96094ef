"""Tables and queues on a service, and both drivers, with failpoints and without waiting."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns.aio.driver import Driver as AsyncDriver
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.failpoints import Failpoints
from lazulite_patterns.effects.runtime import Runtime

Run = Callable[[Protocol[Any], Failpoints], Any]


@pytest.fixture
def target_client(connection_string: str) -> Iterator[TableClient]:
    """Yield a client of a second table."""
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0) as client:
        client.create_table()
        yield client
        client.delete_table()


@pytest.fixture
def poison_client(connection_string: str, queue_client: QueueClient) -> Iterator[QueueClient]:
    """Yield a client of the queue's poison queue, which is absent."""
    name = f"{queue_client.queue_name}-poison"
    with QueueClient.from_connection_string(connection_string, name) as client:
        yield client
        try:
            client.delete_queue()
        except ResourceNotFoundError:
            return


@pytest.fixture(params=["sync", "async"])
def run(
    request: pytest.FixtureRequest,
    connection_string: str,
    table_client: TableClient,
    target_client: TableClient,
    queue_client: QueueClient,
    poison_client: QueueClient,
) -> Iterator[Run]:
    """Yield what runs a protocol, with failpoints, on two tables by their names, and the queues `q` and `q-poison`."""
    tables = {each.table_name: each for each in (table_client, target_client)}
    queues = {"q": queue_client, "q-poison": poison_client}
    if request.param == "sync":
        yield lambda protocol, failpoints: Driver(
            tables, Runtime(failpoints=failpoints), lambda _: None, queues=queues
        ).run(protocol)
        return
    with asyncio.Runner() as runner:
        at = {each: AsyncTableClient.from_connection_string(connection_string, each) for each in tables}
        make = AsyncQueueClient.from_connection_string
        of = {name: make(connection_string, each.queue_name) for name, each in queues.items()}

        async def nothing(_: float) -> None:
            return

        yield lambda protocol, failpoints: runner.run(
            AsyncDriver(at, Runtime(failpoints=failpoints), nothing, queues=of).run(protocol)
        )
        for table in at.values():
            runner.run(table.close())
        for queue in of.values():
            runner.run(queue.close())
