"""Rejections through the Python SDK that it explains in its own words, and where they come from."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from azure.core.exceptions import (
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
)
from azure.data.tables import TableClient, TableErrorCode, TableServiceClient
from tests.server_process import Account

from .failures import rejected

KEYS = {"PartitionKey": "p", "RowKey": "r"}


@pytest.mark.parametrize(
    "act",
    [
        lambda t: t.create_entity(KEYS),
        lambda t: t.upsert_entity(KEYS),
        lambda t: t.update_entity(KEYS),
        lambda t: t.get_entity("p", "r"),
        lambda t: list(t.list_entities()),
    ],
)
def test_a_missing_table(service: TableServiceClient, act: Callable[[TableClient], object]) -> None:
    with rejected(ResourceNotFoundError):
        act(service.get_table_client("sdkAbsent"))


def test_deleting_from_a_missing_table_is_no_error(service: TableServiceClient) -> None:
    service.get_table_client("sdkAbsent").delete_entity("p", "r")


def test_policies_of_a_missing_table(service: TableServiceClient) -> None:
    table = service.get_table_client("sdkAbsent")
    for act in (table.get_table_access_policy, lambda: table.set_table_access_policy({})):
        with pytest.raises(ResourceNotFoundError):
            act()


ILLEGAL_NAMES = ["bad-name", "1table", "ab", "x" * 64, "żółw", "a//"]


@pytest.mark.parametrize("name", ILLEGAL_NAMES)
def test_table_names_that_the_sdk_explains(service: TableServiceClient, name: str) -> None:
    # The SDK recognises the service's code and message, and raises its own ValueError instead.
    with pytest.raises(ValueError, match="Storage table names must be alphanumeric") as caught:
        service.create_table(name)
    assert isinstance(caught.value.__context__, HttpResponseError)


ON_A_TABLE: list[Callable[[TableClient], object]] = [
    lambda t: t.create_entity(KEYS),
    lambda t: t.upsert_entity(KEYS),
    lambda t: t.delete_entity("p", "r"),
    lambda t: t.get_table_access_policy(),
    lambda t: t.submit_transaction([("upsert", KEYS)]),
]


@pytest.mark.parametrize("name", ILLEGAL_NAMES)
@pytest.mark.parametrize("act", ON_A_TABLE)
def test_table_names_that_the_sdk_explains_in_addresses(
    service: TableServiceClient, act: Callable[[TableClient], object], name: str
) -> None:
    with pytest.raises(ValueError, match="Storage table names must be alphanumeric"):
        act(service.get_table_client(name))


suspected = partial(pytest.raises, match="Please check your account URL")
"""A rejection for which the SDK supposes that the account's URL ends with a table's name."""


def test_an_endpoint_that_ends_with_a_tables_name(account: Account, table: TableClient) -> None:
    def misled(endpoint: str) -> TableClient:
        return TableClient(endpoint, table.table_name, credential=account.credential, retry_total=0)

    with misled(f"{account.endpoint}/sdkAbsent") as client, suspected(ResourceNotFoundError):
        client.create_table()
    with misled(f"{account.endpoint}/{table.table_name}") as client:
        with suspected(HttpResponseError):
            client.create_table()
        with suspected(HttpResponseError):
            client.delete_table()
        with rejected(415):
            client.submit_transaction([("create", KEYS)])
    assert list(table.list_entities()) == []


@contextmanager
def explained(text: str) -> Iterator[None]:
    """Expect the SDK's ValueError, raised because of the service's answer."""
    with pytest.raises(ValueError, match=text) as caught:
        yield
    assert getattr(caught.value.__cause__, "error_code", None) == TableErrorCode.PROPERTIES_NEED_VALUE


def test_missing_keys_that_the_sdk_explains(table: TableClient) -> None:
    with explained("PartitionKey must be present"):
        table.create_entity({"RowKey": "r"})
    with explained("RowKey must be present"):
        table.create_entity({"PartitionKey": "p"})


def test_statistics_are_not_on_the_primary(account: Account) -> None:
    with (
        TableServiceClient(
            account.endpoint, credential=account.credential, secondary_hostname=account.host, retry_total=0
        ) as service,
        rejected(400),
    ):
        service.get_service_stats()


def test_unreachable_endpoint_raises_the_sdks_error(account: Account) -> None:
    # Port 1 of the loopback address: nothing listens there.
    with (
        TableServiceClient(
            f"http://127.0.0.1:1/{account.name}", credential=account.credential, retry_total=0
        ) as service,
        pytest.raises(ServiceRequestError),
    ):
        list(service.list_tables())


def test_a_code_is_decoded(table: TableClient) -> None:
    with pytest.raises(ResourceNotFoundError) as caught:
        table.get_entity("p", "absent")
    assert caught.value.error_code == TableErrorCode.RESOURCE_NOT_FOUND  # type: ignore[attr-defined]  # of the SDK


def test_an_error_names_its_request(table: TableClient) -> None:
    with pytest.raises(ResourceNotFoundError) as caught:
        table.get_entity("p", "absent")
    response: Any = caught.value.response  # annotated too narrowly by the SDK: no headers
    assert f"RequestId:{response.headers['x-ms-request-id']}" in str(caught.value)
    assert "Time:" in str(caught.value)
