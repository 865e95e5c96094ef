"""The Python SDK with endpoints in host style, as it has them in the cloud, over HTTP and HTTPS."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.data.tables import TableServiceClient
from tests.certificates import Authority
from tests.server_process import Account, serving


@pytest.fixture(autouse=True)
def resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every machine resolves `*.localhost`."""
    real: Callable[..., Any] = socket.getaddrinfo

    def resolve(host: str, *arguments: Any, **named: Any) -> Any:
        return real("127.0.0.1" if host.endswith(".localhost") else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[dict[str, Account]]:
    """The account by HTTP and by HTTPS."""
    flags = (*authority.issue().flags, "--https-port", "0")
    with serving(tmp_path_factory.mktemp("hosts") / "data", *flags) as server:
        yield {"http": server.account, "https": Account.parse(server.line())}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_everything_works_by_the_hosts_name(accounts: dict[str, Account], scheme: str, authority: Authority) -> None:
    account = accounts[scheme]
    port = account.host.rpartition(":")[2]
    endpoint = f"{scheme}://{account.name}.table.localhost:{port}"
    secondary = f"{account.name}-secondary.table.localhost:{port}"
    named: dict[str, Any] = {"credential": account.credential, "retry_total": 0, "secondary_hostname": secondary}
    if scheme == "https":
        named["connection_verify"] = str(authority.root)
    with TableServiceClient(endpoint, **named) as service:
        assert service.account_name == account.name
        table = service.create_table(f"By{scheme}")
        table.upsert_entity({"PartitionKey": "p'q", "RowKey": "r 1%"})
        table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": f"{row}"}) for row in range(3)])
        assert table.get_entity("p'q", "r 1%")["RowKey"] == "r 1%"
        pages = list(table.list_entities(results_per_page=3).by_page())
        assert sum(len(list(page)) for page in pages) == 4
        assert table.get_table_access_policy() == {}
        assert "geo_replication" in service.get_service_stats()
        service.delete_table(f"By{scheme}")
