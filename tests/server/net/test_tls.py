"""Real handshakes, on both event loops."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from lazulite.server.admission.scheduler import SLICE_SECONDS, FairScheduler
from lazulite.server.limits import Limits
from lazulite.server.net.certificate import Certificate
from lazulite.server.server import SecurePort, Server
from tests.certificates import Authority, Files
from tests.server.admission import test_accounts
from tests.server.http.test_connection import GET, statuses
from tests.server.test_lifecycle import CLOSE, SECONDS_MAX, Gate, exchange, ids
from tests.server.wire import Echo

BODY = b"x" * (4 * 1024 * 1024)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def files(authority: Authority) -> Files:
    return authority.issue()


@pytest.fixture
def trust(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.root))


class Both:
    """A server with a port for HTTP and one for HTTPS."""

    def __init__(self, files: Files, limits: Limits, scheduler: FairScheduler | None = None) -> None:
        self.service, self.now_s = Echo(), 1000.0
        self.certificate = Certificate(files.cert, files.key)
        self.server = Server(
            self.service,
            host="127.0.0.1",
            port=0,
            secure=SecurePort(0, self.certificate),
            new_request_id=ids(),
            limits=limits,
            scheduler=scheduler,
        )

    @property
    def port(self) -> int:
        port = self.server.ports.https
        assert port
        return port


@pytest.fixture
def limits() -> Limits:
    return Limits(drain_seconds=5)


@pytest.fixture
async def both(files: Files, limits: Limits) -> AsyncIterator[Both]:
    started = Both(files, limits)
    await started.server.start()
    yield started
    async with asyncio.timeout(SECONDS_MAX):
        await started.server.stop()
    assert started.server.connection_count == 0


async def until(said: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not said():  # noqa: ASYNC110 - the server has no event for it.
            await asyncio.sleep(0)


async def converse(port: int, data: bytes, trust: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_both_ports_serve_and_each_tells_its_scheme(both: Both, trust: ssl.SSLContext) -> None:
    assert (await converse(both.port, CLOSE, trust)).endswith(b"GET /t?x=%27y ")
    assert (await exchange(both.server.port, CLOSE)).endswith(b"GET /t?x=%27y ")
    assert [request.scheme for request in both.service.requests] == ["https", "http"]
    assert {request.client for request in both.service.requests} == {"127.0.0.1"}


async def test_many_connections_with_pipelines(both: Both, trust: ssl.SSLContext) -> None:
    answers = await asyncio.gather(*(converse(both.port, GET * 20 + CLOSE, trust) for _ in range(20)))
    assert all(statuses(answer) == [200] * 21 for answer in answers)


async def test_large_bodies_both_ways(both: Both, trust: ssl.SSLContext) -> None:
    async with httpx.AsyncClient(verify=trust) as client:
        for _ in range(2):
            response = await client.put(f"https://127.0.0.1:{both.port}/", content=BODY)
            assert response.content == b"PUT /? " + BODY
        response = await client.put(f"https://127.0.0.1:{both.port}/", content=bytes(Limits().body_bytes + 1))
        assert (response.status_code, response.text) == (413, "RequestBodyTooLarge")


async def test_a_rejection_survives_what_the_client_still_sends(both: Both, trust: ssl.SSLContext) -> None:
    head = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n"
    assert statuses(await converse(both.port, head + b"x" * 3_000_000, trust)) == [413]


async def test_modern_tls_only(both: Both, trust: ssl.SSLContext) -> None:
    trust.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust)
    secured: ssl.SSLObject = writer.get_extra_info("ssl_object")
    assert secured.version() == "TLSv1.3"
    assert secured.compression() is None
    assert secured.selected_alpn_protocol() == "http/1.1"
    writer.close()
    await writer.wait_closed()
    assert both.certificate.context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert both.certificate.context.options & ssl.OP_NO_RENEGOTIATION
    old = ssl.create_default_context(cafile=None)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", both.port, ssl=old)


async def test_plain_http_gets_an_error_in_plain_http(both: Both, trust: ssl.SSLContext) -> None:
    answer = await exchange(both.port, GET)
    assert statuses(answer) == [400]
    assert b"AccountRequiresHttps" in answer
    assert both.service.requests == []
    assert statuses(await converse(both.port, CLOSE, trust)) == [200]


@pytest.mark.parametrize("data", [b"", b"\x16", b"\x16\x03\x01\x00\x05hello", b"\x16" * 5000])
async def test_a_handshake_that_fails_ends_that_connection_only(both: Both, data: bytes, trust: ssl.SSLContext) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
    writer.write(data)
    writer.write_eof()
    await reader.read()
    writer.close()
    assert statuses(await converse(both.port, CLOSE, trust)) == [200]


@pytest.mark.parametrize("limits", [Limits(tls_handshake_seconds=0.05)])
@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01\x02\x00\x01"])
async def test_a_slow_handshake_is_cut_short(both: Both, data: bytes) -> None:
    """The client waits for the end; nothing but the server's limit can bring it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
    writer.write(data)
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("limits", [Limits(connections=3, tls_handshake_seconds=600, drain_seconds=5)])
async def test_handshakes_count_as_connections(both: Both, trust: ssl.SSLContext) -> None:
    waiting = [await asyncio.open_connection("127.0.0.1", both.port) for _ in range(3)]
    await until(lambda: both.server.connection_count == 3)
    reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
    async with asyncio.timeout(SECONDS_MAX):
        assert await reader.read() == b""
    writer.close()
    for _, each in waiting:
        each.close()
    await until(lambda: both.server.connection_count == 0)
    assert statuses(await converse(both.port, CLOSE, trust)) == [200]


