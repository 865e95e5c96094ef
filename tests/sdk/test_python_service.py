"""The service client of the Python SDK: tables, service properties, statistics."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.data.tables import (
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableServiceClient,
)
from tests.server_process import Account

from .failures import rejected


@pytest.fixture
def prefix(service: TableServiceClient) -> Iterator[str]:
    """A table-name prefix; whatever begins with it is deleted afterwards."""
    prefix = f"p{uuid4().hex[:16]}"
    yield prefix
    for item in service.query_tables(f"TableName ge '{prefix}' and TableName lt '{prefix}~'"):
        service.delete_table(item.name)


def named(service: TableServiceClient, prefix: str) -> list[str]:
    return [item.name for item in service.list_tables() if item.name.startswith(prefix)]


def test_tables_are_created_listed_and_deleted(service: TableServiceClient, prefix: str) -> None:
    client = service.create_table(f"{prefix}One")
    assert client.table_name == f"{prefix}One"
    service.create_table(f"{prefix}Two")
    assert named(service, prefix) == [f"{prefix}One", f"{prefix}Two"]
    service.delete_table(f"{prefix}One")
    assert named(service, prefix) == [f"{prefix}Two"]


def test_a_table_exists_once_whatever_its_case(service: TableServiceClient, prefix: str) -> None:
    service.create_table(f"{prefix}a")
    for name in (f"{prefix}a", f"{prefix}A".upper()):
        with rejected(ResourceExistsError):
            service.create_table(name)


def test_creating_if_absent_and_deleting_twice_are_no_errors(service: TableServiceClient, prefix: str) -> None:
    service.create_table_if_not_exists(f"{prefix}a")
    service.create_table_if_not_exists(f"{prefix}a")
    service.delete_table(f"{prefix}a")
    service.delete_table(f"{prefix}a")
    assert named(service, prefix) == []


def test_a_recreated_table_is_empty(service: TableServiceClient, prefix: str) -> None:
    table = service.create_table(f"{prefix}a")
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    service.delete_table(f"{prefix}a")
    table = service.create_table(f"{prefix}a")
    assert list(table.list_entities()) == []


def test_a_table_client_creates_and_deletes_its_own_table(account: Account, prefix: str) -> None:
    with TableClient.from_connection_string(account.connection_string, f"{prefix}a", retry_total=0) as table:
        assert table.create_table().name == f"{prefix}a"
        with rejected(ResourceExistsError):
            table.create_table()
        table.delete_table()
        table.delete_table()


def test_a_table_client_from_a_table_url(account: Account, prefix: str) -> None:
    url = f"{account.endpoint}/{prefix}a"
    with TableClient.from_table_url(url, credential=account.credential, retry_total=0) as table:
        table.create_table()
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert table.get_entity("p", "r")["RowKey"] == "r"


@pytest.mark.parametrize("version", ["2019-02-02", "2019-07-07", "2020-12-06"])
def test_every_version_that_the_sdk_offers(account: Account, prefix: str, version: str) -> None:
    with TableServiceClient(
        account.endpoint, credential=account.credential, api_version=version, retry_total=0
    ) as service:
        table = service.create_table(f"{prefix}a")
        made = table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert made["version"] == version
        assert table.get_entity("p", "r").metadata["etag"] == made["etag"]


def test_tables_are_queried_by_name(service: TableServiceClient, prefix: str) -> None:
    for letter in "abc":
        service.create_table(prefix + letter)
    for query, parameters, found in (
        (f"TableName eq '{prefix}b'", None, ["b"]),
        ("TableName eq @name", {"name": f"{prefix}c"}, ["c"]),
        ("TableName ge @from and TableName lt @to", {"from": f"{prefix}a", "to": f"{prefix}c"}, ["a", "b"]),
        (f"TableName eq '{prefix}z'", None, []),
    ):
        assert [t.name for t in service.query_tables(query, parameters=parameters)] == [
            prefix + letter for letter in found
        ]


def test_tables_are_paged_with_continuation(service: TableServiceClient, prefix: str) -> None:
    names = [f"{prefix}{number}" for number in range(5)]
    for name in names:
        service.create_table(name)
    query = "TableName ge @from and TableName lt @to"
    parameters = {"from": prefix, "to": f"{prefix}~"}
    found: list[str] = []
    sizes: list[int] = []
    token: str | None = None
    for _ in range(3):
        pages = service.query_tables(query, parameters=parameters, results_per_page=2).by_page(token)
        page = [item.name for item in next(pages)]
        found += page
        sizes.append(len(page))
        token = pages.continuation_token  # type: ignore[attr-defined]  # PageIterator has it, its stub's Iterator not
    assert (found, sizes, token) == (names, [2, 2, 1], None)


def test_statistics_of_the_secondary(account: Account) -> None:
    # With host and port given as the secondary, the SDK leaves the path-style secondary address as it was given.
    with TableServiceClient(
        account.secondary, credential=account.credential, secondary_hostname=account.host, retry_total=0
    ) as service:
        stats: Any = service.get_service_stats()
    assert stats["geo_replication"]["status"] == "live"
    assert isinstance(stats["geo_replication"]["last_sync_time"], datetime)


def test_the_secondary_reads_and_rejects_writes(account: Account, table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "N": 1})
    with TableServiceClient(account.secondary, credential=account.credential, retry_total=0) as service:
        secondary = service.get_table_client(table.table_name)
        assert secondary.get_entity("p", "r")["N"] == 1
        assert len(list(secondary.list_entities())) == 1
        with rejected(403):
            secondary.upsert_entity({"PartitionKey": "p", "RowKey": "r", "N": 2})


@pytest.fixture
def properties(service: TableServiceClient) -> Iterator[None]:
    """Put the service properties back as they were."""
    before: Any = service.get_service_properties()
    yield
    service.set_service_properties(**before)


def plain(value: Any) -> Any:
    """The SDK's model objects have no equality: compare what they hold."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict) or hasattr(value, "__dict__"):
        items = value if isinstance(value, dict) else vars(value)
        return {name: plain(item) for name, item in items.items() if not name.startswith("_")}
    return value


