"""The asynchronous service client of the Python SDK: tables, properties, statistics, credentials."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableCorsRule,
    generate_account_sas,
    generate_table_sas,
)
from azure.data.tables.aio import TableClient, TableServiceClient
from tests.server_process import Account

from .failures import rejected

SOON = datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
async def prefix(aservice: TableServiceClient) -> AsyncIterator[str]:
    """A table-name prefix; whatever begins with it is deleted afterwards."""
    prefix = f"p{uuid4().hex[:16]}"
    yield prefix
    async for item in aservice.query_tables(f"TableName ge '{prefix}' and TableName lt '{prefix}~'"):
        await aservice.delete_table(item.name)


async def test_tables_are_created_listed_queried_and_deleted(aservice: TableServiceClient, prefix: str) -> None:
    for letter in "abc":
        assert (await aservice.create_table(prefix + letter)).table_name == prefix + letter
    with rejected(ResourceExistsError):
        await aservice.create_table(f"{prefix}a")
    await aservice.create_table_if_not_exists(f"{prefix}a")
    listed = [item.name async for item in aservice.list_tables() if item.name.startswith(prefix)]
    assert listed == [f"{prefix}a", f"{prefix}b", f"{prefix}c"]
    await aservice.delete_table(f"{prefix}b")
    await aservice.delete_table(f"{prefix}b")
    pages = aservice.query_tables(
        "TableName ge @low and TableName lt @high",
        parameters={"low": prefix, "high": f"{prefix}~"},
        results_per_page=1,
    ).by_page()
    assert [[item.name async for item in page] async for page in pages] == [[f"{prefix}a"], [f"{prefix}c"]]


async def test_a_table_client_creates_and_deletes_its_own_table(account: Account, prefix: str) -> None:
    async with TableClient.from_connection_string(account.connection_string, f"{prefix}a", retry_total=0) as table:
        assert (await table.create_table()).name == f"{prefix}a"
        await table.delete_table()
        await table.delete_table()


async def test_statistics_of_the_secondary(account: Account) -> None:
    # With host and port given as the secondary, the SDK leaves the path-style secondary address as it was given.
    async with TableServiceClient(
        account.secondary, credential=account.credential, secondary_hostname=account.host, retry_total=0
    ) as service:
        stats: Any = await service.get_service_stats()
    assert stats["geo_replication"]["status"] == "live"


async def test_service_properties(aservice: TableServiceClient) -> None:
    before: Any = await aservice.get_service_properties()
    try:
        await aservice.set_service_properties(cors=[TableCorsRule(["https://a.example"], ["GET", "PATCH"])])
        after: Any = await aservice.get_service_properties()
        assert [(rule.allowed_origins, rule.allowed_methods) for rule in after["cors"]] == [
            (["https://a.example"], ["GET", "PATCH"])
        ]
    finally:
        await aservice.set_service_properties(**before)


async def test_a_wrong_key(account: Account, atable: TableClient) -> None:
    credential = AzureNamedKeyCredential(account.name, "YmFuYW5h")
    async with TableClient(account.endpoint, atable.table_name, credential=credential, retry_total=0) as client:
        with rejected(ClientAuthenticationError):
            await client.get_entity("p", "r")


async def test_an_account_sas(account: Account, prefix: str) -> None:
    token = generate_account_sas(
        account.credential, ResourceTypes.from_string("co"), AccountSasPermissions.from_string("rac"), SOON
    )
    async with TableServiceClient(account.endpoint, credential=AzureSasCredential(token), retry_total=0) as service:
        table = await service.create_table(f"{prefix}a")
        await table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert (await table.get_entity("p", "r"))["RowKey"] == "r"
        with rejected(403):
            await table.delete_entity("p", "r")
        with rejected(403):
            await service.get_service_properties()


async def test_a_table_sas_with_a_key_range_and_a_policy(account: Account, atable: TableClient) -> None:
    for partition in "abc":
        await atable.create_entity({"PartitionKey": partition, "RowKey": "r"})
    token = generate_table_sas(
        account.credential, atable.table_name, policy_id="some", start_pk="b", end_pk="b", end_rk="r"
    )
    async with TableClient(
        account.endpoint, atable.table_name, credential=AzureSasCredential(token), retry_total=0
    ) as client:
        with rejected(ClientAuthenticationError):
            await client.get_entity("b", "r")
        await atable.set_table_access_policy({"some": TableAccessPolicy(permission="ra", expiry=SOON)})
        policy = (await atable.get_table_access_policy())["some"]
        assert policy is not None
        assert (policy.permission, policy.expiry) == ("ra", SOON.replace(microsecond=0))
        assert [e["PartitionKey"] async for e in client.list_entities()] == ["b"]
        await client.submit_transaction([("create", {"PartitionKey": "b", "RowKey": "a"})])
        with rejected(403):
            await client.create_entity({"PartitionKey": "b", "RowKey": "s"})
        with rejected(403):
            await client.delete_entity("b", "r")
        await atable.set_table_access_policy({})
        with rejected(ClientAuthenticationError):
            await client.get_entity("b", "r")