async def test_handshakes_go_by_the_slow_lane(files: Files, limits: Limits, trust: ssl.SSLContext) -> None:
    scheduler = test_accounts.Gate()
    both = Both(files, limits, scheduler)
    await both.server.start()
    client = asyncio.ensure_future(converse(both.port, CLOSE, trust))
    await until(lambda: bool(scheduler.waiting) or client.done())
    assert len(scheduler.waiting) == 1
    assert scheduler.owed_s >= SLICE_SECONDS
    await scheduler.let_on()
    assert statuses(await client) == [200]
    await both.server.stop()


async def test_a_new_certificate_is_for_new_connections(
    both: Both, authority: Authority, files: Files, trust: ssl.SSLContext
) -> None:
    gate = both.service.before = Gate()
    reader, writer = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust)
    writer.write(GET)
    await gate.reached.wait()
    renewed = authority.issue("renewed")
    files.cert.write_bytes(renewed.cert.read_bytes())
    files.key.write_bytes(renewed.key.read_bytes())
    both.certificate.reload()
    gate.opened.set()
    assert await reader.readuntil(b"%27y ")
    writer.write(CLOSE)
    assert statuses(await reader.read()) == [200]
    assert common_name(writer) == "server"
    writer.close()
    _, writer = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust)
    assert common_name(writer) == "renewed"
    writer.close()
    await writer.wait_closed()


def common_name(writer: asyncio.StreamWriter) -> str:
    return str(dict(pair for parts in writer.get_extra_info("peercert")["subject"] for pair in parts)["commonName"])


@pytest.mark.parametrize(
    "limits", [Limits(drain_seconds=60, linger_seconds=60, tls_handshake_seconds=600, tls_close_seconds=0.01)]
)
async def test_a_drain_answers_what_is_in_flight_and_waits_for_nobody_else(both: Both, trust: ssl.SSLContext) -> None:
    """The idle client reads nothing, so it never confirms the end; the third one has only connected."""
    idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust)
    idle_writer.write(GET)
    await idle_reader.readuntil(b"%27y ")
    idle_writer.transport.pause_reading()  # type: ignore[attr-defined]  # the stubs take it for any transport
    _, silent = await asyncio.open_connection("127.0.0.1", both.port)
    watching, watcher = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust)
    gate = both.service.before = Gate()
    reader, writer = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust)
    writer.write(GET)
    await gate.reached.wait()
    stopping = asyncio.ensure_future(both.server.stop())
    assert await watching.read() == b""
    assert not stopping.done()
    gate.opened.set()
    answer = await reader.read()
    assert statuses(answer) == [200]
    assert b"Connection: close" in answer
    async with asyncio.timeout(SECONDS_MAX):
        await stopping
    assert both.server.connection_count == 0
    for each in (writer, watcher, idle_writer, silent):
        each.transport.abort()


async def test_a_client_that_leaves_while_its_request_runs(
    both: Both, trust: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    gate = both.service.before = Gate()
    _, writer = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust)
    writer.write(GET * 8)
    await gate.reached.wait()
    writer.close()
    await writer.wait_closed()
    gate.opened.set()
    await until(lambda: both.server.connection_count == 0)
    assert gate.done
    assert caplog.records == []


async def test_a_slow_reader_holds_the_service_back(both: Both, trust: ssl.SSLContext) -> None:
    """The transport's buffer is bounded over TLS too: a client that does not read gets only some responses."""
    both.service.body = BODY
    reader, writer = await asyncio.open_connection("127.0.0.1", both.port, ssl=trust, limit=1024)
    writer.write(GET * 16)
    for _ in range(2000):
        await asyncio.sleep(0)
    assert len(both.service.requests) < 8
    answer = await reader.readexactly(100)
    assert answer.startswith(b"HTTP/1.1 200")
    writer.transport.abort()


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the kernel has no bound of unsent bytes")
async def test_client_that_does_not_read_gets_one_response(both: Both) -> None:
    """Without a bound of unsent bytes, the kernel would take 4 MiB of responses for each such client."""
    both.service.body = BODY[: 1 << 20]
    reader, writer = await asyncio.open_connection("127.0.0.1", both.server.port, limit=1024)
    writer.write(GET * 8)
    await until(lambda: bool(both.service.requests))
    for _ in range(2000):
        await asyncio.sleep(0)
    assert len(both.service.requests) == 1
    assert (await reader.readexactly(100)).startswith(b"HTTP/1.1 200")
    writer.transport.abort()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command is not installed")
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
async def test_openssl_as_a_user_runs_it(both: Both, authority: Authority, version: str) -> None:
    client = await asyncio.create_subprocess_exec(
        *["openssl", "s_client", "-connect", f"127.0.0.1:{both.port}", "-CAfile", str(authority.root), "-ign_eof"],
        *["-verify_return_error", "-alpn", "http/1.1", version],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    printed, _ = await client.communicate(CLOSE)
    assert client.returncode == 0
    assert b"Verify return code: 0 (ok)" in printed
    assert b"ALPN protocol: http/1.1" in printed
    assert b"Compression: NONE" in printed
    assert b"HTTP/1.1 200 OK" in printed
    assert [request.scheme for request in both.service.requests] == ["https"]