@pytest.mark.usefixtures("properties")
def test_service_properties_round_trip(service: TableServiceClient) -> None:
    wanted: Any = {
        "analytics_logging": TableAnalyticsLogging(
            read=True, write=True, delete=True, retention_policy=TableRetentionPolicy(enabled=True, days=5)
        ),
        "hour_metrics": TableMetrics(
            enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=True, days=7)
        ),
        "minute_metrics": TableMetrics(enabled=False),
        "cors": [
            TableCorsRule(["https://a.example", "https://b.example"], ["GET", "PUT"], max_age_in_seconds=500),
            TableCorsRule(["*"], ["GET"], allowed_headers=["x-ms-meta-*"], exposed_headers=["x-ms-request-id"]),
        ],
    }
    service.set_service_properties(**wanted)
    assert plain(service.get_service_properties()) == plain(wanted)


@pytest.mark.usefixtures("properties")
def test_service_properties_left_out_stay(service: TableServiceClient) -> None:
    service.set_service_properties(cors=[TableCorsRule(["https://a.example"], ["GET"])])
    service.set_service_properties(hour_metrics=TableMetrics(enabled=True, include_apis=False))
    found: Any = service.get_service_properties()
    assert [rule.allowed_origins for rule in found["cors"]] == [["https://a.example"]]
    assert found["hour_metrics"].enabled is True
    service.set_service_properties(cors=[])
    found = service.get_service_properties()
    assert not found["cors"]
    assert found["hour_metrics"].enabled is True


@pytest.mark.usefixtures("properties")
def test_service_properties_out_of_bounds_are_rejected(service: TableServiceClient) -> None:
    before = plain(service.get_service_properties())
    rules = [TableCorsRule([f"https://{number}.example"], ["GET"]) for number in range(6)]
    with pytest.raises(HttpResponseError) as caught:
        service.set_service_properties(cors=rules)
    assert caught.value.status_code == 400
    metrics = TableMetrics(
        enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=True, days=366)
    )
    with rejected(400):
        service.set_service_properties(minute_metrics=metrics)
    assert plain(service.get_service_properties()) == before
