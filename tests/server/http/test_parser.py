"""What the parser alone promises."""

from collections import deque

import pytest

from lazulite.protocol.errors import TlsOnPlainPortError
from lazulite.protocol.message import Request
from lazulite.server.http.parser import Reading, RequestParser
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.limits import Limits

from .test_connection import GET, HOST


def parser() -> tuple[RequestParser, deque[PendingRequest]]:
    queue: deque[PendingRequest] = deque()
    return RequestParser(Limits(), queue, lambda method, headers: Request(method, "", headers=headers)), queue


def test_nothing_is_read_after_the_last_request() -> None:
    reading, queue = parser()
    reading.feed(GET + b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n" + GET + b"\0")
    reading.feed(GET)
    assert [(one.complete, one.keep_alive, one.error) for one in queue] == [(True, True, None), (True, False, None)]
    assert reading.stopped


def test_nothing_is_read_after_an_error() -> None:
    reading, queue = parser()
    reading.feed(b"bad\r\n" + GET)
    reading.feed(GET)
    assert len(queue) == 1
    assert queue[0].error is not None


def test_what_is_being_read_shows() -> None:
    reading, queue = parser()
    seen = []
    for part in (b"", b"PUT / HT", b"TP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", b"a", b"b"):
        reading.feed(part)
        seen.append((reading.reading.name, reading.message_count, len(queue)))
    assert seen == [
        ("NOTHING", 0, 0),
        ("HEAD", 1, 0),
        ("BODY", 1, 1),
        ("BODY", 1, 1),
        ("NOTHING", 1, 1),
    ]


def test_after_close_nothing_is_held_or_read() -> None:
    reading, queue = parser()
    reading.feed(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
    reading.close()
    reading.feed(b"b")
    assert reading.reading is Reading.NOTHING
    assert not queue[0].complete


def test_a_body_that_finds_no_memory_is_no_fault_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(self: PendingRequest, part: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr(PendingRequest, "receive", exhausted)
    queue: deque[PendingRequest] = deque()
    reading = RequestParser(Limits(), queue, lambda method, headers: Request(method, "", headers=headers))
    reading.feed(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
    assert queue[0].error is not None
    assert queue[0].error.code == "ServerBusy"


@pytest.mark.parametrize(
    ("sent", "is_tls"), [(b"\x16\x03\x01\x02\x00\x01", True), (b"\x16nonsense", False), (b"bad", False)]
)
def test_a_tls_handshake_is_distinguished_from_other_bytes(sent: bytes, is_tls: bool) -> None:
    reading, queue = parser()
    reading.feed(sent)
    assert queue[0].error is not None
    assert isinstance(queue[0].error, TlsOnPlainPortError) == is_tls


def test_a_handshake_behind_a_request_is_none() -> None:
    reading, queue = parser()
    reading.feed(GET)
    reading.feed(b"\x16\x03\x01\x02\x00\x01")
    assert queue[-1].error is not None
    assert not isinstance(queue[-1].error, TlsOnPlainPortError)
