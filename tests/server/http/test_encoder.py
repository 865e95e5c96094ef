"""Responses as bytes."""

import pytest

from lazulite.protocol.message import Response
from lazulite.server.http.encoder import REASON_MAX, body_of, encode_head


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
