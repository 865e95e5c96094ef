"""Clients of the other kind, synchronous or asynchronous, are rejected where they are given."""

from collections.abc import Callable
from datetime import timedelta
from inspect import isawaitable
from typing import Any

import pytest
from azure.data.tables import TableClient, TableServiceClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from azure.storage.blob import ContainerClient
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

import lazulite_patterns
from lazulite_patterns import Bag, aio

KEY = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:1/a;"
ACCOUNT = KEY + "QueueEndpoint=http://127.0.0.1:1/a;BlobEndpoint=http://127.0.0.1:1/a;"
SYNC: dict[str, Any] = {
    "table": TableClient.from_connection_string(ACCOUNT, "One"),
    "service": TableServiceClient.from_connection_string(ACCOUNT),
    "container": ContainerClient.from_connection_string(ACCOUNT, "one"),
    "queue": QueueClient.from_connection_string(ACCOUNT, "one"),
}
ASYNC: dict[str, Any] = {
    "table": AsyncTableClient.from_connection_string(ACCOUNT, "One"),
    "service": AsyncTableServiceClient.from_connection_string(ACCOUNT),
    "container": AsyncContainerClient.from_connection_string(ACCOUNT, "one"),
    "queue": AsyncQueueClient.from_connection_string(ACCOUNT, "one"),
}
USES: dict[str, Callable[[Any, dict[str, Any], dict[str, Any]], object]] = {
    "Table": lambda kind, wrong, _: kind.Table(wrong["table"], Bag),
    "open": lambda kind, wrong, _: kind.Table.open(wrong["table"], Bag),
    "open of the service": lambda kind, wrong, _: kind.Table.open(wrong["service"], Bag, table="One"),
    "clients": lambda kind, wrong, right: kind.Table(right["table"], Bag, clients=[wrong["queue"]]),
    "Tail": lambda kind, wrong, _: kind.Tail(wrong["table"]),
    "Stream": lambda kind, wrong, _: kind.Stream(wrong["table"], "one"),
    "Periods": lambda kind, wrong, _: kind.Periods(wrong["service"], "One", Bag, keep=timedelta(days=1)),
    "Tasks": lambda kind, wrong, _: kind.Tasks(wrong["queue"]),
    "BlobLog": lambda kind, wrong, _: kind.BlobLog(wrong["container"], "one"),
}


@pytest.mark.parametrize("use", USES)
async def test_a_client_of_the_other_kind_is_rejected(use: str) -> None:
    async def asynchronous() -> None:
        made = USES[use](aio, SYNC, ASYNC)
        if isawaitable(made):
            await made

    with pytest.raises(TypeError, match=r"is an asynchronous client: use .* such as lazulite_patterns\.aio\.Table$"):
        USES[use](lazulite_patterns, ASYNC, SYNC)
    with pytest.raises(TypeError, match=r"is a synchronous client: use .* such as lazulite_patterns\.Table$"):
        await asynchronous()
