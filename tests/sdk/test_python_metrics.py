"""The official SDKs switch metrics on, and read and delete the rows of the metrics tables."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    TableMetrics,
    TableRetentionPolicy,
    TableServiceClient,
    generate_account_sas,
)
from azure.storage.blob import BlobServiceClient
from azure.storage.blob import Metrics as BlobMetrics
from azure.storage.queue import Metrics as QueueMetrics
from azure.storage.queue import QueueServiceClient

import lazulite.testing

SECONDS_MAX = 300
"""How long rows may take to appear, however loaded the machine is."""


class World:
    """A server whose clock the test sets, with the services of an account."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def clock(self) -> datetime:
        """Return the time: it runs, so that requests take some."""
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def account(world: World) -> Iterator[lazulite.testing.Account]:
    with lazulite.testing.server(clock=world.clock) as storage:
        yield storage.account()


@pytest.fixture
def tables(account: lazulite.testing.Account) -> Iterator[TableServiceClient]:
    """The clock of the server goes where no signed date does, so requests have a token."""
    token = generate_account_sas(
        AzureNamedKeyCredential(account.name, account.key),
        resource_types=ResourceTypes(service=True, object=True, container=True),
        permission=AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, update=True),
        expiry=datetime.now(UTC) + timedelta(days=1),
    )
    with TableServiceClient(account.endpoint, credential=AzureSasCredential(token)) as service:
        yield service


def eventually(read: Callable[[], Any]) -> Any:
    """Return what a function returns once that is something."""
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        try:
            found = read()
        except ResourceNotFoundError:
            found = None
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("no rows")


def rows_of(table: TableClient, row: str) -> int:
    """Return how many requests the intervals of a table have in all."""
    return sum(each["TotalRequests"].value for each in table.query_entities(f"RowKey eq '{row}'"))


def test_tables(world: World, tables: TableServiceClient) -> None:
    on = TableMetrics(enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=True, days=7))
    tables.set_service_properties(minute_metrics=on, hour_metrics=on)
    with tables.create_table("Orders") as orders:
        for number in range(5):
            orders.create_entity({"PartitionKey": "p", "RowKey": str(number)})
        for number in range(10):
            try:
                orders.get_entity("p", str(number))
            except ResourceNotFoundError:
                assert number >= 5
    minutes = tables.get_table_client("$MetricsMinutePrimaryTransactionsTable")
    hours = tables.get_table_client("$MetricsHourPrimaryTransactionsTable")
    world.ahead += timedelta(hours=1, minutes=1)
    for table in (minutes, hours):
        eventually(partial(rows_of, table, "user;InsertEntity"))
        assert rows_of(table, "user;InsertEntity") == 5
        assert rows_of(table, "user;QueryEntity") == 10
        assert rows_of(table, "system;All") == 0
        row = next(each for each in table.query_entities("RowKey eq 'user;QueryEntity'") if each["SASSuccess"].value)
        assert len(row) == 40
        assert row["SASClientOtherError"].value + row["SASSuccess"].value == row["TotalRequests"].value
        assert row["Availability"] == 100.0
        assert isinstance(row["AverageE2ELatency"], float)
        assert row["AverageE2ELatency"] >= row["AverageServerLatency"] > 0
        table.delete_entity(row)
        with pytest.raises(ResourceNotFoundError):
            table.get_entity(row["PartitionKey"], row["RowKey"])
        with pytest.raises(HttpResponseError, match="InsufficientAccountPermissions"):
            table.upsert_entity(row)
        with pytest.raises(HttpResponseError, match="InsufficientAccountPermissions"):
            table.delete_table()
    old = tables.get_table_client("$MetricsTransactionsTable")
    assert rows_of(old, "user;InsertEntity") == 5
    assert [each.name for each in tables.list_tables()] == ["Orders"]


def test_queues_and_blobs(world: World, account: lazulite.testing.Account, tables: TableServiceClient) -> None:
    with QueueServiceClient.from_connection_string(account.connection_string) as queues:
        on = QueueMetrics(enabled=True, include_apis=True)
        queues.set_service_properties(hour_metrics=on, minute_metrics=on)
        with queues.create_queue("jobs") as jobs:
            jobs.send_message("x")
            assert len(list(jobs.receive_messages())) == 1
    with BlobServiceClient.from_connection_string(account.connection_string) as blobs:
        on_ = BlobMetrics(enabled=True, include_apis=True)
        blobs.set_service_properties(hour_metrics=on_, minute_metrics=on_)
        with blobs.create_container("docs") as docs:
            docs.upload_blob("a", b"x" * 1000)
            assert docs.download_blob("a").readall() == b"x" * 1000
    world.ahead += timedelta(minutes=2)
    for service, operations in (("Queue", ("PutMessage", "GetMessage")), ("Blob", ("PutBlob", "GetBlob"))):
        table = tables.get_table_client(f"$MetricsMinutePrimaryTransactions{service}")
        for operation in operations:
            eventually(partial(rows_of, table, f"user;{operation}"))
    sent = next(iter(table.query_entities("RowKey eq 'user;GetBlob'")))
    assert sent["TotalEgress"].value > 1000
