"""What a connection keeps of its input, and that it lets go of it."""

import tracemalloc

import pytest

from lazulite.protocol.message import Request
from lazulite.server.admission.costs import CostAccount
from lazulite.server.http.inbound import InboundBuffer
from tests.server.wire import Wire

HEAD = b"GET /t HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"


@pytest.fixture(name="inbound")
def _inbound(wire: Wire) -> InboundBuffer:
    return InboundBuffer(wire.state.limits, lambda method, headers: Request(method, "", headers=headers), CostAccount())


def _read_all(inbound: InboundBuffer, data: bytes) -> None:
    inbound.receive(data)
    while inbound.read_on():
        pass


async def test_requests_come_out_however_the_input_is_cut(inbound: InboundBuffer) -> None:
    for byte in HEAD + HEAD:
        assert inbound.has_room
        _read_all(inbound, bytes([byte]))
    assert [incoming.complete for incoming in inbound.queue] == [True, True]


async def test_reading_stops_where_requests_wait_and_goes_on_when_they_are_taken(
    wire: Wire, inbound: InboundBuffer
) -> None:
    count = 5000
    _read_all(inbound, HEAD * count)
    assert not inbound.has_room
    assert wire.state.limits.pipelined_requests <= len(inbound.queue) < 1000
    taken = 0
    while inbound.queue:
        inbound.queue.popleft()
        taken += 1
        inbound.read_on()
    assert taken == count
    assert inbound.has_room


async def test_input_that_comes_while_some_is_unread_stands_behind_it(inbound: InboundBuffer) -> None:
    inbound.receive(HEAD[:9])
    assert not inbound.has_room
    _read_all(inbound, HEAD[9:])
    assert [incoming.request.path for incoming in inbound.queue] == ["/t"]


async def test_half_a_request_is_dropped_at_the_end_of_the_input(inbound: InboundBuffer) -> None:
    _read_all(inbound, HEAD + HALF)
    assert inbound.unaccepted_bytes == 5
    inbound.end()
    assert [incoming.request.method for incoming in inbound.queue] == ["GET"]
    assert inbound.unaccepted_bytes == 0


async def test_nothing_is_kept_after_the_close(inbound: InboundBuffer) -> None:
    _read_all(inbound, HALF)
    inbound.receive(b"rest")
    assert inbound.unaccepted_bytes == len(b"hellorest")
    inbound.close()
    assert not inbound.queue
    assert inbound.held_bytes == inbound.unaccepted_bytes == 0
    assert not inbound.read_on()
    assert inbound.has_room, "what had come is forgotten"


async def test_a_body_is_read_no_further_than_a_slice_before_it_is_accepted(inbound: InboundBuffer) -> None:
    _read_all(inbound, b"POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000)
    [incoming] = inbound.queue
    assert not inbound.has_room
    assert incoming.received_bytes < 33_000
    assert inbound.unaccepted_bytes > 100_000
    incoming.accepted = True
    _read_all(inbound, b"")
    assert incoming.complete
    assert inbound.has_room


async def test_memory_of_heads_is_counted_with_what_a_field_costs(inbound: InboundBuffer) -> None:
    fields = b"".join(b"%d:\r\n" % number for number in range(50))
    _read_all(inbound, b"GET /t HTTP/1.1\r\nHost: a\r\n" + fields)
    half_bytes = inbound.held_bytes
    assert half_bytes > 50 * 200, "far more than the bytes of the wire"
    _read_all(inbound, b"\r\n" + HEAD * 3 + HEAD[:10])
    assert inbound.held_bytes > half_bytes
    inbound.queue.clear()
    assert inbound.held_bytes < 1000


async def test_a_body_in_small_fragments_takes_hardly_more_memory_than_its_bytes(inbound: InboundBuffer) -> None:
    charge_fragments, part = 100_000, b"2\r\nab\r\n"
    _read_all(inbound, b"POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + part)
    inbound.queue[0].accepted = True
    tracemalloc.start()
    try:
        for _ in range(charge_fragments // 1000):
            _read_all(inbound, part * 1000)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 2 * 2 * charge_fragments
    _read_all(inbound, b"3\r\nend\r\n" + b"%x\r\n" % 5000 + b"x" * 5000 + b"\r\n0\r\n\r\n")
    [incoming] = inbound.queue
    assert incoming.take() == b"ab" * (charge_fragments + 1) + b"end" + b"x" * 5000
