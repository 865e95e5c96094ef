"""The Python SDK with an account of another name than the emulator's: what depends on the name, and a little more."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.core.credentials import AzureSasCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from tests.server_process import Account

from .failures import rejected

SOON = datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture(scope="module")
def account(named_account: Account) -> Account:
    """What the shared fixtures make their clients of."""
    return named_account


def row(name: str, **properties: object) -> dict[str, object]:
    return {"PartitionKey": "p'%", "RowKey": name} | properties


def test_entities_batches_and_pages(service: TableServiceClient, table: TableClient) -> None:
    table.create_entity(row("a 'b'", Value=1))
    table.upsert_entity(row("a 'b'", Other="é"), UpdateMode.MERGE)
    assert table.get_entity("p'%", "a 'b'") == row("a 'b'", Value=1, Other="é")
    table.submit_transaction([("create", row(f"{number}")) for number in range(5)])
    with pytest.raises(TableTransactionError):
        table.submit_transaction([("create", row("new")), ("create", row("1"))])
    pages = [list(page) for page in table.query_entities("PartitionKey eq 'p''%'", results_per_page=4).by_page()]
    assert [len(page) for page in pages] == [4, 2]
    assert table.table_name in [item.name for item in service.list_tables()]


def test_shared_access_signatures_and_policies(account: Account, table: TableClient) -> None:
    table.create_entity(row("r"))
    table.set_table_access_policy({"reading": TableAccessPolicy(permission="r", expiry=SOON)})
    name = table.table_name
    tokens = [
        generate_account_sas(account.credential, ResourceTypes(object=True), AccountSasPermissions(read=True), SOON),
        generate_table_sas(account.credential, name, permission=TableSasPermissions(read=True), expiry=SOON),
        generate_table_sas(account.credential, name, policy_id="reading"),
    ]
    for token in tokens:
        with TableClient(account.endpoint, name, credential=AzureSasCredential(token), retry_total=0) as client:
            assert [found["RowKey"] for found in client.list_entities()] == ["r"]
            with rejected(403):
                client.delete_entity("p'%", "r")


def test_the_secondary_and_the_services_properties(
    account: Account, service: TableServiceClient, table: TableClient
) -> None:
    assert "cors" in service.get_service_properties()
    with TableServiceClient(
        account.secondary, credential=account.credential, secondary_hostname=account.host, retry_total=0
    ) as secondary:
        assert [item.name for item in secondary.list_tables()] == [table.table_name]
        assert "geo_replication" in secondary.get_service_stats()
        with rejected(403):
            secondary.create_table("another")


async def test_the_asynchronous_client(aservice: AsyncTableServiceClient) -> None:
    table = await aservice.create_table(f"t{uuid4().hex}")
    await table.upsert_entity(row("r", Value=1))
    assert [found async for found in table.query_entities("Value eq 1")] == [row("r", Value=1)]
    await aservice.delete_table(table.table_name)
