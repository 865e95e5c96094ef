"""`lazulite serve`: a port for each service, one store, one log, one metrics page; or one port for both."""

import http.client
import json
import urllib.request
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account, AccountDirectory
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.cli.announcement import announcement
from lazulite.cli.parser import build_parser
from lazulite.server.server import Ports
from lazulite.settings.config import settings_from
from tests.docs_support import free_port
from tests.server_process import running

SERVICES = ("--services", "table,queue", "--queue-port")


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as response:
        found: bytes = response.read()
        return found


def test_tables_and_queues(tmp_path: Path) -> None:
    location = ("--location", str(tmp_path / "data"))
    with running(*location, *SERVICES, "0", "--metrics-port", "0", lines=4) as server:
        connection_string, queues, metrics = (line.strip() for line in server.lines[1:])
        with (
            QueueServiceClient.from_connection_string(connection_string, retry_total=0) as queue_service,
            TableServiceClient.from_connection_string(connection_string, retry_total=0) as table_service,
        ):
            table_service.create_table("Jobs")
            with queue_service.create_queue("jobs") as queue:
                queue.send_message("a")
        assert json.loads(read(queues.removeprefix("queues: ") + "health")) == {"status": "ok"}
        page = read(metrics.removeprefix("metrics: ")).decode()
        assert 'lazulite_requests_total{operation="PutMessage",status="201"} 1.0' in page
        assert 'lazulite_requests_total{operation="CreateTable",status="201"} 1.0' in page
        code, log = server.stop()
        assert code == 0
        logged = {(line["operation"], line["status"]) for line in map(json.loads, log.splitlines())}
        assert {("CreateTable", 201), ("CreateQueue", 201), ("PutMessage", 201), ("Health", 200)} <= logged
    with running(*location, *SERVICES, "0", lines=3) as server:
        with (
            QueueServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as queue_service,
            queue_service.get_queue_client("jobs") as queue,
        ):
            got = queue.receive_message()
            assert got is not None
            assert got.content == "a"
        assert server.stop()[0] == 0


def test_a_taken_port_names_the_flags() -> None:
    port = str(free_port())
    with running("--in-memory", *SERVICES, port, lines=3) as first:
        with running("--in-memory", *SERVICES, port, lines=1) as second:
            code, error = second.stop()
        assert code == 1
        assert f"cannot listen on 127.0.0.1 port {port}" in error
        assert "--queue-port" in error
        assert "(--services table)" in error
        assert first.stop()[0] == 0


@pytest.mark.parametrize("text", ["file", "table,file", ""])
def test_lists_of_services_that_are_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["serve", "--services", text])
    assert "is not a list of services: table, queue, blob" in capsys.readouterr().err


def test_hints_name_the_address_of_queues() -> None:
    args = build_parser().parse_args(["serve", "--services", "table,queue", "--queue-host", "::1"])
    directory = AccountDirectory({"acct": Account("acct", (b"k",))})
    settings = settings_from(args, {})
    lines = list(announcement(settings, directory, "store", {"table": Ports(10002, None), "queue": Ports(10001, None)}))
    assert lines[1:] == [
        "account acct: lazulite connection-string --account acct --queue-host ::1",
        "queues: http://[::1]:10001/",
    ]


def test_all_services_are_the_default() -> None:
    assert settings_from(build_parser().parse_args(["serve"]), {}).servers == (("table",), ("queue",), ("blob",))


def test_queues_alone(tmp_path: Path) -> None:
    flags = ("--location", str(tmp_path / "data"), "--services", "queue")
    with running(*flags, "--queue-port", "0", lines=2) as server:
        fields = dict(part.split("=", 1) for part in server.lines[1].strip().strip(";").split(";"))
        assert "TableEndpoint" not in fields
        assert fields["QueueEndpoint"] == f"{server.url}devstoreaccount1"
        with QueueServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as service:
            service.create_queue("jobs").close()
        assert server.stop()[0] == 0


