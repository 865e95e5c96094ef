"""Real sockets, real signals."""

import asyncio
import os
import resource
import signal
import socket
import warnings
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from itertools import count

import aiohttp
import httpx
import pytest
import uvloop

from lazulite.protocol.message import Request
from lazulite.server.lifecycle import allow_files, run, serve
from lazulite.server.limits import Limits
from lazulite.server.server import BindError, Server

from .admission.test_scheduler import TiredLane
from .http.test_connection import GET, statuses
from .wire import Echo, settle

SECONDS_MAX = 20
"""What a broken drain may cost."""

BIG = 4 * 1024 * 1024 + 1
PART = b"x" * 65_536
PARTS = Limits().body_bytes // len(PART) + 1


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"id-{next(numbers)}"


def make(service: Echo, host: str = "127.0.0.1", port: int = 0, limits: Limits | None = None) -> Server:
    return Server(service, host=host, port=port, new_request_id=ids(), limits=limits)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    started = make(Echo(), limits=Limits(drain_seconds=5))
    await started.start()
    yield started
    await started.stop()
    assert started.connection_count == 0


async def exchange(port: int, data: bytes, host: str = "127.0.0.1") -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


CLOSE = GET.replace(b"Host", b"Connection: close\r\nHost")


async def test_a_request_over_a_socket(server: Server) -> None:
    assert (await exchange(server.port, CLOSE)).endswith(b"GET /t?x=%27y ")


async def test_many_connections_with_pipelines(server: Server) -> None:
    answers = await asyncio.gather(*(exchange(server.port, GET * 20 + CLOSE) for _ in range(40)))
    assert all(statuses(answer) == [200] * 21 for answer in answers)


async def test_large_bodies_both_ways(server: Server) -> None:
    async with httpx.AsyncClient() as client:
        body = os.urandom(BIG - 1)
        response = await client.put(f"http://127.0.0.1:{server.port}/", content=body)
        assert response.content == b"PUT /? " + body


@pytest.mark.parametrize("chunked", [False, True])
async def test_clients_see_a_413(server: Server, chunked: bool) -> None:
    url = f"http://127.0.0.1:{server.port}/"

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(PARTS):
            yield PART

    async with httpx.AsyncClient() as client:
        for _ in range(2):
            response = await client.put(url, content=parts() if chunked else PART * PARTS)
            assert (response.status_code, response.text) == (413, "RequestBodyTooLarge")
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.put(url, data=parts() if chunked else BytesIO(PART * PARTS)) as reply:
                assert (reply.status, await reply.text()) == (413, "RequestBodyTooLarge")


async def test_a_rejection_survives_what_the_client_still_sends(server: Server) -> None:
    """Without lingering, the unread bytes would reset the connection and take the answer away."""

    def converse() -> bytes:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.settimeout(SECONDS_MAX)
            client.sendall(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n" + b"x" * 3_000_000)
            answer = b""
            while part := client.recv(65536):
                answer += part
            return answer

    assert statuses(await asyncio.to_thread(converse)) == [413]


async def test_ipv6() -> None:
    try:
        server = make(Echo(), "::1")
        await server.start()
    except BindError:
        pytest.skip("no IPv6 here")
    assert statuses(await exchange(server.port, CLOSE, "::1")) == [200]
    await server.stop()


async def test_localhost_is_the_ipv4_address_too() -> None:
    server = make(Echo(), "localhost")
    await server.start()
    assert statuses(await exchange(server.port, CLOSE)) == [200]
    await server.stop()


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", None), ("203.0.113.9", 0), ("no.such.host.invalid", 0), ("127.0.0.1", 70_000)]
)
async def test_an_address_that_cannot_be_had(server: Server, host: str, port: int | None) -> None:
    with pytest.raises(BindError) as caught:
        await make(Echo(), host, server.port if port is None else port).start()
    text = str(caught.value)
    assert "\n" not in text
    assert str(port if port else host) in text


async def test_a_port_is_free_at_once_after_a_stop() -> None:
    server = make(Echo())
    await server.start()
    port = server.port
    await exchange(port, CLOSE)
    await server.stop()
    again = make(Echo(), port=port)
    await again.start()
    assert again.port == port
    await again.stop()


