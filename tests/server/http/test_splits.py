"""The same bytes mean the same however they are cut; any other bytes are rejected, never crashed on."""

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.server.limits import Limits
from tests.server.wire import Wire

STREAM = (
    b"GET /1?q HTTP/1.1\r\nHost: a\r\n\r\n"
    b"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    b"\r\nPUT /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: t\r\n\r\n"
    b"PURGE /4 HTTP/1.1\r\nHost: a\r\n\r\n"
    b"MERGE /5 HTTP/1.1\r\nHost: a\r\nContent-Length: 41\r\n\r\n" + b"x" * 41 + b"HEAD /6 HTTP/1.1\r\nHost: a\r\n\r\n"
    b"POST /7 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab"
    b"GET /8 HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nConnection: close\r\n\r\nignored"
)
SMALL = Limits(body_bytes=40, pipelined_requests=2)


async def converse(parts: list[bytes]) -> tuple[bytes, Wire]:
    wire = Wire(SMALL)
    for part in parts:
        await wire.send(part)
    return wire.transport.written, wire


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


WHOLE, _ = asyncio.run(converse([STREAM]))


def test_the_stream_is_what_it_should_be() -> None:
    assert [int(part[:3]) for part in WHOLE.split(b"HTTP/1.1 ")[1:]] == [200, 200, 200, 405, 413, 200, 200, 200]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_any_split_gives_the_same_responses(places: list[int]) -> None:
    written, _ = asyncio.run(converse(cut(STREAM, places)))
    assert written == WHOLE


def test_byte_by_byte_gives_the_same_responses() -> None:
    written, _ = asyncio.run(converse([STREAM[index : index + 1] for index in range(len(STREAM))]))
    assert written == WHOLE


TOKENS = [
    *(b"GET", b"POST", b"CONNECT a:1", b" ", b"/", b"/a?b", b"http://b/", b" HTTP/1.1", b" HTTP/1.0"),
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b":", b"Host: a\r\n", b"X: \xff\r\n"),
    *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n"),
    *(b"Connection: upgrade\r\nUpgrade: x\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n"),
]
garbage = st.lists(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=20)), max_size=25).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(garbage, st.lists(st.integers(0, 200), max_size=4))
def test_garbage_is_rejected_or_waited_for(data: bytes, places: list[int]) -> None:
    async def run() -> None:
        _, wire = await converse(cut(data, [place for place in places if place <= len(data)]))
        for _ in range(4):
            await wire.wait(1000)
        assert wire.transport.closed
        assert not wire.state.connections
        assert not wire.log.failures
        answers = wire.transport.written.split(b"HTTP/1.1 ")[1:]
        assert all(100 <= int(one[:3]) < 506 and b"\r\n\r\n" in one for one in answers)
        assert all(one[:3] != b"500" for one in answers)

    asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(garbage, st.lists(st.integers(0, 200), max_size=6))
def test_garbage_means_the_same_however_it_is_cut(data: bytes, places: list[int]) -> None:
    async def bodies(parts: list[bytes]) -> list[tuple[str, str, bytes]]:
        _, wire = await converse(parts)
        return [(request.method, request.path, request.body) for request in wire.service.requests]

    split = cut(data, [place for place in places if place <= len(data)])
    assert asyncio.run(bodies([data])) == asyncio.run(bodies(split))
