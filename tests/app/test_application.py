"""`lazulite.create_app`: the whole service under an ASGI server, with and without lifespan events."""

import asyncio
import contextlib
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
import uvicorn
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError
from azure.data.tables import TableServiceClient

import lazulite
from lazulite.app.application import Application
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, parse_accounts
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.cli.connection_string import connection_string, path_style
from lazulite.engine.contract import DataDirectoryInUseError
from lazulite.server.asgi.application import Application as Serve
from lazulite.server.asgi.body import Message
from lazulite.server.limits import Limits
from lazulite.settings.addresses import ServiceAddress
from lazulite.settings.config import ConfigError
from tests.conformance.sas import account_sas
from tests.conformance.signing import Endpoint

SETTINGS = lazulite.Settings(log_requests=False)
HEALTH = "http://127.0.0.1/health"


@contextlib.contextmanager
def uvicorn_serving(app: Application) -> Iterator[str]:
    """Serve an application by uvicorn in a thread; yield the development account's connection string."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ready = threading.Event()

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                ready.set()

        server = Server(uvicorn.Config(app, log_level="critical", lifespan="on", http="httptools", ws="none"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert ready.wait(30)
            port = listening.getsockname()[1]
            yield connection_string(
                DEVELOPMENT_ACCOUNT, {"table": path_style(DEVELOPMENT_ACCOUNT.name, "127.0.0.1", port)}
            )
        finally:
            server.should_exit = True
            thread.join(30)


def client_of(app: Application, address: str = "127.0.0.1") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app, client=(address, 4711)))


async def lifespan(app: Serve, *events: str) -> list[Message]:
    """Send lifespan events; return the answers."""
    received, sent = [{"type": f"lifespan.{event}"} for event in events], []

    async def receive() -> Message:
        return dict(received.pop(0))

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "lifespan"}, receive, send)
    return sent


def test_an_sdk_writes_and_a_second_start_of_uvicorn_still_has_it(tmp_path: Path) -> None:
    small = replace(SETTINGS, limits=Limits(body_bytes=5000))
    with uvicorn_serving(lazulite.create_app(tmp_path, settings=small)) as string:
        with TableServiceClient.from_connection_string(string, retry_total=0) as service:
            table = service.create_table("Orders")
            table.create_entity({"PartitionKey": "a b'", "RowKey": "€", "Total": 12.5})
            with pytest.raises(ResourceExistsError):
                table.create_entity({"PartitionKey": "a b'", "RowKey": "€"})
            table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": str(row)}) for row in range(3)])
            with pytest.raises(HttpResponseError) as rejected:
                table.upsert_entity({"PartitionKey": "p", "RowKey": "large", "Text": "x" * 5000})
            assert rejected.value.status_code == 413
        other_key = string.replace("Eby8", "Eby9")
        with TableServiceClient.from_connection_string(other_key) as other, pytest.raises(ClientAuthenticationError):
            list(other.list_tables())
    with (
        uvicorn_serving(lazulite.create_app(tmp_path)) as string,
        TableServiceClient.from_connection_string(string, retry_total=0) as service,
    ):
        table = service.get_table_client("Orders")
        assert table.get_entity("a b'", "€")["Total"] == 12.5
        assert len(list(table.query_entities("PartitionKey eq 'p'"))) == 3


async def test_lifespan_events_open_and_close_the_store(tmp_path: Path) -> None:
    app, other = lazulite.create_app(tmp_path), lazulite.create_app(tmp_path)
    seen: list[str] = []

    async def receive() -> Message:
        if seen:
            with pytest.raises(DataDirectoryInUseError):
                await other.__aenter__()
        return {"type": "lifespan.shutdown" if seen else "lifespan.startup"}

    async def send(message: Message) -> None:
        seen.append(str(message["type"]))

    await app({"type": "lifespan"}, receive, send)
    assert seen == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    async with other:
        pass


async def test_a_store_that_cannot_be_opened_fails_the_startup(tmp_path: Path) -> None:
    (tmp_path / "accounts.json").write_text("{")
    (message,) = await lifespan(lazulite.create_app(tmp_path), "startup")
    assert message["type"] == "lifespan.startup.failed"
    assert "accounts.json" in str(message["message"])


async def test_without_lifespan_events_the_first_requests_open_one_store() -> None:
    app = lazulite.create_app()
    async with client_of(app) as client:
        answers = await asyncio.gather(*(client.get(HEALTH) for _ in range(3)))
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    await app.__aexit__()
    await app.__aexit__()


async def test_an_attempt_to_open_that_fails_is_made_again_by_the_next_request(tmp_path: Path) -> None:
    app = lazulite.create_app(tmp_path)
    async with client_of(app) as client:
        async with lazulite.create_app(tmp_path):
            with pytest.raises(DataDirectoryInUseError):
                await client.get(HEALTH)
        assert (await client.get(HEALTH)).status_code == 200
    await app.__aexit__()


async def test_a_log_that_cannot_be_written_fails_the_request(tmp_path: Path) -> None:
    async with client_of(lazulite.create_app(settings=replace(SETTINGS, debug_file=tmp_path))) as client:
        with pytest.raises(ConfigError, match="cannot write"):
            await client.get(HEALTH)


@pytest.mark.parametrize(
    ("address", "host", "code"),
    [
        ("127.0.0.1", "localhost", "NoAuthenticationInformation"),
        ("127.0.0.1", "evil.example", "InvalidHeaderValue"),
        ("192.0.2.7", "localhost", "AuthorizationFailure"),
        ("127.0.0.1", "devbox", "NoAuthenticationInformation"),
    ],
)
async def test_the_development_key_is_for_known_hosts_and_for_clients_of_this_machine(
    address: str, host: str, code: str
) -> None:
    app = lazulite.create_app(settings=replace(SETTINGS, allowed_hosts=("devbox",)))
    async with app, client_of(app, address) as client:
        stated = {"x-ms-version": "2019-02-02"}  # Older versions have no header with the code.
        answer = await client.get(f"http://{host}/devstoreaccount1/Tables", headers=stated)
    assert answer.headers["x-ms-error-code"] == code


@pytest.mark.parametrize("change", [{"accounts": parse_accounts("own:MTIz")}, {"allow_development_key": True}])
async def test_clients_of_other_machines_are_answered(change: dict[str, object]) -> None:
    app = lazulite.create_app(settings=replace(SETTINGS, **change))  # type: ignore[arg-type]  # of several types
    async with app, client_of(app, "192.0.2.7") as client:
        assert (await client.get(HEALTH)).status_code == 200


async def test_the_log_has_the_client_that_a_proxy_names(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    settings = lazulite.Settings(accounts=parse_accounts("own:MTIz"), trusted_proxies=(ip_network("192.0.2.7"),))
    app = lazulite.create_app(settings=settings)
    async with app, client_of(app, "192.0.2.7") as client:
        await client.get("http://a.example/own/Tables", headers={"X-Forwarded-For": "203.0.113.9"})
    logged = capfdbinary.readouterr().err
    assert b'"client":"203.0.113.9"' in logged


def signed(path: str) -> str:
    """Return the URL of a path below the development account, with an account SAS."""
    account = DEVELOPMENT_ACCOUNT
    endpoint = Endpoint.parse(f"http://127.0.0.1/{account.name}", account.name, b64encode(account.keys[0]).decode())
    return f"http://127.0.0.1/{account.name}/{path}?{account_sas(endpoint, {})}"


async def test_a_drain_is_announced_by_health_and_everything_else_goes_on() -> None:
    app = lazulite.create_app(settings=SETTINGS)
    app.begin_drain()
    async with app, client_of(app) as client:
        assert (await client.get(HEALTH)).status_code == 200
        app.begin_drain()
        answer = await client.get(HEALTH)
        assert (answer.status_code, answer.json()) == (503, {"status": "Stopping"})
        assert (await client.get(signed("Tables"))).status_code == 200


async def test_the_end_waits_for_requests_in_flight(tmp_path: Path) -> None:
    app = lazulite.create_app(tmp_path, settings=SETTINGS)
    asked, arrives, statuses = asyncio.Event(), asyncio.Event(), list[object]()

    async def receive() -> Message:
        asked.set()
        await arrives.wait()
        return {"type": "http.request", "body": b'{"TableName":"Late"}'}

    async def send(message: Message) -> None:
        statuses.append(message.get("status"))

    path, _, query = signed("Tables").removeprefix("http://127.0.0.1").partition("?")
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"20")]
    scope: Message = {"type": "http", "method": "POST", "path": path, "query_string": query.encode()}
    async with client_of(app) as client:
        await app.__aenter__()
        late = asyncio.create_task(app({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send))
        await asked.wait()
        closing = asyncio.create_task(app.__aexit__())
        await asyncio.sleep(0)
        health = await client.get(HEALTH)
        assert (health.status_code, closing.done()) == (503, False)
        arrives.set()
        await closing
        await late
        assert statuses == [201, None]
    async with app, client_of(app) as client:
        assert "Late" in (await client.get(signed("Tables"))).text


async def test_metrics_are_served_at_a_path_and_count_everything_else(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    app = lazulite.create_app(settings=lazulite.Settings(), metrics_path="/-/metrics")
    async with app, client_of(app) as client:
        for _ in range(3):
            await client.get(HEALTH)
        page = (await client.get("http://127.0.0.1/-/metrics?x=y")).text
        again = await client.get("http://127.0.0.1/-/metrics")
        assert (await client.get(signed("metrics()"))).json()["odata.error"]["code"] == "TableNotFound"
    count = 'lazulite_requests_total{operation="Health",status="200"} 3.0'
    assert count in page
    assert count in again.text
    assert 'operation="none"' not in again.text, "scrapes are not counted"
    assert "lazulite_store_writable 1.0" in page
    assert "lazulite_flush_commits_count 1.0" in page, "the write of /health"
    assert "lazulite_buffered_bytes 0.0" in page
    assert again.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert capfdbinary.readouterr().err.count(b"\n") == 4, "nor logged"


async def test_services_are_distinguished_by_the_host_or_have_applications_of_their_own() -> None:
    app = lazulite.create_app(settings=SETTINGS)
    queues = app.service("queue")
    account = DEVELOPMENT_ACCOUNT.name
    terms = AccountSas(services="tqb", resource_types="sco", permission="rl", expiry="2100-01-01T00:00:00Z")
    sas = sign_account_sas(DEVELOPMENT_ACCOUNT, terms)

    async def server(application: Serve, url: str) -> str:
        transport = httpx.ASGITransport(app=application, client=("127.0.0.1", 4711))
        async with httpx.AsyncClient(transport=transport) as client:
            return (await client.get(url)).headers["server"].partition("/")[0]

    async with app:
        assert await server(app, f"http://{account}.queue.localhost/?comp=list&{sas}") == "Windows-Azure-Queue"
        assert await server(app, f"http://{account}.table.localhost/Tables?{sas}") == "Windows-Azure-Table"
        assert await server(app, f"http://{account}.blob.localhost/?comp=list&{sas}") == "Windows-Azure-Blob"
        assert await server(app, f"http://127.0.0.1/{account}/Tables?{sas}") == "Windows-Azure-Table"
        assert await server(queues, f"http://127.0.0.1/{account}?comp=list&{sas}") == "Windows-Azure-Queue"
    assert [event["type"] for event in await lifespan(queues, "startup", "shutdown")] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    with pytest.raises(ConfigError, match="'file'"):
        app.service("file")
    with pytest.raises(ConfigError, match="does not serve 'queue'"):
        lazulite.create_app(settings=replace(SETTINGS, services=("table",))).service("queue")


async def test_without_a_path_there_are_no_metrics() -> None:
    async with lazulite.create_app(settings=SETTINGS) as app, client_of(app) as client:
        assert (await client.get("http://127.0.0.1/metrics")).status_code == 404


@pytest.mark.parametrize("path", ["metrics", "", "/health"])
def test_a_path_that_is_none_is_rejected(path: str) -> None:
    with pytest.raises(ConfigError, match="metrics"):
        lazulite.create_app(metrics_path=path)


def test_traces_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    assert lazulite.create_app()._settings.trace_exporters == ("console",)


@pytest.mark.parametrize(
    "change", [{"cert": Path("a")}, {"metrics_port": 0}, {"addresses": {"table": ServiceAddress()}}, {"workers": 2}]
)
def test_settings_of_the_host_are_rejected(change: dict[str, object]) -> None:
    (name,) = change
    with pytest.raises(ConfigError, match=name):
        lazulite.create_app(settings=replace(SETTINGS, **change))  # type: ignore[arg-type]  # of several types


def test_the_accounts_of_the_environment_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAZULITE_ACCOUNTS", "own")
    with pytest.raises(ConfigError, match="LAZULITE_ACCOUNTS"):
        lazulite.create_app()


def test_an_unknown_name_of_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lazulite.nothing  # type: ignore[attr-defined]  # noqa: B018 - a type checker finds it, too