def ask(port: str, host: str, path: str) -> tuple[int, str, str]:
    """Return the status, the `Server` field and the error code of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    try:
        connection.request("GET", path, headers={"Host": host, "x-ms-version": "2019-02-02"})
        response = connection.getresponse()
        response.read()
        return response.status, response.headers.get("Server", ""), response.headers.get("x-ms-error-code", "")
    finally:
        connection.close()


def signed(name: str, path: str) -> str:
    """Return a path below the account's root with an account SAS for a service."""
    letters = {"table": "t", "queue": "q"}[name]
    sas = AccountSas(services=letters, resource_types="sco", permission="rwdlacup", expiry="2100-01-01T00:00:00Z")
    query = sign_account_sas(DEVELOPMENT_ACCOUNT, sas)
    return f"{path}{'&' if '?' in path else '?'}{query}"


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_services_on_one_port_are_distinguished_by_the_host(workers: tuple[str, ...], tmp_path: Path) -> None:
    port = str(free_port())
    flags = ("--location", str(tmp_path / "data"), "--services", "table,queue", *workers)
    shared = ("--table-port", port, "--queue-port", port, "--host-suffix", "table.example.org")
    account = DEVELOPMENT_ACCOUNT.name
    with running(*flags, *shared, lines=2) as server:
        assert (
            server.lines[1]
            .strip()
            .endswith(
                f"TableEndpoint=http://{account}.table.example.org:{port};"
                f"QueueEndpoint=http://{account}.queue.example.org:{port};"
                f"QueueSecondaryEndpoint=http://{account}-secondary.queue.example.org:{port};"
            )
        )
        tables, queues = "Windows-Azure-Table", "Windows-Azure-Queue"
        for domain in ("localhost", "example.org"):
            status, name, _ = ask(port, f"{account}.queue.{domain}:{port}", signed("queue", "/?comp=list"))
            assert (status, name.partition("/")[0]) == (200, queues)
            status, name, _ = ask(port, f"{account}.TABLE.{domain}", signed("table", "/Tables"))
            assert (status, name.partition("/")[0]) == (200, tables)
            status, name, code = ask(port, f"{account}-secondary.queue.{domain}", signed("queue", "/?comp=list"))
            assert (status, name.partition("/")[0]) == (200, queues), code
        status, name, _ = ask(port, f"127.0.0.1:{port}", signed("table", f"/{account}/Tables"))
        assert (status, name.partition("/")[0]) == (200, tables), "path style is the first service's"
        assert ask(port, f"{account}.queue.localhost", signed("table", "/Tables"))[0] == 403
        assert ask(port, "evil.example.net", "/")[2] == "InvalidHeaderValue"
        for host in ("127.0.0.1", f"{account}.queue.localhost", f"{account}.table.localhost"):
            assert ask(port, host, "/health")[0] == 200
        assert server.stop()[0] == 0


def test_hints_for_one_port_name_it_and_the_host_suffix() -> None:
    arguments = ["serve", "--table-port", "1", "--queue-port", "1", "--host-suffix", "table.example.org"]
    settings = settings_from(build_parser().parse_args(arguments), {})
    directory = AccountDirectory({"acct": Account("acct", (b"k",))})
    ports = {"table": Ports(1, None), "queue": Ports(1, None), "blob": Ports(10000, None)}
    assert list(announcement(settings, directory, "store", ports))[1:] == [
        "account acct: lazulite connection-string --account acct --table-port 1 --queue-port 1 "
        "--host-suffix table.example.org",
        "blobs: http://127.0.0.1:10000/",
    ]


def test_services_that_share_a_port_have_one_line() -> None:
    settings = settings_from(build_parser().parse_args(["serve", "--queue-port", "10000"]), {})
    directory = AccountDirectory({DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT})
    ports = {"table": Ports(10002, None), "queue": Ports(10000, None), "blob": Ports(10000, None)}
    _, string, *others = announcement(settings, directory, "store", ports)
    assert others == ["queues and blobs: http://127.0.0.1:10000/"]
    assert string.endswith(
        "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
        "QueueEndpoint=http://devstoreaccount1.queue.localhost:10000;"
        "BlobEndpoint=http://devstoreaccount1.blob.localhost:10000;"
        "QueueSecondaryEndpoint=http://devstoreaccount1-secondary.queue.localhost:10000;"
        "BlobSecondaryEndpoint=http://devstoreaccount1-secondary.blob.localhost:10000;"
    )


def test_websites_have_a_line_and_no_endpoint() -> None:
    settings = settings_from(build_parser().parse_args(["serve", "--web-port", "9"]), {})
    directory = AccountDirectory({DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT})
    ports = {name: Ports(settings.address(name).port, None) for name in settings.services}
    _, string, _, blobs, websites = announcement(settings, directory, "store", ports)
    assert (blobs, websites) == ("blobs: http://127.0.0.1:10000/", "websites: http://127.0.0.1:9/")
    assert "Web" not in string


def test_development_storage_of_sdks_is_what_the_defaults_serve() -> None:
    settings = settings_from(build_parser().parse_args(["serve"]), {})
    ports = {name: Ports(settings.address(name).port, None) for name in settings.services}
    directory = AccountDirectory({DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT})
    string = list(announcement(settings, directory, "store", ports))[1]
    clients: list[tuple[type[TableServiceClient] | type[QueueServiceClient] | type[BlobServiceClient], str]] = [
        (TableServiceClient, "TableEndpoint"),
        (QueueServiceClient, "QueueEndpoint"),
        (BlobServiceClient, "BlobEndpoint"),
    ]
    fields = dict(part.split("=", 1) for part in string.strip(";").split(";"))
    for kind, endpoint in clients:
        with kind.from_connection_string("UseDevelopmentStorage=true") as client:
            assert client.url.rstrip("/") == fields[endpoint]
