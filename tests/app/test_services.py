"""What a process does beside answering: it finishes what others left, and tells people what is wrong."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from ipaddress import IPv4Network, ip_network
from itertools import count

import pytest

from lazulite.app import services as module
from lazulite.app.servers import front
from lazulite.app.services import LINES_MAX, MisdirectedClients, open_services, service_of
from lazulite.app.stores import Store, meanwhile
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.engine.commit import changing
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError, TlsOnPlainPortError
from lazulite.protocol.message import Request, response_of
from lazulite.records.spaces import TABLES
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.settings.addresses import BLOB, QUEUE, TABLE, ServiceAddress
from lazulite.settings.config import Settings
from tests.blob.world import VERSION, token
from tests.fuzz.memory import MemoryEngine
from tests.server.copy_sources.peers import answer, peer

SETTINGS = Settings(services=(TABLE,))
ITERATIONS = 100

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


@pytest.mark.parametrize("shared", [False, True])
async def test_what_a_dead_process_left_is_finished_where_others_may_have_died(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAKE_OVER_SECONDS", 0)
    engine = MemoryEngine(system_clock)
    drop, failures = engine.drop, iter([EngineUnavailableError("the database cannot serve now")])

    async def fail_once(space: int) -> None:
        for failure in failures:
            raise failure
        await drop(space)

    monkeypatch.setattr(engine, "drop", fail_once)
    store = Store(engine, AccountDirectory({}), shared=shared)
    async with open_services(SETTINGS, store, FairScheduler()):
        await engine.commit(TABLES, "a", changing(["!1024"], lambda _, __: {"!1024": b""}))
        for _ in range(ITERATIONS):
            await asyncio.sleep(0)
        assert (await engine.get(TABLES, "a", "!1024") is None) is shared


async def test_given_hosts_are_answered_as_a_trusted_proxy_tells_them(capsys: pytest.CaptureFixture[str]) -> None:
    settings = replace(
        SETTINGS,
        addresses={TABLE: ServiceAddress("devbox")},
        allowed_hosts=("other",),
        trusted_proxies=(ip_network("192.0.2.1"),),
    )
    store = Store(MemoryEngine(system_clock), AccountDirectory({}))
    async with open_services(settings, store, FairScheduler()) as services:
        service = front(settings, list(services.values()))

        async def code(host: str, forwarded: str = "") -> str:
            headers = {"host": host} | ({"x-forwarded-host": forwarded} if forwarded else {})
            request = Request("GET", "/devstoreaccount1/", headers=headers, client="192.0.2.1")
            return (await response_of(service, request)).error_code

        assert {await code("devbox:1"), await code("other"), await code("third", "other")} == {
            "NoAuthenticationInformation"
        }
        assert {await code("third"), await code("other", "third")} == {"InvalidHeaderValue"}
    assert "--allowed-host third" in capsys.readouterr().err


@pytest.mark.parametrize("hosts", [(), (ip_network("127.0.0.1"),)])
async def test_sources_of_copies_are_fetched_from_given_hosts(hosts: tuple[IPv4Network, ...]) -> None:
    settings = Settings(services=(BLOB,), copy_source_hosts=hosts)
    store = Store(
        MemoryEngine(system_clock),
        AccountDirectory({DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT}),
        contents=ContentMemory(),
    )
    async with open_services(settings, store, FairScheduler()) as services, peer(answer(b"data")) as other:

        async def put(path: str, query: str = "", **headers: str) -> int:
            sent = {"host": "127.0.0.1", "content-length": "0", "x-ms-version": VERSION, **headers}
            request = Request("PUT", f"/{DEVELOPMENT_ACCOUNT.name}/{path}", query + token(), sent, client="127.0.0.1")
            return (await response_of(services[BLOB].service, request)).status

        assert await put("docs", "restype=container&") == 201
        assert await put("docs/copy", **{"x-ms-copy-source": f"{other.url}/data"}) == (202 if hosts else 404)
        assert len(other.heads) == len(hosts)


@pytest.mark.parametrize("shared", [False, True])
async def test_maintenance_of_a_store_of_our_own_is_background_work(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, scheduler, maintenance = list[module.Schedule](), FairScheduler(), module.maintenance

    def note(
        maintained: module.MaintainedService, seconds: float, schedule: module.Schedule
    ) -> AbstractAsyncContextManager[None]:
        found.append(schedule)
        return maintenance(maintained, seconds, schedule)

    monkeypatch.setattr(module, "maintenance", note)
    store = Store(MemoryEngine(system_clock), AccountDirectory({}), shared=shared)
    async with open_services(Settings(services=(QUEUE,)), store, scheduler):
        assert found == [scheduler.schedule_fairly if shared else scheduler.schedule_in_background]


async def test_maintenance_pauses() -> None:
    ticks, pauses = count(), list[float]()

    class Busy:
        async def start(self) -> None:
            """Nothing was interrupted."""

        async def maintain(self) -> None:
            for _ in range(ITERATIONS):
                await asyncio.sleep(0)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    def clock() -> float:
        return float(next(ticks))

    async with module.maintenance(Busy(), 0, FairScheduler(clock, clock, sleep=pause).schedule_in_background):
        for _ in range(ITERATIONS):
            await asyncio.sleep(0)
    assert len(pauses) > 1


async def test_people_are_reported_when_something_beside_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    async def end() -> None:
        raise LookupError("secret")

    async with meanwhile(end()):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    said = "lazulite: a background task has failed: LookupError; restart the server\n"
    assert capsys.readouterr().err == said


async def test_nothing_is_reported_when_it_goes_on_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    async with meanwhile(asyncio.sleep(3600)):
        await asyncio.sleep(0)
    assert capsys.readouterr().err == ""


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
