"""Responses as bytes, sent together in order and without delay; a client's address, and what it has acknowledged."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from lazulite.protocol.joined_content import JoinedContent
from lazulite.protocol.message import WINDOW_BYTES, Response, Window
from lazulite.server.http.outbound import (
    ANSWERS_MAX,
    REASON_MAX,
    SECONDS_MAX,
    AckProgress,
    WriteBatcher,
    body_of,
    client_address,
    encode_head,
    send_windows,
)
from lazulite.service.time_slice import TimeSlice
from tests.certificates import Authority
from tests.server.test_lifecycle import SECONDS_MAX as TEST_SECONDS_MAX
from tests.server.wire import Clock, Wire

SOME = b"x" * (32 << 20)
"""More than the kernel buffers for a client that does not read."""
LITTLE_BYTES = 1 << 20
"""It takes that, and cannot deliver it."""

WINDOWS = 12


def head(response: Response, *, keep_alive: bool = True, http_1_0: bool = False) -> bytes:
    return encode_head(response, keep_alive=keep_alive, http_1_0=http_1_0)


def test_reason_phrases_are_the_services() -> None:
    assert head(Response(413)).startswith(b"HTTP/1.1 413 Request Entity Too Large\r\n")
    assert head(Response(799)).startswith(b"HTTP/1.1 799 \r\n")


def test_a_response_may_have_a_phrase_of_its_own() -> None:
    assert head(Response(404, reason="Not here.")).startswith(b"HTTP/1.1 404 Not here.\r\nContent-Length: 0\r\n")


@pytest.mark.parametrize(
    ("reason", "phrase"),
    [
        ("one\nRequestId:x\nTime:y", b"one"),
        ("one\r\nSet-Cookie: x", b"one"),
        ("one\rtwo", b"one"),
        ("o\0n\te\x7f\x1b", b"o?n?e??"),
        ("\u2603\u00e9\x85\u2028", b"????"),
        ("\n", b"Bad Request"),
        ("x" * 100_000, b"x" * REASON_MAX),
    ],
)
def test_a_phrase_is_one_short_line_of_ascii(reason: str, phrase: bytes) -> None:
    assert head(Response(400, reason=reason)) == b"HTTP/1.1 400 " + phrase + b"\r\nContent-Length: 0\r\n\r\n"


def test_headers_stay_in_order() -> None:
    assert head(Response(200, [("B", "1"), ("a", "2"), ("B", "3")], b"xy")) == (
        b"HTTP/1.1 200 OK\r\nB: 1\r\na: 2\r\nB: 3\r\nContent-Length: 2\r\n\r\n"
    )


@pytest.mark.parametrize("break_", ["\r\n", "\n", "\r", "\r\n\r\n", "\0"])
@pytest.mark.parametrize("place", [0, 1])
def test_no_value_starts_another_line(break_: str, place: int) -> None:
    evil = f"a{break_}Set-Cookie: x"
    field = (evil, "v") if place == 0 else ("n", evil)
    raw = head(Response(200, [field]))
    assert raw.count(b"\r\n") == raw.count(b"\n") == raw.count(b"\r") == 4
    assert b"\0" not in raw


def test_characters_beyond_latin_1_are_replaced() -> None:
    assert b"X: ?\xe9" in head(Response(200, [("X", "\u2603é")]))


def test_connection() -> None:
    assert b"Connection" not in head(Response(200))
    assert b"\r\nConnection: close\r\n" in head(Response(200), keep_alive=False)
    assert b"\r\nConnection: close\r\n" in head(Response(200), keep_alive=False, http_1_0=True)
    assert b"\r\nConnection: keep-alive\r\n" in head(Response(200), http_1_0=True)


@pytest.mark.parametrize(
    ("status", "method", "length", "body"),
    [
        (200, "GET", b"3", b"abc"),
        (200, "HEAD", b"3", b""),
        (204, "GET", b"0", b""),
        (304, "GET", None, b""),
        (404, "HEAD", b"3", b""),
    ],
)
def test_bodies_and_their_lengths(status: int, method: str, length: bytes | None, body: bytes) -> None:
    response = Response(status, [], b"abc")
    raw = head(response)
    assert body_of(response, method) == body
    assert (b"Content-Length" in raw) == (length is not None)
    if length is not None:
        assert b"Content-Length: " + length + b"\r\n" in raw


class Sink(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closing


async def test_what_is_posted_leaves_at_the_end_of_the_turn_in_order() -> None:
    write_batcher, one, other = WriteBatcher(Clock()), Sink(), Sink()
    write_batcher.post(one, b"1")
    write_batcher.post(other, b"2")
    write_batcher.post(one, b"3")
    assert one.written == other.written == []
    await asyncio.sleep(0)
    assert (one.written, other.written) == ([b"1", b"3"], [b"2"])
    write_batcher.post(one, b"4")
    await asyncio.sleep(0)
    assert one.written[-1] == b"4"


async def test_not_more_than_so_many_wait() -> None:
    write_batcher, sink = WriteBatcher(Clock()), Sink()
    for _ in range(ANSWERS_MAX):
        write_batcher.post(sink, b"x")
    assert len(sink.written) == ANSWERS_MAX


async def test_a_long_turn_is_not_waited_for() -> None:
    clock, sink = Clock(), Sink()
    write_batcher = WriteBatcher(clock)
    write_batcher.post(sink, b"1")
    clock.now_s += SECONDS_MAX
    write_batcher.post(sink, b"2")
    assert sink.written == [b"1", b"2"]


async def test_who_has_left_gets_nothing() -> None:
    write_batcher, sink = WriteBatcher(Clock()), Sink()
    write_batcher.post(sink, b"1")
    sink.closing = True
    await asyncio.sleep(0)
    assert sink.written == []


async def test_an_answer_that_finds_no_memory_takes_no_other_with_it() -> None:
    class Exhausted(Sink):
        aborted = False

        def write(self, data: bytes | bytearray | memoryview) -> None:
            raise MemoryError

        def abort(self) -> None:
            self.aborted = True

    write_batcher, one, other = WriteBatcher(Clock()), Exhausted(), Sink()
    write_batcher.post(one, b"1")
    write_batcher.post(other, b"2")
    write_batcher.send()
    assert one.aborted
    assert other.written == [b"2"]


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("192.0.2.1", 80), "192.0.2.1"),
        (("::1", 80, 0, 0), "::1"),
        (("::ffff:192.0.2.1", 80, 0, 0), "192.0.2.1"),
        (("fe80::1%eth0", 80, 0, 2), "fe80::1"),
        (None, ""),
        ("", ""),
    ],
)
def test_addresses_are_spelled_as_sas_spells_them(peer: object, address: str) -> None:
    assert client_address(asyncio.BaseTransport({"peername": peer})) == address


@pytest.fixture(name="contexts", params=["tcp", "tls"])
def _contexts(request: pytest.FixtureRequest, tmp_path: Path) -> "tuple[ssl.SSLContext, ssl.SSLContext] | None":
    if request.param == "tcp":
        return None
    authority = Authority(tmp_path)
    files = authority.issue()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files.cert, files.key)
    return server, ssl.create_default_context(cafile=str(authority.root))


async def _until(said: Callable[[], bool]) -> None:
    async with asyncio.timeout(TEST_SECONDS_MAX):
        while not said():  # noqa: ASYNC110 - no event tells.
            await asyncio.sleep(0)


@pytest.mark.parametrize("first_bytes", [LITTLE_BYTES, len(SOME)])
async def test_what_a_slow_reader_takes_is_seen(
    contexts: "tuple[ssl.SSLContext, ssl.SSLContext] | None", first_bytes: int
) -> None:
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(
        lambda _, writer: writers.append(writer), "127.0.0.1", 0, ssl=contexts and contexts[0]
    )
    port = server.sockets[0].getsockname()[1]
    reader, client = await asyncio.open_connection("127.0.0.1", port, ssl=contexts and contexts[1], limit=1 << 16)
    await _until(lambda: bool(writers))
    transport = cast("asyncio.Transport", writers[0].transport)
    try:
        delivery = AckProgress(transport)
        await _until(lambda: not delivery.waits)
        transport.write(SOME[:first_bytes])
        if first_bytes == LITTLE_BYTES:
            await _until(lambda: not transport.get_write_buffer_size())
        assert delivery.waits
        transport.write(SOME[first_bytes:])
        assert delivery.waits
        await _until(lambda: not delivery.progress())
        taken, seen = 0, False
        while taken < len(SOME):
            taken += len(await reader.read(1 << 20))
            seen = seen or delivery.progress()
        assert seen
        await _until(lambda: not delivery.waits)
        assert not delivery.progress(), "nothing is waited for any more"
    finally:
        client.transport.abort()
        transport.abort()
        server.close()


async def test_without_a_socket_only_what_waits_in_the_transport_counts(wire: Wire) -> None:
    transport = wire.transport
    delivery = AckProgress(transport)
    assert not delivery.waits
    transport.waiting_bytes = 10
    assert delivery.waits
    assert not delivery.progress()
    transport.waiting_bytes = 9
    assert delivery.progress()
    assert not delivery.progress()


async def test_a_socket_that_is_no_tcp_tells_nothing(wire: Wire) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.transport._extra["socket"] = ours  # type: ignore[attr-defined]  # as asyncio's transports keep it
        assert not AckProgress(wire.transport).progress()


class Iterations:
    """Counts the iterations of other tasks, and the windows sent in each."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.windows = [0]

    def clock(self) -> float:
        return self.now_s

    async def send(self, window: Window) -> None:
        assert len(window) == WINDOW_BYTES
        self.now_s += 1.0
        self.windows[-1] += 1

    async def count(self) -> None:
        while True:
            self.windows.append(0)
            await asyncio.sleep(0)


