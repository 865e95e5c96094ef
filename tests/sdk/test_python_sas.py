"""Credentials of the Python SDK: Shared Key, account SAS, table SAS with key ranges, stored access policies."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    generate_account_sas,
    generate_table_sas,
)
from tests.server_process import Account

from .failures import rejected

SOON = datetime.now(UTC) + timedelta(hours=1)
PAST = datetime.now(UTC) - timedelta(hours=1)

Opener = Callable[..., TableClient]


def row(partition: str, name: str, **properties: Any) -> dict[str, Any]:
    return {"PartitionKey": partition, "RowKey": name} | properties


@pytest.fixture
def grant(account: Account, table: TableClient) -> Iterator[Opener]:
    """Make clients of `table` that hold a table SAS of the given kind."""
    with ExitStack() as clients:

        def make(permission: str | None = None, expiry: datetime | None = SOON, **options: Any) -> TableClient:
            token = generate_table_sas(
                account.credential, table.table_name, permission=permission, expiry=expiry, **options
            )
            credential = AzureSasCredential(token)
            return clients.enter_context(
                TableClient(account.endpoint, table.table_name, credential=credential, retry_total=0)
            )

        yield make


@pytest.fixture
def account_grant(account: Account) -> Iterator[Callable[..., TableServiceClient]]:
    """Make service clients that hold an account SAS of the given kind."""
    with ExitStack() as clients:

        def make(types: str, permission: str, expiry: datetime = SOON, **options: Any) -> TableServiceClient:
            token = generate_account_sas(
                account.credential,
                ResourceTypes.from_string(types),
                AccountSasPermissions.from_string(permission),
                expiry,
                **options,
            )
            credential = AzureSasCredential(token)
            return clients.enter_context(TableServiceClient(account.endpoint, credential=credential, retry_total=0))

        yield make


def test_a_named_key_and_a_key_that_is_changed(account: Account, table: TableClient) -> None:
    credential = AzureNamedKeyCredential(account.name, "YmFuYW5h")
    with TableClient(account.endpoint, table.table_name, credential=credential, retry_total=0) as client:
        with rejected(ClientAuthenticationError):
            client.upsert_entity(row("p", "r"))
        credential.update(account.name, account.key)
        client.upsert_entity(row("p", "r"))
    assert len(list(table.list_entities())) == 1


def test_a_table_sas_permits_what_it_says(table: TableClient, grant: Opener) -> None:
    table.create_entity(row("p", "r"))
    actions: dict[str, Callable[[TableClient], object]] = {
        "r": lambda client: (client.get_entity("p", "r"), list(client.list_entities())),
        "a": lambda client: client.create_entity(row("p", "added")),
        "u": lambda client: client.update_entity(row("p", "r")),
        "d": lambda client: client.delete_entity("p", "added"),
    }
    for permission in actions:
        for needed, act in actions.items():
            client = grant(permission)
            if permission == needed:
                act(client)
            else:
                with rejected(403):
                    act(client)


def test_upserting_needs_adding_and_updating(table: TableClient, grant: Opener) -> None:
    for permission in ("a", "u", "rd"):
        with rejected(403):
            grant(permission).upsert_entity(row("p", "r"))
    grant("au").upsert_entity(row("p", "r"))
    assert len(list(table.list_entities())) == 1


def test_each_operation_of_a_transaction_needs_its_permission(table: TableClient, grant: Opener) -> None:
    table.create_entity(row("p", "r"))
    operations: Any = [("create", row("p", "new")), ("update", row("p", "r", A=1))]
    with rejected(403):
        grant("a").submit_transaction(operations)
    assert [dict(e) for e in table.list_entities()] == [row("p", "r")]
    assert len(grant("au").submit_transaction(operations)) == 2


def test_a_table_sas_is_good_for_one_table_only(service: TableServiceClient, grant: Opener) -> None:
    other = service.create_table(f"t{uuid4().hex}")
    try:
        client = grant(str(TableSasPermissions(read=True, add=True)))
        elsewhere = TableClient(client.url, other.table_name, credential=client.credential, retry_total=0)
        with elsewhere, rejected(ClientAuthenticationError):
            list(elsewhere.list_entities())
    finally:
        other.delete_table()


def test_a_table_sas_never_reaches_the_service_or_the_policies(grant: Opener) -> None:
    client = grant("raud")
    for act in (client.get_table_access_policy, client.delete_table):
        with pytest.raises(HttpResponseError) as caught:
            act()
        assert caught.value.status_code == 403


def test_a_key_range_bounds_writes_and_filters_queries(table: TableClient, grant: Opener) -> None:
    for partition in "abcd":
        table.submit_transaction([("create", row(partition, str(n))) for n in range(3)])
    client = grant("raud", start_pk="b", start_rk="1", end_pk="c", end_rk="1")
    inside = [("b", "1"), ("b", "2"), ("c", "0"), ("c", "1")]
    assert [(e["PartitionKey"], e["RowKey"]) for e in client.list_entities()] == inside
    assert list(client.query_entities("PartitionKey eq 'a'")) == []
    for partition, name in inside:
        assert client.get_entity(partition, name) == row(partition, name)
        client.update_entity(row(partition, name, A=1))
    outside = [("a", "2"), ("b", "0"), ("c", "2"), ("d", "0")]
    actions: list[Callable[[str, str], object]] = [
        client.get_entity,
        client.delete_entity,
        lambda partition, name: client.create_entity(row(partition, name)),
        lambda partition, name: client.update_entity(row(partition, name)),
        lambda partition, name: client.upsert_entity(row(partition, name)),
    ]
    for act in actions:
        for partition, name in outside:
            with rejected(403):
                act(partition, name)
    with pytest.raises(HttpResponseError) as caught:
        client.submit_transaction([("update", row("b", "1")), ("update", row("b", "0"))])
    assert caught.value.status_code == 403


@pytest.mark.parametrize(
    ("bounds", "partitions"),
    [({"start_pk": "b"}, "bcd"), ({"end_pk": "b"}, "ab"), ({"start_pk": "c", "end_pk": "c"}, "c")],
    ids=str,
)
def test_half_open_key_ranges(table: TableClient, grant: Opener, bounds: Any, partitions: str) -> None:
    for partition in "abcd":
        table.create_entity(row(partition, "r"))
    found = [e["PartitionKey"] for e in grant("r", **bounds).list_entities()]
    assert found == list(partitions)


def test_times_protocol_and_address_are_enforced(grant: Opener) -> None:
    list(grant("r", start=PAST, protocol="https,http", ip_address_or_range="127.0.0.0-127.0.0.9").list_entities())
    for client in (grant("r", expiry=PAST), grant("r", start=SOON, expiry=SOON + timedelta(hours=1))):
        with rejected(ClientAuthenticationError):
            list(client.list_entities())
    with rejected(403):
        list(grant("r", protocol="https").list_entities())
    with rejected(403):
        list(grant("r", ip_address_or_range="192.0.2.1").list_entities())


def test_a_sas_in_the_address(account: Account, table: TableClient) -> None:
    token = generate_table_sas(
        account.credential, table.table_name, permission=TableSasPermissions(read=True, add=True), expiry=SOON
    )
    with TableClient(f"{account.endpoint}?{token}", table.table_name, retry_total=0) as client:
        client.create_entity(row("it's", "a b"))
        assert client.get_entity("it's", "a b") == row("it's", "a b")
    with TableClient.from_table_url(f"{account.endpoint}/{table.table_name}?{token}", retry_total=0) as client:
        assert len(list(client.list_entities())) == 1


def test_a_sas_in_a_connection_string(account: Account, table: TableClient) -> None:
    token = generate_account_sas(account.credential, ResourceTypes(object=True), AccountSasPermissions(read=True), SOON)
    text = f"TableEndpoint={account.endpoint};SharedAccessSignature={token}"
    with TableClient.from_connection_string(text, table.table_name, retry_total=0) as client:
        assert list(client.list_entities()) == []


def test_an_account_sas_permits_what_it_says(account_grant: Callable[..., TableServiceClient]) -> None:
    name = f"t{uuid4().hex}"
    service = account_grant("sco", "rwdlacu")
    table = service.create_table(name)
    table.create_entity(row("p", "r"))
    table.submit_transaction([("upsert", row("p", "r")), ("create", row("p", "s"))])
    assert len(list(table.list_entities())) == 2
    assert name in {item.name for item in service.list_tables()}
    service.get_service_properties()
    with rejected(403):
        account_grant("sco", "rl").create_table("sdkAnother")
    with rejected(403):
        account_grant("sco", "rl").get_table_client(name).delete_entity("p", "r")
    with rejected(403):
        list(account_grant("sco", "wdacu").get_table_client(name).list_entities())
    with rejected(403):
        account_grant("s", "rwdlacu").create_table("sdkAnother")
    with rejected(403):
        account_grant("co", "rwdlacu").get_service_properties()
    with rejected(403):
        account_grant("sc", "rwdlacu").get_table_client(name).get_entity("p", "r")
    with rejected(ClientAuthenticationError):
        list(account_grant("sco", "rwdlacu", expiry=PAST).list_tables())
    service.delete_table(name)


def test_access_policies_are_kept(table: TableClient) -> None:
    assert table.get_table_access_policy() == {}
    start = datetime(2021, 6, 8, 2, 5, 9, tzinfo=UTC)
    table.set_table_access_policy(
        {
            "whole": TableAccessPolicy(start=start, expiry=SOON, permission=str(TableSasPermissions(read=True))),
            "partial": TableAccessPolicy(permission="raud"),
            "empty": None,
        }
    )
    found = table.get_table_access_policy()
    assert list(found) == ["whole", "partial", "empty"]
    whole, partial = found["whole"], found["partial"]
    assert found["empty"] is None
    assert whole is not None
    assert partial is not None
    assert (whole.start, whole.expiry, whole.permission) == (start, SOON.replace(microsecond=0), "r")
    assert (partial.start, partial.expiry, partial.permission) == (None, None, "raud")
    table.set_table_access_policy({})
    assert table.get_table_access_policy() == {}


def test_six_access_policies_are_too_many(table: TableClient) -> None:
    policies = {str(n): TableAccessPolicy(permission="r", expiry=SOON) for n in range(6)}
    with pytest.raises(ValueError, match="Too many access policies"):
        table.set_table_access_policy(policies)
    assert table.get_table_access_policy() == {}


def test_a_stored_policy_grants_and_revokes(table: TableClient, grant: Opener) -> None:
    client = grant(expiry=None, policy_id="reader")
    with rejected(ClientAuthenticationError):
        list(client.list_entities())
    table.set_table_access_policy({"reader": TableAccessPolicy(permission="r", expiry=SOON)})
    list(client.list_entities())
    with rejected(403):
        client.create_entity(row("p", "r"))
    table.set_table_access_policy({"reader": TableAccessPolicy(permission="ra", expiry=SOON)})
    client.create_entity(row("p", "r"))
    table.set_table_access_policy({"reader": TableAccessPolicy(permission="ra", expiry=PAST)})
    with rejected(ClientAuthenticationError):
        list(client.list_entities())
    table.set_table_access_policy({})
    with rejected(ClientAuthenticationError):
        list(client.list_entities())
    table.set_table_access_policy({"reader": TableAccessPolicy(permission="r", expiry=SOON)})
    assert len(list(client.list_entities())) == 1


def test_a_policy_and_a_sas_complete_each_other(table: TableClient, grant: Opener) -> None:
    table.set_table_access_policy({"limit": TableAccessPolicy(expiry=SOON)})
    client = grant("ra", expiry=None, policy_id="limit", start_pk="p", end_pk="p")
    client.create_entity(row("p", "r"))
    with rejected(403):
        client.create_entity(row("q", "r"))
    with rejected(403):
        client.delete_entity("p", "r")
