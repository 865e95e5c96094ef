"""What a connection keeps of its input, and that it lets go of it."""

import tracemalloc

import pytest

from lazulite.protocol.message import Request
from lazulite.server.admission.costs import Debt
from lazulite.server.http.inbound import Inlet
from tests.server.wire import Wire

HEAD = b"GET /t HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"


@pytest.fixture(name="inlet")
def _inlet(wire: Wire) -> Inlet:
    return Inlet(wire.shared, lambda method, headers: Request(method, "", headers=headers), Debt())


def _read_all(inlet: Inlet, data: bytes) -> None:
    inlet.receive(data)
    while inlet.read_on():
        pass


async def test_requests_come_out_however_the_input_is_cut(inlet: Inlet) -> None:
    for byte in HEAD + HEAD:
        assert inlet.has_room
        _read_all(inlet, bytes([byte]))
    assert [incoming.complete for incoming in inlet.queue] == [True, True]


async def test_reading_stops_where_requests_wait_and_goes_on_when_they_are_taken(wire: Wire, inlet: Inlet) -> None:
    count = 5000
    _read_all(inlet, HEAD * count)
    assert not inlet.has_room
    assert wire.shared.limits.pipelined_requests <= len(inlet.queue) < 1000
    taken = 0
    while inlet.queue:
        inlet.queue.popleft()
        taken += 1
        inlet.read_on()
    assert taken == count
    assert inlet.has_room


async def test_input_that_comes_while_some_is_unread_stands_behind_it(inlet: Inlet) -> None:
    inlet.receive(HEAD[:9])
    assert not inlet.has_room
    _read_all(inlet, HEAD[9:])
    assert [incoming.request.path for incoming in inlet.queue] == ["/t"]


async def test_half_a_request_is_dropped_at_the_end_of_the_input(inlet: Inlet) -> None:
    _read_all(inlet, HEAD + HALF)
    assert inlet.unaccepted_bytes == 5
    inlet.end()
    assert [incoming.request.method for incoming in inlet.queue] == ["GET"]
    assert inlet.unaccepted_bytes == 0


async def test_nothing_is_kept_after_the_close(inlet: Inlet) -> None:
    _read_all(inlet, HALF)
    inlet.receive(b"rest")
    assert inlet.unaccepted_bytes == len(b"hellorest")
    inlet.close()
    assert not inlet.queue
    assert inlet.held_bytes == inlet.unaccepted_bytes == 0
    assert not inlet.read_on()
    assert inlet.has_room, "what had come is forgotten"


async def test_a_body_is_read_no_further_than_a_slice_before_it_is_accepted(inlet: Inlet) -> None:
    _read_all(inlet, b"POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000)
    [incoming] = inlet.queue
    assert not inlet.has_room
    assert incoming.received_bytes < 33_000
    assert inlet.unaccepted_bytes > 100_000
    incoming.accepted = True
    _read_all(inlet, b"")
    assert incoming.complete
    assert inlet.has_room


async def test_memory_of_heads_is_counted_with_what_a_field_costs(inlet: Inlet) -> None:
    fields = b"".join(b"%d:\r\n" % number for number in range(50))
    _read_all(inlet, b"GET /t HTTP/1.1\r\nHost: a\r\n" + fields)
    half_bytes = inlet.held_bytes
    assert half_bytes > 50 * 200, "far more than the bytes of the wire"
    _read_all(inlet, b"\r\n" + HEAD * 3 + HEAD[:10])
    assert inlet.held_bytes > half_bytes
    inlet.queue.clear()
    assert inlet.held_bytes < 1000


async def test_a_body_in_crumbs_takes_hardly_more_memory_than_its_bytes(inlet: Inlet) -> None:
    crumbs, part = 100_000, b"2\r\nab\r\n"
    _read_all(inlet, b"POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + part)
    inlet.queue[0].accepted = True
    tracemalloc.start()
    try:
        for _ in range(crumbs // 1000):
            _read_all(inlet, part * 1000)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 2 * 2 * crumbs
    _read_all(inlet, b"3\r\nend\r\n" + b"%x\r\n" % 5000 + b"x" * 5000 + b"\r\n0\r\n\r\n")
    [incoming] = inlet.queue
    assert incoming.request.body == b"ab" * (crumbs + 1) + b"end" + b"x" * 5000
