"""Every bound: at it, over it, and what the connection is good for afterwards."""

import asyncio
import tracemalloc
from dataclasses import fields

import pytest

from lazulite.protocol.message import Request
from lazulite.server.admission.budgets import BodyBudget
from lazulite.server.http import head as request_head
from lazulite.server.limits import Limits

from .http.test_connection import CONTINUE, GET, HOST, statuses
from .wire import Wire, settle

CHUNKED = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"


def put(length: int, *, extra: bytes = b"") -> bytes:
    return b"PUT / HTTP/1.1\r\n" + HOST + extra + b"Content-Length: %d\r\n\r\n" % length


def test_names_end_with_units_and_defaults_are_the_documented_ones() -> None:
    units = ("_bytes", "_seconds", "_count", "connections", "_requests", "_bytes_per_second")
    assert all(field.name.endswith(units) for field in fields(Limits))
    limits = Limits()
    assert limits.body_bytes == 8_388_608
    assert limits.keep_alive_idle_seconds >= 120


async def test_a_body_at_the_limit(wire: Wire) -> None:
    await wire.send(put(8_388_608) + b"x" * 8_388_608)
    assert len(wire.service.requests[0].body) == 8_388_608


async def test_a_body_over_the_limit_is_rejected_before_it_is_read(wire: Wire) -> None:
    output = await wire.send(put(8_388_609))
    assert statuses(output) == [413]
    assert output.endswith(b"RequestBodyTooLarge")
    assert b"Connection: close" not in output
    await wire.send(b"x" * 8_388_609 + GET)
    assert statuses(wire.transport.written) == [413, 200], "the connection is usable after the body"


async def test_a_chunked_body_over_the_limit(wire: Wire) -> None:
    wire.limit(body_bytes=10)
    assert await wire.send(CHUNKED + b"a\r\n0123456789\r\n") == b""
    assert statuses(await wire.send(b"1\r\nx\r\n")) == [413]
    assert statuses(await wire.send(b"1\r\nx\r\n0\r\n\r\n" + GET)) == [413, 200]


async def test_a_chunked_body_at_the_limit(wire: Wire) -> None:
    wire.limit(body_bytes=10)
    await wire.send(CHUNKED + b"a\r\n0123456789\r\n0\r\n\r\n")
    assert wire.service.requests[0].body == b"0123456789"


async def test_a_chunked_body_after_100_continue_over_the_limit(wire: Wire) -> None:
    wire.limit(body_bytes=10)
    head = CHUNKED.replace(HOST, HOST + b"Expect: 100-continue\r\n")
    assert await wire.send(head) == CONTINUE
    assert statuses(await wire.send(b"b\r\n01234567890\r\n0\r\n\r\n" + GET)) == [100, 413, 200]


async def test_what_is_discarded_is_bounded_for_announced_bodies(wire: Wire) -> None:
    wire.limit(body_bytes=10, discarded_bytes=100)
    assert b"Connection: close" in await wire.send(put(101))
    assert wire.transport.eof
    assert not wire.transport.closed, "lingers, so that the rejection can be read"
    await wire.send(b"x" * 100)
    assert not wire.transport.aborted
    await wire.send(b"x")
    assert wire.transport.aborted


async def test_what_is_discarded_is_bounded_for_chunked_bodies(wire: Wire) -> None:
    wire.limit(body_bytes=10, discarded_bytes=100)
    assert statuses(await wire.send(CHUNKED + b"64\r\n" + b"x" * 100 + b"\r\n")) == [413]
    assert not wire.transport.eof
    await wire.send(b"1\r\nx\r\n")
    assert wire.transport.eof


