"""Every wait for a client has an end. Time passes only when these tests say so."""

import asyncio

import pytest

from lazulite.protocol.message import Request
from lazulite.server.http import timeouts
from lazulite.server.http.timeouts import Sweeper
from lazulite.server.limits import Limits
from tests.server.wire import Wire, settle

from .test_connection import GET, HOST, statuses

LIMITS = Limits()
PUT = b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n"


async def test_the_sweeper_ticks_until_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class TimedConnection:
        deadline_s = 5.0
        expired_count = 0

        def __init__(self) -> None:
            self.thrice = asyncio.Event()

        def on_timeout(self) -> None:
            self.expired_count += 1
            if self.expired_count == 3:
                self.thrice.set()
                sweeper.stop()

    monkeypatch.setattr(timeouts, "TICK_SECONDS", 0)
    due, later = TimedConnection(), TimedConnection()
    later.deadline_s = 5.1
    sweeper = Sweeper([due, later], lambda: 5.0)
    sweeper.stop()
    sweeper.start()
    await due.thrice.wait()
    await settle()
    assert (due.expired_count, later.expired_count) == (3, 0)


async def test_an_idle_connection_is_closed(wire: Wire) -> None:
    await wire.send(GET)
    await wire.wait(LIMITS.keep_alive_idle_seconds - 1)
    assert not wire.transport.closed
    await wire.wait(1)
    assert wire.transport.closed
    assert statuses(wire.transport.written) == [200]
    assert not wire.state.connections


async def test_a_connection_that_never_speaks_is_closed(wire: Wire) -> None:
    await wire.wait(LIMITS.keep_alive_idle_seconds)
    assert wire.transport.closed


async def test_each_request_starts_the_idle_time_anew(wire: Wire) -> None:
    for _ in range(3):
        await wire.wait(LIMITS.keep_alive_idle_seconds - 1)
        await wire.send(GET)
    assert not wire.transport.closed


async def test_a_slow_head(wire: Wire) -> None:
    await wire.send(b"GET / HT")
    await wire.wait(LIMITS.header_read_seconds - 1)
    assert not wire.transport.eof
    await wire.wait(1)
    assert statuses(wire.transport.written) == [408]
    assert wire.transport.eof


async def test_dripping_bytes_does_not_lengthen_the_time_for_a_head(wire: Wire) -> None:
    await wire.send(b"GET / HTTP/1.1\r\nX: ")
    for _ in range(int(LIMITS.header_read_seconds)):
        await wire.send(b"x")
        await wire.wait(1)
    assert statuses(wire.transport.written) == [408]


@pytest.mark.parametrize("length", [100, 9_000_000])
async def test_a_body_that_comes_too_slowly(wire: Wire, length: int) -> None:
    """After the seconds that every body has, 1 KiB has to come each second; also of one that is rejected."""
    await wire.send(PUT.replace(b"100", b"%d" % length))
    answered = [413] if length > LIMITS.body_bytes else []
    for _ in range(int(LIMITS.slow_body_seconds)):
        assert statuses(wire.transport.written) == answered
        await wire.send(b"x")
        await wire.wait(1)
    await wire.wait(1)
    assert statuses(wire.transport.written) == (answered or [408])
    assert wire.transport.eof or wire.transport.closed
    assert not wire.service.requests


async def test_a_body_that_comes_just_fast_enough_may_take_as_long_as_it_takes(wire: Wire) -> None:
    await wire.send(PUT.replace(b"100", b"%d" % (1024 * 300)))
    for _ in range(300):
        assert not wire.transport.written
        await wire.send(b"x" * 1024)
        await wire.wait(1)
    assert statuses(wire.transport.written) == [200]


async def test_a_body_that_stops_is_given_up_however_much_has_come(wire: Wire) -> None:
    await wire.send(PUT.replace(b"100", b"1000000") + b"x" * 999_999)
    await wire.wait(1)
    await wire.wait(LIMITS.body_stall_seconds - 1)
    assert not wire.transport.written
    await wire.wait(1)
    assert statuses(wire.transport.written) == [408]
    assert wire.transport.eof


@pytest.mark.parametrize("length", [100, 9_000_000])
async def test_a_second_slow_body_has_its_own_time(wire: Wire, length: int) -> None:
    await wire.send(PUT.replace(b"100", b"%d" % length))
    await wire.wait(LIMITS.slow_body_seconds - 1)
    await wire.send(b"x" * length + PUT)
    await wire.wait(LIMITS.slow_body_seconds - 1)
    assert statuses(await wire.send(b"x" * 100))[1:] == [200]


async def test_a_rejected_body_that_never_ends(wire: Wire) -> None:
    await wire.send(PUT.replace(b"100", b"%d" % (LIMITS.body_bytes + 1)))
    await wire.wait(LIMITS.slow_body_seconds + 1)
    assert statuses(wire.transport.written) == [413]
    assert wire.transport.closed