@pytest.fixture(name="iterations")
async def _iterations() -> AsyncIterator[Iterations]:
    iterations = Iterations()
    counting = asyncio.create_task(iterations.count())
    yield iterations
    counting.cancel()


@pytest.mark.parametrize(("slice_seconds", "windows_max"), [(1.0, 1), (3.0, 3), (100.0, WINDOWS)])
async def test_other_tasks_run_after_each_time_slice(
    iterations: Iterations, slice_seconds: float, windows_max: int
) -> None:
    content = JoinedContent([bytes(WINDOW_BYTES)] * WINDOWS)
    await send_windows(content, iterations.send, TimeSlice(slice_seconds, iterations.clock))
    assert sum(iterations.windows) == WINDOWS
    assert max(iterations.windows) == windows_max


class Liar(JoinedContent):
    """Content that is not as long as it says."""

    @property
    def length(self) -> int:
        return 2 * WINDOW_BYTES


@pytest.mark.parametrize(("count", "sent"), [(1, 1), (3, 2)])
async def test_content_of_another_length_is_an_error_and_no_more_than_its_length_is_sent(
    iterations: Iterations, count: int, sent: int
) -> None:
    with pytest.raises(ValueError, match="content of 524288 bytes had"):
        await send_windows(Liar([bytes(WINDOW_BYTES)] * count), iterations.send, TimeSlice(1.0, iterations.clock))
    assert sum(iterations.windows) == sent
