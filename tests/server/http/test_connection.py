"""HTTP/1.1 as RFC 9112 has it, transition by transition."""

import asyncio
import gc
import weakref

import pytest

from lazulite.protocol.message import Request
from tests.server.wire import Wire, settle

HOST = b"Host: a.example\r\n"
GET = b"GET /t?x=%27y HTTP/1.1\r\n" + HOST + b"\r\n"


def answer(body: bytes, number: int = 1, *extra: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"X-Id: id-%d" % number, b"Content-Length: %d" % len(body), *extra]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def statuses(output: bytes) -> list[int]:
    return [int(part[:3]) for part in output.split(b"HTTP/1.1 ")[1:]]


async def test_a_request_is_answered(wire: Wire) -> None:
    assert await wire.send(GET) == answer(b"GET /t?x=%27y ")
    assert not wire.transport.closed


async def test_the_service_gets_what_came_over_the_wire(wire: Wire) -> None:
    await wire.send(
        b"POST /a%2fb(C='d')?$filter=e%20f&g HTTP/1.1\r\nhOsT: h:1\r\nX-Twice: 1\r\nX-TWICE: 2 \r\n"
        b"X-Empty:\r\nX-Latin: \xe9\r\nContent-Length: 3\r\n\r\nabc"
    )
    (request,) = wire.service.requests
    assert (request.method, request.path, request.query) == ("POST", "/a%2fb(C='d')", "$filter=e%20f&g")
    assert (request.body, request.client, request.id, request.scheme) == (b"abc", "192.0.2.7", "id-1", "http")
    assert request.headers == {
        "host": "h:1",
        "x-twice": "1, 2",
        "x-empty": "",
        "x-latin": "é",
        "content-length": "3",
    }


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
async def test_methods_that_need_no_body(wire: Wire, method: str) -> None:
    await wire.send(f"{method} / HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert wire.service.requests[0].method == method


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "MERGE"])
async def test_methods_that_must_tell_their_length(wire: Wire, method: str) -> None:
    head = f"{method} / HTTP/1.1\r\nHost: a\r\n".encode()
    output = await wire.send(head + b"Content-Length: 0\r\n\r\n" + head + b"\r\n" + GET)
    assert statuses(output) == [200, 411]
    assert output.endswith(b"MissingContentLengthHeader")
    assert wire.transport.eof, "what follows such a head may be its body"
    assert len(wire.service.requests) == 1


@pytest.mark.parametrize(("method", "status"), [("PURGE", 405), ("QUERY", 405), ("M-SEARCH", 405)])
async def test_other_methods_are_rejected_and_the_connection_lives(wire: Wire, method: str, status: int) -> None:
    output = await wire.send(f"{method} / HTTP/1.1\r\nHost: a\r\n\r\n".encode() + GET)
    assert statuses(output) == [status, 200]
    assert b"UnsupportedHttpVerb" in output


@pytest.mark.parametrize("line", [b"BREW / HTTP/1.1", b"get / HTTP/1.1", b"\x16\x03\x01\x02\x00"])
async def test_unknown_methods_end_the_connection(wire: Wire, line: bytes) -> None:
    output = await wire.send(line + b"\r\n" + HOST + b"\r\n")
    assert statuses(output) == [400]
    assert output.endswith(b"InvalidHttpVerb")
    assert wire.transport.eof


