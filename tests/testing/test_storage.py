"""`lazulite.testing`: a server in a thread, for tests, and failures that are counted."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    TableServiceClient,
    generate_account_sas,
)
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from lazulite.auth.accounts.switches import Switches
from lazulite.engine.contract import DataDirectoryInUseError, EngineUnavailableError
from lazulite.testing.storage import NextFailures

ALL = AccountSasPermissions(read=True, write=True, add=True, create=True)
ENTITY = {"PartitionKey": "p", "RowKey": "r"}


def service(account: lazulite.testing.Account | lazulite.testing.Storage) -> TableServiceClient:
    return TableServiceClient.from_connection_string(account.connection_string, retry_total=0)


@pytest.fixture
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


@pytest.fixture
def table(storage: lazulite.testing.Storage) -> Iterator[TableClient]:
    with service(storage) as client:
        yield client.create_table("Orders")


def create_once_writable(table: TableClient) -> None:
    """Create the entity as soon as the store takes writes again."""
    for _ in range(10_000):
        try:
            table.create_entity(ENTITY)
        except HttpResponseError as error:
            if error.status_code != 503:
                raise
        else:
            return
    raise AssertionError("the store did not recover")


def test_a_server_starts_no_thread_after_its_start() -> None:
    """A thread that starts when memory is short may never report that it runs, and its starter waits forever."""
    before = set(threading.enumerate())
    with lazulite.testing.server() as storage:
        started = set(threading.enumerate()) - before
        connection = storage.connection_string
        with TableServiceClient.from_connection_string(connection) as tables:
            tables.create_table("Orders").create_entity(ENTITY)
            tables.delete_table("Orders")
        with QueueServiceClient.from_connection_string(connection) as queues:
            queues.create_queue("orders").send_message("one")
            queues.delete_queue("orders")
        with BlobServiceClient.from_connection_string(connection) as blobs:
            blobs.create_container("orders").upload_blob("one", bytes(1 << 20))
            blobs.delete_container("orders")
        assert [thread.name for thread in threading.enumerate() if thread not in before | started] == []
    assert set(threading.enumerate()) <= before


def test_an_sdk_writes_and_reads_until_the_end_of_the_block() -> None:
    others = set(threading.enumerate())  # Such as a server that other tests share.
    with lazulite.testing.server() as storage, service(storage) as client:
        client.create_table("Orders").create_entity({**ENTITY, "Total": 12.5})
        assert client.get_table_client("Orders").get_entity("p", "r")["Total"] == 12.5
        assert storage.endpoint == f"http://127.0.0.1:{storage.port}/devstoreaccount1"
    assert not any(thread.name.startswith("lazulite") for thread in set(threading.enumerate()) - others)


def test_accounts_see_no_table_of_one_another(storage: lazulite.testing.Storage) -> None:
    first, second = storage.account(), storage.account()
    for account in (first, second, storage):
        with service(account) as client:
            client.create_table("Orders")
    impostor = first.connection_string.replace(first.key, second.key)
    with TableServiceClient.from_connection_string(impostor) as client, pytest.raises(ClientAuthenticationError):
        list(client.list_tables())
    assert storage.account(first.name) == first
    assert storage.account("devstoreaccount1").connection_string == storage.connection_string


def test_a_location_keeps_tables_and_the_accounts_of_its_file(tmp_path: Path) -> None:
    for _ in range(2):
        with lazulite.testing.server(tmp_path) as storage, service(storage.account("orders")) as client:
            client.create_table_if_not_exists("Orders").upsert_entity(ENTITY)
            with pytest.raises(DataDirectoryInUseError), lazulite.testing.server(tmp_path):
                pass
    with lazulite.testing.server(str(tmp_path)) as storage, service(storage.account("orders")) as client:
        assert client.get_table_client("Orders").get_entity("p", "r")["RowKey"] == "r"


def test_servers_in_several_threads_share_nothing() -> None:
    together = threading.Barrier(4, timeout=30)

    def create(_: int) -> list[str]:
        with lazulite.testing.server() as storage, service(storage) as client:
            together.wait()
            client.create_table("Orders")
            together.wait()
            return [table.name for table in client.list_tables()]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(create, range(4))) == [["Orders"]] * 4


def test_threads_that_ask_one_server_for_accounts_get_all_of_them(storage: lazulite.testing.Storage) -> None:
    with ThreadPoolExecutor(4) as threads:
        accounts = list(threads.map(lambda _: storage.account(), range(16)))
    for account in accounts:
        with service(account) as client:
            assert list(client.list_tables()) == []


def test_the_clock_timestamps_entities_and_judges_credentials() -> None:
    now = datetime.now(UTC).replace(microsecond=123456)
    with lazulite.testing.server(clock=lambda: now) as storage, service(storage) as client:
        table = client.create_table("Orders")
        table.create_entity(ENTITY)
        timestamp = table.get_entity("p", "r").metadata["timestamp"]
        assert timestamp is not None
        assert abs(timestamp - now) < timedelta(milliseconds=1)
        now += timedelta(hours=1)
        with pytest.raises(ClientAuthenticationError):
            table.get_entity("p", "r")


def test_a_sas_is_good_from_its_start_to_its_end_by_a_clock_that_jumps() -> None:
    now = datetime(2031, 1, 1, tzinfo=UTC)
    with lazulite.testing.server(clock=lambda: now) as storage:
        account = storage.account()
        end = now + timedelta(days=30)
        credential = AzureNamedKeyCredential(account.name, account.key)
        token = generate_account_sas(credential, ResourceTypes(container=True), ALL, end, start=now)
        url = account.endpoint
        with TableServiceClient(url, credential=AzureSasCredential(token), retry_total=0) as client:
            client.create_table("Orders")
            now += timedelta(days=29)
            client.create_table("OrdersOfFebruary")
            now += timedelta(days=2)
            with pytest.raises(ClientAuthenticationError):
                client.create_table("OrdersOfMarch")


@pytest.mark.parametrize("step", ["before_write", "before_sync", "after_sync"])
def test_the_next_write_fails_and_the_store_recovers(
    step: str, storage: lazulite.testing.Storage, table: TableClient
) -> None:
    storage.fail_next(step)  # type: ignore[arg-type]  # a parameter's type is str
    with pytest.raises(HttpResponseError) as failed:
        table.create_entity(ENTITY)
    assert failed.value.status_code == 503
    if step == "before_write":
        create_once_writable(table)
    else:
        with pytest.raises(ResourceExistsError):
            create_once_writable(table)


def test_an_unknown_step_is_rejected(storage: lazulite.testing.Storage) -> None:
    with pytest.raises(ValueError, match="choose from before_write, before_sync, after_sync"):
        storage.fail_next("at_noon")  # type: ignore[arg-type]  # rejected


def test_an_unknown_name_of_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lazulite.testing.nothing  # type: ignore[attr-defined]  # noqa: B018 - a type checker finds it, too


def test_switches_of_an_account_change_without_a_new_key(storage: lazulite.testing.Storage) -> None:
    def switches(name: str) -> Switches:
        account = storage._directory.get(name)
        assert account is not None
        return account.switches

    first = storage.account("orders", versioning=True)
    assert switches("orders") == Switches(versioning=True)
    assert storage.account("orders", container_retention_days=7, versioning=False) == first
    assert storage.account("orders") == first
    assert switches("orders") == Switches(container_retention_days=7)
    storage.account("devstoreaccount1", versioning=True)
    assert switches("devstoreaccount1") == Switches(versioning=True, public_access=True)
    assert switches(storage.account(public_access=True).name) == Switches(public_access=True)
    assert switches("orders") == Switches(container_retention_days=7)


def test_a_step_fails_as_often_as_was_asked_for_and_the_others_pass() -> None:
    failpoints = NextFailures()
    failpoints.fail("before_sync", 2)
    for _ in range(2):
        failpoints["before_write"]()
        with pytest.raises(EngineUnavailableError, match="before_sync"):
            failpoints["before_sync"]()
    for failpoint in failpoints.values():
        failpoint()