async def test_url_length(wire: Wire) -> None:
    at_limit = b"/" + b"u" * (65_536 - 1)
    await wire.send(b"GET " + at_limit + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    assert wire.service.requests[0].path == at_limit.decode()
    output = await wire.send(b"GET " + at_limit + b"u")
    assert statuses(output) == [200, 414], "rejected before its end"
    assert output.endswith(b"InvalidUri")
    assert wire.transport.eof


async def test_fields_that_come_again_count_as_often_as_they_come(wire: Wire) -> None:
    wire.limit(header_count=10, headers_bytes=1000)
    head = b"GET / HTTP/1.1\r\n" + HOST
    assert statuses(await wire.send(head + b"A: b\r\n" * 5 + b"C%d: d\r\n" * 4 % (1, 2, 3, 4) + b"\r\n")) == [200]
    assert wire.service.requests[0].headers["a"] == "b, b, b, b, b"
    over = head + b"A: b\r\n" * 5 + b"C%d: d\r\n" * 5 % (1, 2, 3, 4, 5) + b"\r\n"
    assert statuses(await wire.send(over)) == [200, 431]


async def test_fields_are_counted_as_they_come(wire: Wire) -> None:
    wire.limit(header_count=10)
    head = b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 5 + b"C%d: d\r\n" * 5 % (1, 2, 3, 4, 5)
    assert statuses(await wire.send(head + b"D")) == [431], "before the head ends"


async def test_the_bytes_of_a_head_that_began_behind_another_request(wire: Wire) -> None:
    wire.limit(headers_bytes=1000)
    long = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 900) for number in range(15))
    await wire.send(GET + b"GET / HTTP/1.1\r\n" + HOST + long)
    assert statuses(await wire.send(b"\r\n")) == [200, 431]


async def test_header_count(wire: Wire) -> None:
    head = b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: y\r\n" % number for number in range(99))
    output = await wire.send(head + b"\r\n" + head + b"X: y\r\n\r\n")
    assert statuses(output) == [200, 431]
    assert output.endswith(b"InvalidHeaderValue")
    assert wire.transport.eof


@pytest.mark.parametrize("first", [b"", b"X: y\r\n"])
async def test_header_bytes(wire: Wire, first: bytes) -> None:
    wire.limit(headers_bytes=1000)
    head = b"GET / HTTP/1.1\r\n" + HOST + first + b"X: "
    left = 1000 - len(HOST) - len(first) - len(b"X: \r\n")
    output = await wire.send(head + b"y" * left + b"\r\n\r\n" + head + b"y" * (left + 1) + b"\r\n\r\n")
    assert statuses(output) == [200, 431]


async def test_hosts_that_are_cached_are_few_and_short(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_head, "_hosts", hosts := set[str]())
    for number in range(3000):
        wire.transport.protocol.data_received(b"GET / HTTP/1.1\r\nHost: h%d\r\n\r\n" % number)
        await settle()
        assert len(hosts) <= 1024
    await wire.send(b"GET / HTTP/1.1\r\nHost: " + b"h" * 257 + b"\r\n\r\n")
    assert len(wire.service.requests) == 3001
    assert max(map(len, hosts)) < 10


async def test_a_header_field_without_an_end_is_not_collected(wire: Wire) -> None:
    output = await wire.send(b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 65_536 * 3)
    assert statuses(output) == [431]


async def test_empty_lines_without_an_end_are_not_read(wire: Wire) -> None:
    assert statuses(await wire.send(b"\r\n" * 65_536 * 2)) == [431]


async def test_a_trailer_without_an_end_is_not_collected(wire: Wire) -> None:
    assert statuses(await wire.send(CHUNKED + b"0\r\nX: " + b"y" * 65_536 * 2)) == [431]


async def test_trailers_are_counted(wire: Wire) -> None:
    assert statuses(await wire.send(CHUNKED + b"0\r\n" + b"X: y\r\n" * 102)) == [431]


async def test_trailers_of_many_names_are_counted(wire: Wire) -> None:
    trailers = b"A: b\r\n" * 60 + b"".join(b"B%d: c\r\n" % number for number in range(60))
    assert statuses(await wire.send(CHUNKED + b"0\r\n" + trailers)) == [431]


async def test_trailers_are_dropped_whatever_they_say(wire: Wire) -> None:
    trailers = b"Host: b\r\nHost: c\r\nX: y\r\n" + b"Z: z\r\n" * 97
    sent = CHUNKED + b"1\r\na\r\n0\r\n" + trailers + b"\r\n"
    assert statuses(await wire.send(sent + sent + GET)) == [200, 200, 200]
    assert [set(request.headers) & {"x", "z"} for request in wire.service.requests] == [set()] * 3
    assert wire.service.requests[2].headers == {"host": "a.example"}


