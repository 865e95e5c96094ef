"""What a client without credentials can make the server hold: bounded over all, and the oldest gives way."""

import asyncio

import pytest

from lazulite.protocol.message import Request
from tests.server.wire import Transport, Wire, settle

from .test_connection import CONTINUE, GET, HOST, statuses

GOOD = b"Authorization: good\r\n"


def put(length: int, *, fields: bytes = b"") -> bytes:
    return b"PUT / HTTP/1.1\r\n" + HOST + fields + b"Content-Length: %d\r\n\r\n" % length


@pytest.fixture(name="guarded")
def _guarded(wire: Wire) -> Wire:
    async def authenticates(request: Request) -> bool:
        return request.headers.get("authorization") == "good"

    wire.service.authenticates = authenticates
    return wire


@pytest.fixture(name="hesitant")
def _hesitant(wire: Wire) -> Wire:
    """A service whose look at the credentials does not come to an end."""

    async def authenticates(_: Request) -> bool:
        await asyncio.Event().wait()
        return True

    wire.service.authenticates = authenticates
    return wire


async def test_credentials_are_checked_before_the_body_comes(guarded: Wire) -> None:
    output = await guarded.send(put(4_000_000) + b"x" * 10)
    assert statuses(output) == [403]
    assert b"Connection: close" not in output
    assert guarded.state.budgets.buffered_bytes == 0


async def test_a_rejected_body_is_read_and_dropped_so_that_the_next_request_is_found(guarded: Wire) -> None:
    rejected: list[Request] = []
    authenticates = guarded.service.authenticates
    assert authenticates is not None

    async def noted(request: Request) -> bool:
        rejected.append(request)
        return await authenticates(request)

    guarded.service.authenticates = noted
    await guarded.send(put(100_000) + b"x" * 10)
    await guarded.send(b"x" * 50_000)
    assert guarded.state.budgets.buffered_bytes == 0
    assert statuses(await guarded.send(b"x" * 49_990 + GET.replace(HOST, HOST + GOOD))) == [403, 200]
    assert rejected[0].body == b"", "also what had come before the rejection"


async def test_a_sender_that_waits_for_100_is_rejected_without_and_the_connection_ends(guarded: Wire) -> None:
    expect = b"Expect: 100-continue\r\n"
    output = await guarded.send(put(5, fields=expect))
    assert statuses(output) == [403]
    assert b"Connection: close" in output
    welcome = guarded.connect()
    assert await guarded.send(put(5, fields=expect + GOOD), welcome) == CONTINUE
    assert statuses(await guarded.send(b"hello", welcome)) == [100, 200]


async def test_bodies_without_credentials_do_not_keep_others_out(guarded: Wire) -> None:
    """65 connections, each with a head and 4 MiB less a byte, cost 54 s of writes before."""
    guarded.limit(buffered_bytes=8_000_000)
    for _ in range(65):
        await guarded.send(put(4_194_304) + b"x" * 200_000, guarded.connect())
    assert guarded.state.budgets.buffered_bytes == 0
    assert statuses(await guarded.send(put(5, fields=GOOD) + b"hello")) == [200]


async def test_bodies_before_their_credentials_are_checked_are_bounded_and_the_oldest_goes(hesitant: Wire) -> None:
    hesitant.limit(unaccepted_body_bytes=100_000)
    clients = [hesitant.connect() for _ in range(5)]
    for client in clients:
        await hesitant.send(put(4_000_000) + b"x" * 30_000, client)
    assert [client.aborted for client in clients] == [True, True, False, False, False]
    assert hesitant.state.unaccepted.held_bytes == 90_000


async def test_a_body_behind_a_running_request_is_not_read_on_before_its_turn(guarded: Wire) -> None:
    """Also of a client that has shown good credentials before."""
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    guarded.service.before = before
    await guarded.send(GET.replace(HOST, HOST + GOOD) + put(4_000_000) + b"x" * 200_000)
    for _ in range(20):
        if not guarded.transport.reading_paused:
            await guarded.send(b"x" * 100_000)
    assert guarded.transport.reading_paused
    assert guarded.state.unaccepted.held_bytes < 500_000
    gate.set()
    await settle()
    assert statuses(guarded.transport.written) == [200, 403]


async def _send_half_heads(wire: Wire, count: int, fields: bytes) -> list[Transport]:
    clients = [wire.connect() for _ in range(count)]
    for client in clients:
        await wire.send(b"GET /t HTTP/1.1\r\n" + fields, client)
    return clients


async def test_half_sent_heads_are_bounded_over_all_and_the_oldest_goes(guarded: Wire) -> None:
    guarded.limit(unauthenticated_bytes=200_000)
    clients = await _send_half_heads(guarded, 5, b"X: " + b"y" * 59_000)
    assert [client.aborted for client in clients] == [True, True, False, False, False]
    assert guarded.state.unauthenticated.held_bytes < 200_000
    assert statuses(await guarded.send(b"\r\n" + HOST + GOOD + b"\r\n", clients[4])) == [200]


async def test_many_small_fields_count_for_what_they_take(guarded: Wire) -> None:
    guarded.limit(unauthenticated_bytes=100_000)
    clients = await _send_half_heads(guarded, 5, b"".join(b"%d:\r\n" % number for number in range(95)))
    assert clients[0].aborted
    assert not clients[4].aborted


async def test_pipelined_heads_behind_an_unread_answer_are_bounded(guarded: Wire) -> None:
    guarded.limit(unauthenticated_bytes=300_000)
    clients = [guarded.connect() for _ in range(5)]
    for client in clients:
        client.stalled = True
        await guarded.send(GET, client)
        await guarded.send(GET.replace(HOST, HOST + b"X: " + b"y" * 50_000 + b"\r\n") * 2, client)
    assert [client.aborted for client in clients] == [True, True, True, False, False]