class Gate:
    """A service's `before` that tells when it is reached and waits to be opened."""

    def __init__(self) -> None:
        self.reached, self.opened, self.done = asyncio.Event(), asyncio.Event(), False

    async def __call__(self, _: Request) -> None:
        self.reached.set()
        await self.opened.wait()
        self.done = True


def drain_over(signals: int, limits: Limits) -> tuple[bytes, bytes, bool]:
    """Serve, have one request in flight and one idle connection, send signals; return what each client got."""

    async def main() -> tuple[bytes, bytes, bool]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, uvloop.Loop)
        async with asyncio.timeout(SECONDS_MAX):
            return await converse(loop)

    async def converse(loop: asyncio.AbstractEventLoop) -> tuple[bytes, bytes, bool]:
        service, gate, ready = Echo(), Gate(), loop.create_future()
        serving = asyncio.ensure_future(serve(make(service, limits=limits), on_ready=ready.set_result))
        port = (await ready).http
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        idle_writer.write(GET)
        await idle_reader.readuntil(b"%27y ")
        service.before = gate
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await gate.reached.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        idle = await idle_reader.read()  # Ends at once, while the other request is still in flight.
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert not serving.done()
        for _ in range(signals - 1):
            os.kill(os.getpid(), signal.SIGINT)
        if signals == 1 and limits.drain_seconds:
            gate.opened.set()
        answer = await reader.read()
        await serving
        for one in (writer, idle_writer):
            one.close()
        assert len(asyncio.all_tasks()) == 1
        return answer, idle, gate.done

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run(main())


def test_a_signal_drains() -> None:
    answer, idle, done = drain_over(1, Limits(drain_seconds=60))
    assert statuses(answer) == [200]
    assert b"Connection: close" in answer
    assert idle == b""
    assert done


def test_a_second_signal_hurries() -> None:
    assert drain_over(2, Limits(drain_seconds=60)) == (b"", b"", False)


def test_a_drain_is_bounded() -> None:
    assert drain_over(1, Limits(drain_seconds=0.0)) == (b"", b"", False)


@pytest.mark.parametrize("signals", [1, 2])
def test_a_server_that_leaves_answers_as_ever_until_the_delay_is_over(signals: int) -> None:
    async def main() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await converse(asyncio.get_running_loop())

    async def converse(loop: asyncio.AbstractEventLoop) -> None:
        notified, ready = asyncio.Event(), loop.create_future()
        server = Server(
            Echo(),
            host="127.0.0.1",
            port=0,
            new_request_id=ids(),
            on_leave=notified.set,
            limits=Limits(drain_delay_seconds=600 if signals > 1 else 0.01),
        )
        serving = asyncio.ensure_future(serve(server, on_ready=ready.set_result))
        port = (await ready).http
        os.kill(os.getpid(), signal.SIGTERM)
        await notified.wait()
        if signals > 1:
            assert b"Connection: close" in await exchange(port, GET)
            assert statuses(await exchange(port, CLOSE)) == [200]
            os.kill(os.getpid(), signal.SIGTERM)
        await serving

    run(main())


def test_a_client_that_came_just_before_a_stop_gets_its_answer() -> None:
    """It has sent its request, but the server has not even accepted the connection."""

    async def main() -> bytes:
        server = make(Echo())
        await server.start()
        client = socket.create_connection(("127.0.0.1", server.port))  # Blocking: nothing else runs meanwhile.
        client.sendall(GET)
        await server.stop()
        with client:
            client.settimeout(SECONDS_MAX)
            return client.recv(65536)

    answer = run(main())
    assert statuses(answer) == [200]
    assert b"Connection: close" in answer


def test_the_limit_of_open_files_is_raised_as_far_as_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = before
    assert allow_files(1) == soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(200, hard), hard))
        assert allow_files(300) == 300
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (300, hard)
        if hard != resource.RLIM_INFINITY:
            assert allow_files(hard + 1) == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_a_stop_leaves_nothing_of_the_lane() -> None:
    scheduler = TiredLane(contended=True)
    server = Server(Echo(), host="127.0.0.1", port=0, new_request_id=ids(), scheduler=scheduler)
    await server.start()
    turns = [asyncio.ensure_future(scheduler.time_slice()) for _ in range(2)]
    await settle()
    assert not turns[1].done()
    await server.stop()
    await settle()
    assert turns[1].done()
    assert asyncio.all_tasks() == {asyncio.current_task()}