async def test_the_time_of_a_request_begins_with_the_end_of_its_body(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    await wire.send(PUT)
    await wire.wait(LIMITS.slow_body_seconds - 1)
    await wire.send(b"x" * 100)
    await wire.wait(LIMITS.request_seconds - 1)
    assert not wire.transport.written
    await wire.wait(1)
    assert statuses(wire.transport.written) == [500]
    assert wire.log.exchanges[0].elapsed_ms == LIMITS.request_seconds * 1000
    gate.set()
    await settle()


@pytest.mark.parametrize("client_stays", [False, True])
async def test_a_slow_service_is_answered_for_but_not_cut_short(wire: Wire, client_stays: bool) -> None:
    gate = asyncio.Event()
    done: list[str] = []

    async def before(request: Request) -> None:
        await gate.wait()
        done.append(request.id)

    wire.service.before = before
    await wire.send(GET)
    await wire.wait(LIMITS.request_seconds - 1)
    await wire.send(b"GET /pipelined HTTP/1.1\r\n")
    assert not wire.transport.written
    await wire.wait(1)
    assert statuses(wire.transport.written) == [500]
    assert b"OperationTimedOut" in wire.transport.written
    assert wire.transport.eof
    if client_stays:
        gate.set()
    wire.transport.abort()
    await settle()
    assert len(wire.state.connections) == (not client_stays), "counted while its request runs"
    gate.set()
    await settle()
    assert done == ["id-1"]
    assert len(wire.log.exchanges) == 1
    assert statuses(wire.transport.written) == [500], "the late response is dropped"
    assert not wire.state.connections


async def test_a_client_that_never_reads_is_disconnected(wire: Wire) -> None:
    wire.service.body = b"x" * 400_000
    wire.transport.stalled = True
    await wire.send(GET)
    await wire.wait(LIMITS.write_stall_seconds - 1)
    assert not wire.transport.aborted
    await wire.wait(1)
    assert wire.transport.aborted


async def test_a_client_that_reads_slowly_is_served(wire: Wire) -> None:
    wire.service.body = b"x" * 400_000
    wire.transport.stalled = True
    await wire.send(GET)
    for _ in range(5):
        wire.transport.take(50_000)
        await wire.wait(LIMITS.write_stall_seconds)
    assert not wire.transport.aborted
    await wire.wait(LIMITS.write_stall_seconds)
    assert wire.transport.aborted


async def test_a_closing_connection_does_not_wait_for_a_reader_for_ever(wire: Wire) -> None:
    wire.transport.stalled = True
    await wire.send(b"GET / HTTP/1.0\r\n\r\n")
    assert wire.transport.closed
    assert wire.state.connections
    await wire.wait(LIMITS.linger_seconds)
    assert wire.transport.aborted
    assert not wire.state.connections


async def test_a_rejected_sender_is_listened_to_for_a_while(wire: Wire) -> None:
    await wire.send(b"bad\r\n\r\n")
    assert wire.transport.eof
    await wire.wait(LIMITS.linger_seconds - 1)
    await wire.send(b"more")
    assert not wire.transport.closed
    await wire.wait(1)
    assert wire.transport.closed
    assert not wire.state.connections


@pytest.mark.parametrize("begun", [b"", b"GET / HT", PUT + b"x"])
async def test_draining_finishes_what_has_begun(wire: Wire, begun: bytes) -> None:
    await wire.send(begun or GET)
    wire.state.stopping = wire.state.draining = True
    wire.transport.protocol.begin_drain()  # type: ignore[attr-defined]  # a Connection
    assert wire.transport.closed is not bool(begun)
    if begun:
        rest = b"TP/1.1\r\n" + HOST + b"\r\n" if begun.endswith(b"HT") else b"x" * 99
        assert b"Connection: close" in await wire.send(rest)
        assert wire.transport.closed


@pytest.mark.parametrize("age", [0, 0.9, 1])
async def test_a_drain_waits_for_the_first_request_of_a_new_connection(age: float, wire: Wire) -> None:
    await wire.wait(age)
    wire.state.stopping = wire.state.draining = True
    wire.transport.protocol.begin_drain()  # type: ignore[attr-defined]  # a Connection
    assert wire.transport.closed is (age == LIMITS.first_request_seconds)
    if not wire.transport.closed:
        assert b"Connection: close" in await wire.send(GET)
        assert wire.transport.closed


async def test_a_drain_does_not_wait_long_for_a_first_request(wire: Wire) -> None:
    wire.state.stopping = wire.state.draining = True
    wire.transport.protocol.begin_drain()  # type: ignore[attr-defined]  # a Connection
    await wire.wait(LIMITS.first_request_seconds)
    assert wire.transport.closed
    assert wire.transport.written == b""


async def test_a_server_that_leaves_ends_connections_with_their_next_answer_and_not_before(wire: Wire) -> None:
    await wire.send(GET)
    wire.state.stopping = True
    await wire.wait(LIMITS.keep_alive_idle_seconds - 1)
    assert not wire.transport.closed
    assert b"Connection: close" in await wire.send(GET)
    assert wire.transport.closed


async def test_a_request_that_is_abandoned_before_it_began_leaves_nothing_behind(wire: Wire) -> None:
    connection = wire.transport.protocol
    connection.data_received(PUT + b"x" * 100)  # Its task is made, and has not run.
    task = connection.abandon()  # type: ignore[attr-defined]  # a Connection
    await asyncio.gather(task, return_exceptions=True)
    await settle()
    assert not wire.state.connections
    assert wire.state.budgets.buffered_bytes == 0


async def test_a_drain_leaves_a_slow_reader_the_time_that_others_have(wire: Wire) -> None:
    wire.transport.stalled = True
    wire.state.draining = True
    await wire.send(GET)
    assert wire.transport.closed
    await wire.wait(LIMITS.tls_close_seconds)
    assert not wire.transport.aborted
    await wire.wait(LIMITS.linger_seconds)
    assert wire.transport.aborted
    assert not wire.state.connections