async def test_answers_that_are_not_read_are_bounded(guarded: Wire) -> None:
    guarded.limit(unauthenticated_bytes=10_000)
    clients = [guarded.connect() for _ in range(5)]
    for client in clients:
        client.stalled = True
        for _ in range(10):
            await guarded.send(GET, client)
    assert [client.aborted for client in clients] == [True, True, True, False, False]
    assert guarded.state.unauthenticated.held_bytes <= 10_000


async def test_an_old_connection_that_has_read_its_answers_meanwhile_stays(guarded: Wire) -> None:
    guarded.limit(unauthenticated_bytes=10_000)
    reads, does_not, newest = guarded.connect(), guarded.connect(), guarded.connect()
    for client in (reads, does_not):
        client.stalled = True
        for _ in range(8):
            await guarded.send(GET, client)
    assert guarded.state.unauthenticated.held_bytes > 8000
    reads.stalled = False
    reads.take(reads.waiting_bytes)
    await settle()
    await guarded.send(b"GET /t HTTP/1.1\r\nX: " + b"y" * 6000, newest)
    assert not reads.aborted
    assert not reads.closed
    assert does_not.aborted


async def test_a_connection_that_has_shown_credentials_does_not_count(guarded: Wire) -> None:
    guarded.limit(unauthenticated_bytes=1000)
    await guarded.send(GET.replace(HOST, HOST + GOOD))
    await guarded.send(b"GET /t HTTP/1.1\r\nX: " + b"y" * 50_000)
    assert guarded.state.unauthenticated.held_bytes == 0
    assert statuses(await guarded.send(b"\r\n" + HOST + GOOD + b"\r\n")) == [200, 200]


async def test_a_connection_whose_first_request_is_at_work_has_shown_its_credentials(guarded: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    guarded.service.before = before
    guarded.limit(unauthenticated_bytes=1000)
    await guarded.send(GET.replace(HOST, HOST + GOOD))
    await guarded.send(b"GET /t HTTP/1.1\r\nX: " + b"y" * 50_000)
    assert guarded.state.unauthenticated.held_bytes == 0
    gate.set()
    await settle()
    assert statuses(guarded.transport.written) == [200]


async def test_a_burst_of_good_clients_is_served(guarded: Wire) -> None:
    """Their credentials are looked at before anything is evicted, also of all that one loop iteration has read."""
    guarded.limit(unaccepted_body_bytes=100_000, unauthenticated_bytes=200_000)
    clients = [guarded.connect() for _ in range(40)]
    body = b"x" * 15_000
    for client in clients:
        client.protocol.data_received(put(len(body), fields=GOOD) + body)
    await settle()
    assert [statuses(client.written) for client in clients] == [[200]] * 40


async def test_requests_that_wait_for_room_make_no_room_for_strangers(guarded: Wire) -> None:
    guarded.limit(buffered_bytes=1_000_000, unaccepted_body_bytes=50_000, unauthenticated_bytes=300_000)
    await guarded.send(put(1_000_000, fields=GOOD) + b"x")
    waiting = [guarded.connect() for _ in range(10)]
    for client in waiting:
        await guarded.send(put(500_000, fields=GOOD) + b"x" * 20_000, client)
    await _send_half_heads(guarded, 20, b"X: " + b"y" * 60_000)
    assert not any(client.aborted or client.written for client in waiting)


async def test_clients_that_leave_while_their_credentials_are_looked_at_leave_nothing(hesitant: Wire) -> None:
    clients = [hesitant.connect() for _ in range(10)]
    for client in clients:
        await hesitant.send(put(20_000, fields=b"X: " + b"y" * 60_000 + b"\r\n") + b"x" * 20_000, client)
    assert hesitant.state.unauthenticated.held_bytes > 10 * 80_000
    for client in clients:
        client.abort()
    await settle()
    assert hesitant.state.unauthenticated.held_bytes == hesitant.state.unaccepted.held_bytes == 0
    assert len(hesitant.state.connections) == 1, "only the first is open"


async def test_a_request_that_is_evicted_is_not_carried_out(wire: Wire) -> None:
    checked = asyncio.Event()

    async def authenticates(_: Request) -> bool:
        await checked.wait()
        return True

    wire.service.authenticates = authenticates
    wire.limit(unaccepted_body_bytes=50_000)
    clients = [wire.connect() for _ in range(3)]
    for client in clients:
        await wire.send(put(20_000) + b"x" * 20_000, client)
    checked.set()
    await settle()
    assert [client.aborted for client in clients] == [True, False, False]
    assert len(wire.service.requests) == 2


async def test_tls_counts_for_what_it_holds(guarded: Wire) -> None:
    guarded.limit(unauthenticated_bytes=1_000_000)
    clients = [guarded.connect("https") for _ in range(40)]
    assert [client.closed for client in clients].count(True) == 6, "an idle one takes 28 KiB"
    assert not clients[-1].closed
    await guarded.send(put(200_000) + b"x" * 200_000, clients[-1])
    assert guarded.state.unauthenticated.held_bytes > 400_000
    await guarded.send(GET.replace(HOST, HOST + GOOD), clients[-1])
    assert guarded.state.unauthenticated.held_bytes < 1_000_000 - 400_000


@pytest.mark.parametrize("how", ["abort", "eof"])
async def test_nothing_is_counted_of_a_client_that_has_left(guarded: Wire, how: str) -> None:
    [client] = await _send_half_heads(guarded, 1, b"X: " + b"y" * 5000)
    assert guarded.state.unauthenticated.held_bytes > 5000
    if how == "abort":
        client.abort()
    else:
        client.protocol.eof_received()
    await settle()
    assert guarded.state.unauthenticated.held_bytes == 0
