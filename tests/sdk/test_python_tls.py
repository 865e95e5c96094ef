"""The Python SDK over HTTPS, with a certificate authority of one's own."""

import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    TableServiceClient,
    TableTransactionError,
    generate_account_sas,
)
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from tests.certificates import Authority, Files
from tests.server_process import Account, ServerProcess, serving

from .failures import rejected


@pytest.fixture(scope="module")
def files(authority: Authority) -> Files:
    return authority.issue()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, files: Files) -> Iterator[ServerProcess]:
    """A server for both; `account` is the one of plain HTTP."""
    with serving(tmp_path_factory.mktemp("tls") / "data", *files.flags, "--https-port", "0") as started:
        yield started


@pytest.fixture(scope="module")
def secure(server: ServerProcess) -> Account:
    return Account.parse(server.line())


def client_of(account: Account, authority: Authority) -> TableServiceClient:
    return TableServiceClient.from_connection_string(
        account.connection_string, retry_total=0, connection_verify=str(authority.root)
    )


def fill(table: TableClient) -> None:
    for number in range(5):
        table.upsert_entity({"PartitionKey": "p'%", "RowKey": f"{number}", "Value": number})
    table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": f"{number}"}) for number in range(5)])


def test_everything_goes_over_https(secure: Account, authority: Authority) -> None:
    assert secure.endpoint.startswith("https://")
    with client_of(secure, authority) as service:
        table = service.create_table("Everything")
        fill(table)
        rows = [row["RowKey"] for page in table.list_entities(results_per_page=3).by_page() for row in page]
        assert len(rows) == 10
        with pytest.raises(TableTransactionError):
            table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "1"})])
        service.delete_table("Everything")


async def test_the_asynchronous_client_too(secure: Account, authority: Authority) -> None:
    string, root = secure.connection_string, str(authority.root)
    async with AsyncTableServiceClient.from_connection_string(string, retry_total=0, connection_verify=root) as service:
        table = await service.create_table("Asynchronous")
        await table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "Value": "x" * 30_000})
        assert (await table.get_entity("p", "r"))["Value"] == "x" * 30_000
        await service.delete_table("Asynchronous")


def test_an_unknown_authority_is_not_trusted(secure: Account, tmp_path: Path) -> None:
    with client_of(secure, Authority(tmp_path)) as service, pytest.raises(ServiceRequestError):
        list(service.list_tables())


def test_a_token_for_https_is_rejected_over_http(server: ServerProcess, secure: Account, authority: Authority) -> None:
    token = generate_account_sas(
        secure.credential,
        ResourceTypes(service=True, object=True),
        AccountSasPermissions(read=True, list=True),
        datetime.now(UTC) + timedelta(hours=1),
        protocol="https",
    )
    root = str(authority.root)
    with TableServiceClient(f"{secure.endpoint}?{token}", retry_total=0, connection_verify=root) as service:
        assert service.get_service_properties()
    with TableServiceClient(f"{server.account.endpoint}?{token}", retry_total=0) as service, rejected(403):
        service.get_service_properties()


def test_certificates_change_under_running_requests(
    server: ServerProcess, secure: Account, authority: Authority, files: Files
) -> None:
    """Clients work all the while, some on connections from before; no request of theirs fails."""
    ended, failures, answered = threading.Event(), list[Exception](), [0, 0]

    def work(number: int) -> None:
        with client_of(secure, authority) as service:
            table = service.get_table_client("Renewed")
            while not ended.is_set():
                try:
                    table.upsert_entity({"PartitionKey": "p", "RowKey": f"{number}"})
                    answered[number] += 1
                except Exception as failure:  # noqa: BLE001 - whatever it is, it is reported below
                    failures.append(failure)
                    return

    with client_of(secure, authority) as service:
        service.create_table("Renewed")
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for number in range(5):
            renewed = authority.issue(f"renewed{number}")
            files.cert.write_bytes(renewed.cert.read_bytes())
            files.key.write_bytes(renewed.key.read_bytes())
            server.signal(signal.SIGHUP)
            with client_of(secure, authority) as fresh:
                list(fresh.list_tables())
        ended.set()
        for thread in threads:
            thread.join()
        service.delete_table("Renewed")
    assert failures == []
    assert all(answered)