async def test_connect_is_rejected(wire: Wire) -> None:
    assert statuses(await wire.send(b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n" + GET)) == [405]


async def test_head_has_the_length_of_a_body_it_does_not_have(wire: Wire) -> None:
    wire.service.body = b"x" * 100
    output = await wire.send(b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n")
    assert output.endswith(b"Content-Length: 100\r\n\r\n")


async def test_pipelined_requests_are_answered_in_order_one_at_a_time(wire: Wire) -> None:
    gate = asyncio.Event()
    running: list[str] = []

    async def before(request: Request) -> None:
        running.append(request.path)
        if request.path == "/1":
            await gate.wait()

    wire.service.before = before
    requests = b"".join(b"GET /%d HTTP/1.1\r\n%b\r\n" % (number, HOST) for number in (1, 2, 3))
    assert await wire.send(requests) == b""
    assert running == ["/1"]
    gate.set()
    await settle()
    assert wire.transport.written == b"".join(answer(b"GET /%d? " % number, number) for number in (1, 2, 3))


async def test_an_error_waits_for_its_turn(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    assert await wire.send(GET + b"bad\r\n\r\n") == b""
    gate.set()
    await settle()
    assert statuses(wire.transport.written) == [200, 400]
    assert wire.transport.eof


async def test_chunked_bodies_with_extensions_and_trailers(wire: Wire) -> None:
    await wire.send(
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: Chunked\r\n\r\n"
        b'3;a=b;c="d e"\r\nabc\r\n00a\r\n0123456789\r\n0;last\r\nX-Trailer: 1\r\nHost: evil\r\n\r\n' + GET
    )
    assert [request.body for request in wire.service.requests] == [b"abc0123456789", b""]
    assert "x-trailer" not in wire.service.requests[0].headers
    assert wire.service.requests[0].headers["host"] == "a.example"


EXPECT = b"PUT / HTTP/1.1\r\n" + HOST + b"Expect: 100-Continue\r\nContent-Length: %d\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def test_100_is_sent_once_when_a_body_is_welcome(wire: Wire) -> None:
    assert await wire.send(EXPECT % 4) == CONTINUE
    assert await wire.send(b"ab") == CONTINUE
    assert (await wire.send(b"cd")) == CONTINUE + answer(b"PUT /? abcd")


async def test_100_is_not_sent_to_those_who_do_not_wait_for_it(wire: Wire) -> None:
    assert await wire.send(EXPECT % 2 + b"ab") == answer(b"PUT /? ab")


async def test_100_waits_for_its_turn(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    assert await wire.send(GET + EXPECT % 2) == b""
    gate.set()
    await settle()
    assert wire.transport.written == answer(b"GET /t?x=%27y ") + CONTINUE


async def test_100_is_not_sent_for_a_body_that_is_too_large(wire: Wire) -> None:
    output = await wire.send(EXPECT % (8 * 1024 * 1024 + 1))
    assert statuses(output) == [413]
    assert wire.transport.eof


async def test_100_is_not_sent_for_a_method_that_is_rejected(wire: Wire) -> None:
    assert statuses(await wire.send((EXPECT % 4).replace(b"PUT", b"PURGE"))) == [405]
    assert wire.transport.eof


async def test_100_is_not_for_http_1_0_nor_for_no_body(wire: Wire) -> None:
    output = await wire.send((EXPECT % 2).replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert output == b""
    assert CONTINUE not in await wire.send(EXPECT % 0, wire.connect())


async def test_other_expectations_fail(wire: Wire) -> None:
    output = await wire.send((EXPECT % 2).replace(b"100-Continue", b"tea"))
    assert statuses(output) == [417]
    assert wire.transport.eof


@pytest.mark.parametrize(
    ("target", "path", "query", "host"),
    [
        (b"http://b.example:81/x?y=z", "/x", "y=z", "b.example:81"),
        (b"HTTPS://b.example", "/", "", "b.example"),
        (b"http://[::1]:80?q", "/", "q", "[::1]:80"),
        (b"//double/slash", "//double/slash", "", "a.example"),
        (b"/??", "/", "?", "a.example"),
    ],
)
async def test_request_targets(wire: Wire, target: bytes, path: str, query: str, host: str) -> None:
    await wire.send(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    (request,) = wire.service.requests
    assert (request.path, request.query, request.headers["host"], request.scheme) == (path, query, host, "http")


@pytest.mark.parametrize("target", [b"*", b"http://b.example"])
async def test_asterisk_form(wire: Wire, target: bytes) -> None:
    await wire.send(b"OPTIONS " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    assert wire.service.requests[0].path == "*"


@pytest.mark.parametrize(
    "target", [b"*", b"/a#b", b"http:///x", b"http://u@b/x", b"ftp://a/x", b"http://a b/", b"x", b"http://a/#f"]
)
async def test_bad_request_targets(wire: Wire, target: bytes) -> None:
    assert statuses(await wire.send(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n" + GET)) == [400]
    assert not wire.service.requests


@pytest.mark.parametrize(
    "hosts",
    [
        b"",
        b"Host:\r\n",
        b"Host: a\r\nHost: a\r\n",
        b"Host: a b\r\n",
        b"Host: a/b\r\n",
        b"Host: a,b\r\n",
        b"Host: u@a\r\n",
    ],
)
async def test_bad_hosts(wire: Wire, hosts: bytes) -> None:
    output = await wire.send(b"GET / HTTP/1.1\r\n" + hosts + b"\r\n" + GET)
    assert statuses(output) == [400]
    assert (b"HostInformationNotPresent" in output) == (b" " not in hosts.replace(b"Host: a\r\n", b""))


async def test_an_empty_host_will_do_beside_an_absolute_target(wire: Wire) -> None:
    await wire.send(b"GET http://b/ HTTP/1.1\r\nHost:\r\n\r\n")
    assert wire.service.requests[0].headers["host"] == "b"


async def test_http_1_0_closes_unless_asked(wire: Wire) -> None:
    output = await wire.send(b"GET / HTTP/1.0\r\n\r\n")
    assert output == answer(b"GET /? ", 1, b"Connection: close")
    assert wire.transport.closed


@pytest.mark.parametrize("field", [b"Connection", b"proxy-connection"])
async def test_http_1_0_keeps_alive_when_asked(wire: Wire, field: bytes) -> None:
    old = b"GET / HTTP/1.0\r\n" + field + b": keep-alive\r\n\r\n"
    output = await wire.send(old + old)
    assert output == b"".join(answer(b"GET /? ", number, b"Connection: keep-alive") for number in (1, 2))


@pytest.mark.parametrize("version", [b"0.9", b"2.0"])
@pytest.mark.parametrize("said", [b"", b"Connection: keep-alive\r\n", b"Proxy-Connection: keep-alive\r\n"])
async def test_other_versions(wire: Wire, version: bytes, said: bytes) -> None:
    assert statuses(await wire.send(b"GET / HTTP/" + version + b"\r\n" + HOST + said + b"\r\n")) == [505]


async def test_connection_close(wire: Wire) -> None:
    close = b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    assert await wire.send(close + GET) == answer(b"GET /? ", 1, b"Connection: close")
    assert wire.transport.closed


async def test_an_upgrade_is_declined(wire: Wire) -> None:
    upgrade = HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    output = await wire.send(
        b"GET /1 HTTP/1.1\r\n" + upgrade + b"\r\n"
        b"POST /2 HTTP/1.1\r\n" + upgrade + b"Content-Length: 3\r\n\r\nabc"
        b"POST /3 HTTP/1.1\r\n" + upgrade + b"Transfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n0\r\n\r\n" + GET
    )
    assert statuses(output) == [200] * 4
    assert [request.body for request in wire.service.requests] == [b"", b"abc", b"def", b""]


async def test_an_upgrade_in_small_pieces(wire: Wire) -> None:
    message = (
        b"POST /2 HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc" + GET
    )
    for index in range(len(message)):
        await wire.send(message[index : index + 1])
    assert [request.body for request in wire.service.requests] == [b"abc", b""]


async def test_an_error_after_an_upgrade_keeps_its_status(wire: Wire) -> None:
    upgrade = b"GET / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert statuses(await wire.send(upgrade + b"GET /\r\n\r\n")) == [200, 505]


@pytest.mark.parametrize(("status", "tail"), [(204, b"Content-Length: 0\r\n\r\n"), (304, b"X-Id: id-1\r\n\r\n")])
async def test_statuses_without_a_body(wire: Wire, status: int, tail: bytes) -> None:
    wire.service.status = status
    wire.service.body = b"nothing of this"
    assert (await wire.send(GET)).endswith(tail)


async def test_large_responses_are_whole(wire: Wire) -> None:
    wire.service.body = b"x" * 1_000_000
    assert (await wire.send(GET)).endswith(b"\r\n\r\n" + b"x" * 1_000_000)


async def test_empty_lines_before_a_request_are_ignored(wire: Wire) -> None:
    assert statuses(await wire.send(b"\r\n\r\n" + GET)) == [200]


async def test_a_failing_service_is_answered_for_and_logged(wire: Wire) -> None:
    async def before(_: Request) -> None:
        raise KeyError("secret")

    wire.service.before = before
    output = await wire.send(GET)
    assert statuses(output) == [500]
    assert b"InternalError" in output
    assert b"secret" not in output
    ((request_id, failure),) = wire.log.failures
    assert request_id == "id-1"
    assert isinstance(failure, KeyError)
    wire.service.before = None
    assert statuses(await wire.send(GET)) == [500, 200]


async def test_no_memory_for_an_answer_ends_the_connection_at_once(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def post(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(wire.state.write_batcher, "post", post)
    await wire.send(GET)
    assert wire.transport.aborted
    assert not wire.state.connections


async def test_a_request_outlives_its_client(wire: Wire) -> None:
    gate = asyncio.Event()
    done: list[str] = []

    async def before(request: Request) -> None:
        await gate.wait()
        done.append(request.path)

    wire.service.before = before
    await wire.send(GET + GET)
    wire.transport.abort()
    await settle()
    assert len(wire.state.connections) == 1, "still counted"
    gate.set()
    await settle()
    assert done == ["/t"], "the first has run to its end, the second was never begun"
    assert not wire.state.connections
    assert wire.transport.written == b""


async def test_a_half_closed_client_gets_its_answers(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    await wire.send(GET + GET + b"GET /unfinished HTT")
    assert wire.transport.protocol.eof_received()
    gate.set()
    await settle()
    assert statuses(wire.transport.written) == [200, 200]
    assert wire.transport.closed


async def test_a_client_that_leaves_in_the_middle_of_a_body(wire: Wire) -> None:
    await wire.send(b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nab")
    wire.transport.protocol.eof_received()
    await settle()
    assert wire.transport.closed
    assert wire.transport.written == b""
    assert not wire.service.requests
    assert not wire.state.connections


async def test_every_request_is_logged_with_its_id(wire: Wire) -> None:
    await wire.send(b"PUT /p?sig=s HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nab" + b"\0")
    first, second = wire.log.exchanges
    assert (first.request.id, first.response.status, first.bytes_in) == ("id-1", 200, 2)
    assert (second.request.id, second.response.error_code) == ("id-2", "InvalidHttpVerb")
    assert first.bytes_out + second.bytes_out == len(wire.transport.written)


@pytest.mark.parametrize("data", [GET, GET[:20], b"GET /" + b"x" * 60_000, b"rubbish\r\n\r\n"])
async def test_a_lost_connection_leaves_nothing_for_the_cycle_collector(wire: Wire, data: bytes) -> None:
    """Else each connection would keep its last request in memory until the collector comes by."""
    gc.collect()
    gc.disable()
    try:
        transport = wire.connect()
        lost = weakref.ref(transport.protocol)
        await wire.send(data, transport)
        transport.abort()
        await settle()
        del transport
        assert lost() is None
    finally:
        gc.enable()


async def test_a_body_counts_for_as_long_as_the_service_has_it(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    await wire.send(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello")
    await wire.wait(wire.state.limits.request_seconds + 1)
    assert statuses(wire.transport.written) == [500], "answered"
    assert wire.state.budgets.buffered_bytes == 5
    gate.set()
    await settle()
    assert wire.state.budgets.buffered_bytes == 0


async def test_a_rejected_client_that_says_no_more_is_not_listened_to(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    await wire.send(GET + b"rubbish\r\n\r\n")
    wire.transport.protocol.eof_received()
    gate.set()
    await settle()
    assert statuses(wire.transport.written) == [200, 400]
    assert wire.transport.closed


async def test_what_is_still_to_be_sent_is_part_of_what_a_client_takes(wire: Wire) -> None:
    """A client that takes less than its last answer has all the same taken something."""
    transport = wire.transport
    transport.stalled = True
    wire.service.body = b"x" * 30_000
    await wire.send(GET + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert transport.eof or transport.closed
    waiting = transport.waiting_bytes
    assert waiting > 60_000
    transport.waiting_bytes -= 20_000
    await wire.wait(wire.state.limits.linger_seconds + 1)
    assert not transport.aborted
    await wire.wait(wire.state.limits.linger_seconds + 1)
    assert transport.aborted
