"""Whatever two parsers might read differently is rejected, and nothing behind it is ever taken for a request."""

import pytest

from tests.server.wire import Wire

from .test_connection import GET, HOST, statuses

POST = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"

HEADS = [
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"GET / HTTP/1.1\r\nHost: a\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\n",
    b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X:\r\n\tb\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X : a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x0bb\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X\xff: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b": a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X\r\n\r\n",
    b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /\x01 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n",
    b"GET / http/1.1\r\n" + HOST + b"\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na",
    POST + b"Content-Length: 1, 1\r\n\r\na",
    POST + b"Content-Length: +1\r\n\r\na",
    POST + b"Content-Length: -1\r\n\r\na",
    POST + b"Content-Length: 0x1\r\n\r\na",
    POST + b"Content-Length: 1 1\r\n\r\na",
    POST + b"Content-Length: 1_0\r\n\r\na",
    POST + b"Content-Length: \xb2\r\n\r\na",
    POST + b"Content-Length:\r\n\r\n",
    POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    POST + b"Content-Length : 1\r\n\r\na",
    POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + LAST,
    POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + LAST,
    POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + LAST,
    POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + LAST,
    POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + LAST,
    POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n" + LAST,
    POST + b"Transfer-Encoding:\r\n\r\n" + LAST,
    b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + LAST,
    b"POST / HTTP/1.0\r\n" + HOST + b"Proxy-Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + LAST,
    POST + b"Authorization: a\r\nAuthorization: b\r\nContent-Length: 0\r\n\r\n",
]

CODINGS = [b"gzip", b"gzip, chunked", b"identity", b"xchunked", b'"chunked"', b"chunked;a=b", b"chunked,"]

CHUNKS = [
    b"1\nx\r\n" + LAST,
    b"1\r\nx\n" + LAST,
    b"1\r\nx" + LAST,
    b"1\r\nxy\r\n" + LAST,
    b"1 \r\nx\r\n" + LAST,
    b" 1\r\nx\r\n" + LAST,
    b"0x1\r\nx\r\n" + LAST,
    b"-1\r\nx\r\n" + LAST,
    b"g\r\nx\r\n" + LAST,
    b"\r\n1\r\nx\r\n" + LAST,
    b"fffffffffffffffff\r\nx\r\n" + LAST,
    b"1;a\nb\r\nx\r\n" + LAST,
    b"1;a\rb\r\nx\r\n" + LAST,
    b"1;\0\r\nx\r\n" + LAST,
    b"0\n\r\n",
    b"0\r\n\n",
    b"0\r\nX : y\r\n\r\n",
    b"0\r\nX: y\r\n z\r\n\r\n",
    b"0\r\nContent-Length: 7\r\n\r\n",
]


@pytest.mark.parametrize("probe", HEADS + [CHUNKED + chunks for chunks in CHUNKS])
async def test_probe_is_rejected_and_ends_the_connection(wire: Wire, probe: bytes) -> None:
    output = await wire.send(probe + GET)
    assert statuses(output) == [400]
    assert b"Connection: close\r\n" in output
    assert wire.transport.eof
    assert not wire.service.requests
    assert await wire.send(GET) == output, "nothing is read after the rejection"


@pytest.mark.parametrize("coding", CODINGS)
async def test_transfer_codings_other_than_chunked(wire: Wire, coding: bytes) -> None:
    output = await wire.send(POST + b"Transfer-Encoding: " + coding + b"\r\n\r\n" + LAST + GET)
    assert statuses(output) in ([501], [400])
    assert wire.transport.eof
    assert not wire.service.requests


@pytest.mark.parametrize("value", [b"01", b"1\t ", b"  1"])
async def test_lengths_that_only_look_odd(wire: Wire, value: bytes) -> None:
    await wire.send(POST + b"Content-Length:" + value + b"\r\n\r\na" + GET)
    assert [request.body for request in wire.service.requests] == [b"a", b""]
