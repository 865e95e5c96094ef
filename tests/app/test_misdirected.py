"""Clients at the wrong port, and the lines about them."""

import pytest

from lazulite.app.misdirected import LINES_MAX, MisdirectedClients, service_of
from lazulite.protocol.errors import ServiceError, TlsOnPlainPortError
from lazulite.protocol.message import Request

AGENTS = {
    "azsdk-python-storage-blob/12.31.1 Python/3.11.2 (Linux)": "blob",
    "azsdk-net-Storage.Queues/12.18.0 (.NET 8)": "queue",
    "azsdk-java-azure-data-tables/12.4.1": "table",
    "azsdk-go-azblob/v1.4.0 (go1.22)": "blob",
    "azsdk-js-azure-storage-queue/12.23.0": "queue",
    "myapp azsdk-js-data-tables/13.2.2": "table",
    "curl/8.5": "",
    "table": "",
    "azsdk-python-identity/1.0": "",
    "x" * 600 + " azsdk-go-azblob/v1": "",
}


def request(agent: str = "", client: str = "10.0.0.7", **fields: str) -> Request:
    given = {name.replace("_", "-"): value for name, value in fields.items()}
    return Request("GET", "/x", headers={"user-agent": agent, **given}, client=client)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_sdk_tells_its_service(agent: str) -> None:
    assert service_of(request(agent)) == AGENTS[agent]


def test_fields_of_one_service_tell_it() -> None:
    assert service_of(request(x_ms_blob_type="BlockBlob")) == "blob"
    assert service_of(request(dataserviceversion="3.0")) == "table"
    assert service_of(request()) == ""


def test_a_client_of_another_service_is_reported_once() -> None:
    lines: list[str] = []
    clients = MisdirectedClients("table", lines.append)
    error = ServiceError("AuthenticationFailed")
    for _ in range(3):
        clients.note(request("azsdk-python-storage-blob/12"), error)
        clients.note(request("azsdk-python-data-tables/12"), error)
        clients.note(request("curl"), error)
    assert lines == [
        "a client (10.0.0.7) of blobs is at the port of tables: check its BlobEndpoint, "
        "or the port of blobs (--blob-port)"
    ]


def test_https_at_a_port_for_http_is_reported() -> None:
    lines: list[str] = []
    MisdirectedClients("queue", lines.append).note(request(), TlsOnPlainPortError())
    assert lines == [
        "a client (10.0.0.7) speaks HTTPS at the port of queues for HTTP: "
        "write http:// in its endpoint, or serve HTTPS (--cert)"
    ]


def test_no_stranger_fills_the_log_or_writes_to_it() -> None:
    lines: list[str] = []
    clients = MisdirectedClients("table", lines.append)
    for number in range(1000):
        clients.note(
            request("azsdk-go-azblob/v1", f"10.0.{number // 256}.{number % 256}"), ServiceError("InvalidInput")
        )
    assert len(lines) == LINES_MAX
    lines.clear()
    MisdirectedClients("table", lines.append).note(
        request("azsdk-go-azblob/v1", "a text\nof a proxy"), ServiceError("InvalidInput")
    )
    assert lines[0].startswith("a client of blobs is at")