async def test_trailers_are_not_kept(wire: Wire) -> None:
    wire.limit(body_bytes=10)
    body = b"100000\r\n" + b"x" * 0x100000 + b"\r\n0\r\n"
    tracemalloc.start()
    try:
        await wire.send(CHUNKED + body)
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            await wire.send(b"X: " + b"y" * 500_000 + b"\r\n")
        assert tracemalloc.get_traced_memory()[0] - before < 2_000_000
    finally:
        tracemalloc.stop()


async def test_chunk_extensions_without_an_end_are_not_read(wire: Wire) -> None:
    assert statuses(await wire.send(CHUNKED + b"1;" + b"y" * 65_536 * 2)) == [431]


async def test_a_body_of_tiny_chunks_is_read(wire: Wire) -> None:
    await wire.send(CHUNKED + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
    for _ in range(400):  # Scheduled, a slice at a time.
        await settle()
    assert wire.service.requests[0].body == b"x" * 100_000


async def test_pipelined_requests_stop_the_reading(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    small = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    await wire.send(small * 5000)
    assert wire.transport.reading_paused
    assert len(wire.transport.protocol.inbound.queue) < 1000  # type: ignore[attr-defined]  # the promise is about memory
    gate.set()
    for _ in range(400):
        await settle()
    assert len(wire.service.requests) == 5000
    assert not wire.transport.reading_paused


async def test_pipelined_bodies_stop_the_reading(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    wire.limit(body_bytes=1000)
    for _ in range(4):
        if not wire.transport.reading_paused:
            await wire.send(put(600) + b"x" * 600)
    assert wire.transport.reading_paused
    gate.set()
    await settle()
    assert not wire.transport.reading_paused
    assert len(wire.service.requests) == 3


async def test_connections_over_the_limit_get_an_error(wire: Wire) -> None:
    wire.limit(connections=2)
    second, third = wire.connect(), wire.connect()
    assert statuses(third.written) == [503]
    assert b"ServerBusy" in third.written
    assert third.eof
    assert not third.closed
    assert statuses(await wire.send(GET, second)) == [200]
    third.abort()
    second.abort()
    await settle()
    assert statuses(await wire.send(GET, wire.connect())) == [200]


async def test_connections_far_over_the_limit_are_just_closed(wire: Wire) -> None:
    wire.limit(connections=1)
    assert wire.connect().written
    for _ in range(300):
        last = wire.connect()
    assert last.aborted
    assert not last.written


async def test_a_client_that_does_not_read_holds_its_own_requests_back(wire: Wire) -> None:
    wire.service.body = b"x" * 200_000
    wire.transport.stalled = True
    await wire.send(GET * 10)
    assert len(wire.service.requests) == 1, "its response is waiting"
    wire.transport.take(wire.transport.waiting_bytes)
    await settle()
    assert len(wire.service.requests) == 2


@pytest.mark.parametrize("limit", ["url_bytes", "headers_bytes", "body_bytes", "discarded_bytes"])
def test_sizes_are_positive(limit: str) -> None:
    assert getattr(Limits(), limit) > 0


LARGE = 20_000
"""Bytes of a body that is too large to go past those that wait for room."""


async def test_room_for_bodies_is_waited_for_and_given_in_order(wire: Wire) -> None:
    wire.limit(buffered_bytes=LARGE + LARGE // 2)
    second, third = wire.connect(), wire.connect()
    assert await wire.send(put(LARGE) + b"x" * 9) == b""
    assert await wire.send(put(LARGE) + b"y" * (LARGE - 1), second) == b""
    assert await wire.send(put(LARGE // 2 + 8000), third) == b"", "it would fit, but has come later"
    assert wire.state.bodies.held_bytes == LARGE
    await wire.wait(2)
    assert statuses(wire.transport.written) == [408], "while others wait, a body has to come fast"
    assert statuses(await wire.send(b"y", second)) == [200], "its time began when it had room"
    assert statuses(await wire.send(b"z" * (LARGE // 2 + 8000), third)) == [200]
    assert wire.state.budgets.buffered_bytes == 0


async def test_small_and_complete_bodies_do_not_wait_for_room(wire: Wire) -> None:
    wire.limit(buffered_bytes=LARGE)
    await wire.send(put(LARGE))
    in_two, in_one, chunked = wire.connect(), wire.connect(), wire.connect()
    await wire.send(put(5), in_two)
    assert statuses(await wire.send(b"hello", in_two)) == [200]
    assert statuses(await wire.send(put(5) + b"hello", in_one)) == [200]
    await wire.send(CHUNKED + b"5\r\nhello\r\n", chunked)
    assert statuses(await wire.send(b"0\r\n\r\n", chunked)) == [200], "it waited until it was whole"
    assert wire.state.bodies.held_bytes == LARGE


async def test_a_client_that_leaves_while_it_waits_for_room_keeps_no_place(wire: Wire) -> None:
    wire.limit(buffered_bytes=2 * LARGE)
    leaver, behind = wire.connect(), wire.connect()
    await wire.send(put(LARGE))
    await wire.send(put(2 * LARGE), leaver)
    await wire.send(put(LARGE), behind)
    assert wire.state.bodies.held_bytes == LARGE
    leaver.abort()
    await settle()
    assert statuses(await wire.send(b"x" * LARGE, behind)) == [200]


async def test_no_deadline_passes_while_a_body_waits_for_room(wire: Wire) -> None:
    wire.limit(buffered_bytes=LARGE)
    on_admitted = asyncio.Event()

    async def wait(_: Request) -> None:
        await on_admitted.wait()

    wire.service.before = wait
    other = wire.connect()
    await wire.send(put(LARGE) + b"x" * LARGE)
    assert await wire.send(put(LARGE) + b"y" * 9, other) == b""
    await wire.wait(wire.state.limits.request_seconds + 1)
    assert statuses(wire.transport.written) == [500]
    assert other.written == b"", "`BodyBudget.reserve` ends the wait"
    on_admitted.set()
    await settle()
    assert statuses(await wire.send(b"y" * (LARGE - 9), other)) == [200]


async def test_a_body_that_finds_no_room_in_time_is_rejected(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.limit(buffered_bytes=LARGE)
    other = wire.connect()
    await wire.send(put(LARGE))

    async def reserve(_: BodyBudget, count: int, seconds: float, wait: object) -> bool:
        assert (count, seconds) == (LARGE, wire.state.limits.request_seconds)
        raise TimeoutError

    monkeypatch.setattr(BodyBudget, "reserve", reserve)
    assert statuses(await wire.send(put(LARGE) + b"x" * 9, other)) == [503]
    assert statuses(await wire.send(b"x" * (LARGE - 9) + GET, other)) == [503, 200], "the connection stays usable"


async def test_a_chunked_body_reserves_what_it_may_become_and_keeps_what_it_is(wire: Wire) -> None:
    on_admitted = asyncio.Event()

    async def wait(_: Request) -> None:
        await on_admitted.wait()

    wire.service.before = wait
    await wire.send(CHUNKED + b"2\r\nab\r\n")
    assert wire.state.bodies.held_bytes == wire.state.limits.body_bytes
    await wire.send(b"0\r\n\r\n")
    assert wire.state.bodies.held_bytes == 2
    on_admitted.set()
    await settle()
    assert wire.state.bodies.held_bytes == 0


@pytest.mark.parametrize("complete", [True, False])
async def test_room_comes_back_from_clients_that_leave(wire: Wire, complete: bool) -> None:
    on_admitted = asyncio.Event()

    async def wait(_: Request) -> None:
        await on_admitted.wait()

    wire.service.before = wait
    second = 10_000 if complete else 9_999
    await wire.send(put(10_000) + b"x" * 10_000 + put(10_000) + b"x" * second)
    assert wire.state.budgets.buffered_bytes == 10_000 + second
    wire.transport.abort()
    await settle()
    assert wire.state.budgets.buffered_bytes == 10_000, "the running request still has its body"
    on_admitted.set()
    await settle()
    assert wire.state.budgets.buffered_bytes == 0


async def test_room_comes_back_from_a_client_that_leaves_while_its_body_comes(wire: Wire) -> None:
    await wire.send(put(10) + b"x" * 9)
    assert wire.state.budgets.buffered_bytes == 10
    wire.transport.abort()
    await settle()
    assert wire.state.budgets.buffered_bytes == 0
    assert not wire.state.connections
    assert not wire.service.requests
