"""Bodies in windows, both ways: the order of events, back-pressure, deadlines, and the end of either side."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.joined_content import ONE_PIECE_BYTES
from lazulite.protocol.message import WINDOW_BYTES, ClientDisconnectedError, Request, Response
from lazulite.server.http.connection import Connection
from lazulite.server.http.outbound import CONTINUE
from lazulite.server.limits import Limits
from tests.server.http.test_connection import GET, HOST, statuses
from tests.server.wire import Wire, settle

LIMITS = Limits()
LENGTH = 10 * WINDOW_BYTES
HEAD = b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % LENGTH
PART = b"x" * WINDOW_BYTES


class Reader:
    """Reads bodies in chunks, each when it is let."""

    def __init__(self) -> None:
        self.taken_bytes = 0
        self.ended: str | None = None
        self.may = asyncio.Semaphore(1000)

    async def read(self, request: Request) -> Response:
        assert request.body_to_come is not None
        try:
            async for chunk in request.body_to_come.chunks():
                assert 0 < len(chunk) <= WINDOW_BYTES
                self.taken_bytes += len(chunk)
                await self.may.acquire()
        except (ServiceError, ClientDisconnectedError) as error:
            self.ended = type(error).__name__
            raise
        self.ended = "whole"
        return Response(201)


class Content:
    """Makes chunks, and counts them."""

    def __init__(self, count: int, length: int | None = None, error: Exception | None = None) -> None:
        self._count = count
        self._length = count * WINDOW_BYTES if length is None else length
        self._error = error
        self.made = self.closed = 0

    @property
    def length(self) -> int:
        return self._length

    async def chunks(self) -> AsyncIterator[bytes]:
        for _ in range(self._count):
            self.made += 1
            yield PART
        if self._error is not None:
            raise self._error

    @property
    def held_bytes(self) -> int:
        return 0

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture(name="reader")
def _reader(wire: Wire) -> Reader:
    reader = Reader()
    wire.service.responds = reader.read
    return reader


def serve(wire: Wire, content: Content) -> None:
    async def respond(_: Request) -> Response:
        return Response(200, content=content)

    wire.service.responds = respond


async def test_credentials_come_before_the_body_and_continue_with_its_first_read(wire: Wire, reader: Reader) -> None:
    asked, good = asyncio.Event(), asyncio.Event()

    async def authenticates(_: Request) -> bool:
        asked.set()
        await good.wait()
        return True

    wire.service.authenticates = authenticates
    await wire.send(HEAD.replace(b"Host", b"Expect: 100-continue\r\nHost"))
    assert asked.is_set()
    assert wire.transport.written == b""
    good.set()
    await settle()
    assert wire.transport.written == CONTINUE
    assert reader.taken_bytes == 0
    await wire.send(PART)
    assert reader.taken_bytes == len(PART), "before the rest has come"
    for _ in range(9):
        await wire.send(PART)
    assert reader.ended == "whole"
    assert statuses(wire.transport.written.removeprefix(CONTINUE)) == [201]


async def test_a_slow_service_makes_its_client_wait(wire: Wire, reader: Reader) -> None:
    reader.may = asyncio.Semaphore(0)
    await wire.send(HEAD)
    sent = 0
    while not wire.transport.reading_paused:
        await wire.send(PART)
        sent += len(PART)
    assert sent <= 4 * WINDOW_BYTES
    assert wire.state.bodies.held_bytes == 2 * WINDOW_BYTES
    for _ in range(100):
        reader.may.release()
    await settle()
    assert not wire.transport.reading_paused
    while sent < LENGTH:
        await wire.send(PART)
        sent += len(PART)
    assert (reader.taken_bytes, reader.ended) == (LENGTH, "whole")
    assert wire.state.bodies.held_bytes == 0


async def test_a_body_is_held_back_until_a_service_with_good_credentials_reads_it(wire: Wire, reader: Reader) -> None:
    may_read = asyncio.Event()

    async def respond(request: Request) -> Response:
        await may_read.wait()
        return await reader.read(request)

    wire.service.responds = respond
    await wire.send(HEAD)
    sent = 0
    while not wire.transport.reading_paused:
        await wire.send(PART)
        sent += len(PART)
    assert sent <= len(PART), "one read of the socket, of which two slices are parsed"
    may_read.set()
    await settle()
    while sent < LENGTH:
        await wire.send(PART)
        sent += len(PART)
    assert (reader.taken_bytes, reader.ended) == (LENGTH, "whole")


async def test_a_service_that_works_on_has_time_for_each_piece(wire: Wire, reader: Reader) -> None:
    reader.may = asyncio.Semaphore(0)
    await wire.send(HEAD + PART)
    for _ in range(5):
        await wire.wait(LIMITS.request_seconds - 1)
        reader.may.release()
        await wire.send(PART)
    assert wire.transport.written == b""
    await wire.wait(LIMITS.request_seconds + 1)
    assert statuses(wire.transport.written) == [500]
    for _ in range(100):
        reader.may.release()
    await settle()


async def test_a_client_that_stalls_is_given_up_and_one_that_goes_on_is_not(wire: Wire, reader: Reader) -> None:
    await wire.send(HEAD)
    for _ in range(8):
        await wire.send(PART)
        await wire.wait(1)
        await wire.wait(LIMITS.body_stall_seconds - 2)
    assert reader.ended is None
    await wire.wait(LIMITS.body_stall_seconds + 1)
    assert reader.ended == "ServiceError"
    assert statuses(wire.transport.written) == [408]


async def test_the_pace_of_a_body_counts_all_waits_for_it(wire: Wire, reader: Reader) -> None:
    await wire.send(HEAD + b"x" * 65536)
    for _ in range(3):
        await wire.wait(20)
        await wire.send(b"x")
    assert reader.ended is None
    await wire.wait(20)
    await wire.send(b"x")
    await wire.wait(20)
    assert reader.ended == "ServiceError"
    assert statuses(wire.transport.written) == [408]


@pytest.mark.parametrize("end", ["lost", "half-closed"])
async def test_a_client_that_leaves_ends_the_work_on_its_body(wire: Wire, reader: Reader, end: str) -> None:
    await wire.send(HEAD + PART)
    if end == "lost":
        wire.transport.abort()
    else:
        wire.transport.protocol.eof_received()
    await settle()
    assert reader.ended == "ClientDisconnectedError"
    assert wire.state.bodies.held_bytes == 0
    assert wire.log.exchanges == []


async def test_a_response_before_the_end_of_the_body_leaves_the_connection_usable(wire: Wire) -> None:
    async def respond(request: Request) -> Response:
        assert request.body_to_come is not None
        async for _ in request.body_to_come.chunks():
            break
        return Response(409)

    wire.service.responds = respond
    await wire.send(HEAD + PART)
    assert statuses(wire.transport.written) == [409]
    wire.service.responds = None
    for _ in range(9):
        await wire.send(PART)
    assert statuses(await wire.send(GET)) == [409, 200]


async def test_content_is_made_as_the_client_takes_it(wire: Wire) -> None:
    content = Content(10)
    serve(wire, content)
    wire.transport.stalled = True
    await wire.send(GET)
    assert 0 < content.made <= 3
    while content.made < 10:
        made = content.made
        assert content.closed == 0
        wire.transport.take(wire.transport.waiting_bytes)
        await settle()
        assert made < content.made <= made + 3
    wire.service.responds = None
    wire.transport.stalled = False
    wire.transport.take(wire.transport.waiting_bytes)
    await settle()
    assert content.closed == 1
    await wire.send(GET)
    assert [exchange.response.status for exchange in wire.log.exchanges] == [200, 200]
    assert wire.log.exchanges[0].bytes_out >= LENGTH


async def test_content_is_not_made_for_a_head(wire: Wire) -> None:
    content = Content(10)
    serve(wire, content)
    assert b"Content-Length: %d\r\n" % LENGTH in await wire.send(GET.replace(b"GET", b"HEAD"))
    assert (content.made, content.closed) == (0, 1)
    assert not wire.transport.closed


@pytest.mark.parametrize(
    "content", [Content(2, error=ValueError("broken")), Content(2, length=WINDOW_BYTES), Content(2, length=LENGTH)]
)
async def test_content_that_fails_ends_the_connection(wire: Wire, content: Content) -> None:
    serve(wire, content)
    await wire.send(GET)
    assert wire.transport.aborted
    assert content.closed == 1
    assert len(wire.log.failures) == 1
    assert not wire.state.connections


async def test_a_client_that_leaves_ends_the_making_of_content(wire: Wire) -> None:
    content = Content(10)
    serve(wire, content)
    wire.transport.stalled = True
    await wire.send(GET)
    made = content.made
    wire.transport.abort()
    await settle()
    assert (content.made, content.closed) == (made, 1)
    assert wire.log.failures == []
    assert not wire.state.connections


async def test_a_client_that_takes_nothing_is_disconnected_and_a_slow_one_is_not(wire: Wire) -> None:
    content = Content(10)
    serve(wire, content)
    wire.transport.stalled = True
    await wire.send(GET)
    for _ in range(5):
        wire.transport.waiting_bytes -= 1
        await wire.wait(LIMITS.write_stall_seconds)
        assert not wire.transport.closed
    await wire.wait(LIMITS.write_stall_seconds)
    assert wire.transport.aborted
    assert content.closed == 1


async def test_a_client_that_leaves_is_logged_with_what_it_was_sent(wire: Wire) -> None:
    serve(wire, Content(10))
    wire.transport.stalled = True
    await wire.send(GET)
    wire.transport.abort()
    await settle()
    (exchange,) = wire.log.exchanges
    assert exchange.response.status == 200
    assert exchange.bytes_out < len(wire.transport.written) < LENGTH, "the last window may never have left"


@pytest.mark.parametrize("length", [ONE_PIECE_BYTES, ONE_PIECE_BYTES + 1])
async def test_a_client_that_leaves_before_the_response_is_logged(wire: Wire, length: int) -> None:
    may_respond = asyncio.Event()

    async def respond(_: Request) -> Response:
        await may_respond.wait()
        return Response(200, body=bytes(length))

    wire.service.responds = respond
    await wire.send(GET)
    wire.transport.abort()
    await settle()
    may_respond.set()
    await settle()
    assert [exchange.response.status for exchange in wire.log.exchanges] == [200]
    assert not wire.state.connections


async def test_a_long_body_is_sent_as_the_client_takes_it(wire: Wire) -> None:
    wire.service.body = bytes(LENGTH)
    wire.transport.stalled = True
    await wire.send(GET + GET)
    head_bytes = wire.transport.written.index(b"\r\n\r\n") + 4
    assert b"\r\nContent-Length: %d\r\n" % LENGTH in wire.transport.written
    while len(wire.transport.written) < head_bytes + LENGTH:
        assert wire.transport.waiting_bytes <= head_bytes + WINDOW_BYTES
        assert wire.log.exchanges == []
        wire.transport.take(wire.transport.waiting_bytes)
        await settle()
    wire.transport.stalled = False
    wire.transport.take(wire.transport.waiting_bytes)
    await settle()
    assert wire.transport.written[head_bytes : head_bytes + LENGTH] == bytes(LENGTH)
    assert [exchange.bytes_out for exchange in wire.log.exchanges] == [head_bytes + LENGTH] * 2


async def test_the_time_of_a_request_ends_where_its_response_begins(wire: Wire) -> None:
    wire.service.body = bytes(LENGTH)
    wire.transport.stalled = True
    await wire.send(GET)
    await wire.wait(LIMITS.write_stall_seconds - 1)
    wire.transport.stalled = False
    wire.transport.take(wire.transport.waiting_bytes)
    await settle()
    assert [exchange.elapsed_ms for exchange in wire.log.exchanges] == [0]


async def test_a_client_that_takes_nothing_of_a_long_body_is_disconnected(wire: Wire) -> None:
    wire.service.body = bytes(LENGTH)
    wire.transport.stalled = True
    await wire.send(GET)
    await wire.wait(LIMITS.write_stall_seconds)
    assert wire.transport.aborted


@pytest.mark.parametrize(("length", "short"), [(1000, 1), (ONE_PIECE_BYTES, 0), (ONE_PIECE_BYTES + 1, 0)])
async def test_a_long_body_is_no_short_request(wire: Wire, length: int, short: int) -> None:
    wire.service.body = bytes(length)
    await wire.send(GET)
    assert wire.state.scheduler.short_request_count == short
    (exchange,) = wire.log.exchanges
    assert exchange.bytes_out == len(wire.transport.written) > length


async def test_a_long_body_is_not_sent_for_a_head(wire: Wire) -> None:
    wire.service.body = bytes(LENGTH)
    written = await wire.send(GET.replace(b"GET", b"HEAD"))
    assert b"\r\nContent-Length: %d\r\n" % LENGTH in written
    assert written.endswith(b"\r\n\r\n")


async def test_content_that_is_not_made_in_time_ends_the_connection(wire: Wire) -> None:
    class Stuck(Content):
        async def chunks(self) -> AsyncIterator[bytes]:
            yield PART
            await asyncio.Event().wait()

    content = Stuck(2)
    serve(wire, content)
    await wire.send(GET)
    await wire.wait(LIMITS.request_seconds)
    assert wire.transport.aborted
    connection = wire.transport.protocol
    assert isinstance(connection, Connection)
    connection.abandon()
    await settle()
    assert content.closed == 1
