"""The service under ASGI."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.fields import Fields, JoinedValue
from lazulite.protocol.joined_content import ONE_PIECE_BYTES
from lazulite.protocol.message import WINDOW_BYTES, Request, Response
from lazulite.server.asgi.application import HttpApplication
from lazulite.server.asgi.body import Message
from lazulite.server.limits import Limits
from tests.server.http.test_streaming import Content
from tests.server.wire import Echo, Record

LIMITS = Limits(body_bytes=10)


@pytest.fixture
def service() -> Echo:
    return Echo()


@pytest.fixture
async def client(service: Echo) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=HttpApplication(service, LIMITS, lambda: "id"))
    async with httpx.AsyncClient(transport=transport, base_url="http://a.example:81") as opened:
        yield opened


async def test_the_service_gets_what_came_over_the_wire(service: Echo, client: httpx.AsyncClient) -> None:
    url = httpx.URL("http://a.example:81/", raw_path=b"/a%2fb(C='d')?$filter=e%20f")
    response = await client.put(url, content=b"0123456789", headers=[("X-T", "1"), ("x-t", "2")])
    (request,) = service.requests
    assert (request.method, request.path, request.query) == ("PUT", "/a%2fb(C='d')", "$filter=e%20f")
    assert (request.body, request.id, request.client) == (b"0123456789", "id", "127.0.0.1")
    assert (request.headers["host"], request.headers["x-t"]) == ("a.example:81", "1, 2")
    assert isinstance(request.headers["x-t"], JoinedValue)
    assert (response.status_code, response.headers["x-id"]) == (200, "id")
    assert response.content.endswith(b"0123456789")


async def test_a_body_over_the_limit(service: Echo, client: httpx.AsyncClient) -> None:
    response = await client.put("/", content=b"0123456789x")
    assert (response.status_code, response.content) == (413, b"RequestBodyTooLarge")
    assert not service.requests


async def test_head_and_204(service: Echo, client: httpx.AsyncClient) -> None:
    response = await client.head("/")
    assert (response.content, response.headers["content-length"]) == (b"", "8")
    service.status = 204
    assert "content-length" not in (await client.get("/")).headers


async def test_content_that_cannot_be_read_is_server_busy(service: Echo, client: httpx.AsyncClient) -> None:
    content = Content(0, 5, EngineUnavailableError("Too many open files"))

    async def respond(_: Request) -> Response:
        return Response(200, content=content)

    service.responds = respond
    response = await client.get("/")
    assert (response.status_code, response.content) == (503, b"ServerBusy")
    assert content.closed == 1


async def test_rejections(client: httpx.AsyncClient) -> None:
    assert (await client.request("PURGE", "/")).status_code == 405
    assert (await client.get("/", headers=[("x-ms-version", "1"), ("x-ms-version", "2")])).status_code == 400


async def test_a_failing_service(service: Echo, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    async def before(_: Request) -> None:
        raise KeyError("SECRET")

    service.before = before
    response = await client.get("/")
    assert (response.status_code, response.content) == (500, b"InternalError")
    assert "id: KeyError" in caplog.text
    assert "SECRET" not in caplog.text


async def test_a_ready_response_is_sent(service: Echo, client: httpx.AsyncClient) -> None:
    service.now = lambda _: Response(200, [], b"at once")
    assert (await client.get("/")).content == b"at once"
    assert not service.requests
    assert (await client.put("/", content=b"x")).content == b"at once"
    service.now = lambda _: None
    assert (await client.get("/a")).content == b"GET /a? "


async def test_a_failure_at_once(service: Echo, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Request) -> Response:
        raise KeyError("SECRET")

    service.now = fail
    response = await client.get("/")
    assert (response.status_code, response.content) == (500, b"InternalError")
    assert "id: KeyError" in caplog.text
    assert "SECRET" not in caplog.text


async def test_requests_of_the_same_words_have_the_same_steady_fields(service: Echo, client: httpx.AsyncClient) -> None:
    for date in ("Mon", "Tue"):
        await client.get("/", headers=[("X-MS-Date", date), ("X-T", "1")])
    await client.get("/", headers=[("X-T", "2")])
    one, same, other = (request.headers for request in service.requests)
    assert isinstance(one, Fields)
    assert isinstance(same, Fields)
    assert isinstance(other, Fields)
    assert one.steady == same.steady != other.steady


async def call(service: Echo, received: list[Message], scope: Message, limits: Limits = LIMITS) -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        return received.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await HttpApplication(service, limits, lambda: "id")(scope, receive, send)
    return sent


HTTP: Message = {"type": "http", "method": "GET", "path": "/a b(')", "headers": []}


async def test_without_raw_path_the_path_is_quoted_again(service: Echo) -> None:
    await call(service, [{"type": "http.request"}], dict(HTTP))
    assert service.requests[0].path == "/a%20b(')"


async def test_a_slow_service_is_answered_for_but_not_cut_short(service: Echo) -> None:
    gate = asyncio.Event()
    done: list[str] = []

    async def before(request: Request) -> None:
        await gate.wait()
        done.append(request.id)

    service.before = before
    async with asyncio.timeout(2):
        start, _ = await call(service, [{"type": "http.request"}], dict(HTTP), replace(LIMITS, request_seconds=0))
    assert start["status"] == 500
    gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == ["id"]


async def test_a_client_that_leaves(service: Echo) -> None:
    received: list[Message] = [{"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.disconnect"}]
    assert await call(service, received, dict(HTTP)) == []
    assert not service.requests


async def test_a_body_is_not_asked_for_before_the_credentials_are_good(service: Echo) -> None:
    async def authenticates(_: Request) -> bool:
        return False

    service.authenticates = authenticates
    received: list[Message] = [{"type": "http.request", "body": b"x", "more_body": True}]
    start, _ = await call(service, received, dict(HTTP))
    assert start["status"] == 403
    assert len(received) == 1


async def test_a_body_that_takes_too_long(service: Echo) -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async with asyncio.timeout(2):
        await HttpApplication(service, replace(LIMITS, body_stall_seconds=0), lambda: "id")(dict(HTTP), receive, send)
    assert [message.get("status") for message in sent] == [408, None]


@pytest.mark.parametrize("scope", ["websocket", "lifespan"])
async def test_other_scopes(service: Echo, scope: str) -> None:
    with pytest.raises(ValueError, match=scope):
        await call(service, [], {"type": scope})


async def test_exchanges_are_logged_with_the_bytes_of_their_bodies(service: Echo) -> None:
    log = Record()
    app = HttpApplication(service, LIMITS, lambda: "id", [log])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://a.example") as client:
        answered = await client.put("/", content=b"0123")
        await client.put("/", content=b"0123456789x")
        await client.head("/")
    reported = [(each.request.method, each.response.status, each.bytes_in, each.bytes_out) for each in log.exchanges]
    rejection = len(b"RequestBodyTooLarge")
    assert reported == [("PUT", 200, 4, len(answered.content)), ("PUT", 413, 0, rejection), ("HEAD", 200, 0, 0)]
    assert all(each.elapsed_ms >= 0 for each in log.exchanges)


async def test_a_long_body_is_sent_in_windows(service: Echo, client: httpx.AsyncClient) -> None:
    service.body = random.randbytes(ONE_PIECE_BYTES + 1)
    response = await client.get("/")
    assert response.content == service.body
    assert response.headers["content-length"] == str(len(service.body))
    head = await client.head("/")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(service.body)))
    sent = await call(service, [{"type": "http.request", "body": b"", "more_body": False}], dict(HTTP))
    assert max(len(bytes(message["body"])) for message in sent[1:]) == WINDOW_BYTES  # type: ignore[call-overload]


async def test_a_failure_is_reported_to_the_logs(service: Echo) -> None:
    async def before(_: Request) -> None:
        raise KeyError("SECRET")

    service.before = before
    log = Record()
    app = HttpApplication(service, LIMITS, lambda: "id", [log])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://a.example") as client:
        await client.get("/")
    assert [(request_id, type(failure)) for request_id, failure in log.failures] == [("id", KeyError)]


async def test_a_body_is_held_until_its_request_is_done(service: Echo) -> None:
    app = HttpApplication(service, Limits(), lambda: "id")
    held: list[int] = []

    async def before(_: Request) -> None:
        held.append(app.buffered_bytes)

    service.before = before
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://a.example") as client:
        await client.put("/", content=bytes(100_000))
    assert (held, app.buffered_bytes) == ([100_000], 0)


@pytest.mark.parametrize(("seconds", "status"), [(30.0, 200), (0.0, 503)])
async def test_a_drain_waits_for_requests_and_then_cancels_them(service: Echo, seconds: float, status: int) -> None:
    app = HttpApplication(service, replace(LIMITS, drain_seconds=seconds), lambda: "id")
    begun, gate = asyncio.Event(), asyncio.Event()

    async def before(_: Request) -> None:
        begun.set()
        await gate.wait()

    service.before = before
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://a.example") as client:
        asking = asyncio.create_task(client.get("/"))
        await begun.wait()
        draining = asyncio.create_task(app.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        if seconds:
            gate.set()
        await draining
        assert (await asking).status_code == status


async def test_a_drain_without_requests_is_over_at_once(service: Echo) -> None:
    await HttpApplication(service, LIMITS, lambda: "id").drain()
