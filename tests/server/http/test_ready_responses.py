"""Requests whose response is ready have no task; nothing else differs."""

import asyncio

import pytest

from lazulite.protocol.message import Request, Response
from lazulite.server.admission.scheduler import SLICE_SECONDS, FairScheduler
from tests.server.wire import Clock, Wire, settle

from .test_connection import GET, statuses

POST = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"


def respond(request: Request) -> Response:
    request.authenticated = True
    return Response(200, [("X-Id", request.id)], b"at once")


async def test_a_ready_response_needs_no_iteration_of_the_loop(wire: Wire) -> None:
    wire.service.now = respond
    wire.transport.protocol.data_received(GET)
    assert wire.log.exchanges[0].response.body == b"at once"
    assert wire.log.exchanges[0].bytes_out > len(b"at once")
    await settle()
    assert wire.transport.written.endswith(b"at once")
    assert not wire.service.requests


async def test_a_response_that_waits_is_awaited(wire: Wire) -> None:
    wire.service.now = lambda _: None
    assert (await wire.send(GET)).startswith(b"HTTP/1.1 200")
    assert len(wire.service.requests) == 1


async def test_a_ready_response_keeps_the_order(wire: Wire) -> None:
    gate = asyncio.Event()

    async def before(_: Request) -> None:
        await gate.wait()

    wire.service.before = before
    wire.service.now = lambda request: respond(request) if request.method == "GET" else None
    assert await wire.send(POST + GET) == b""
    gate.set()
    await settle()
    assert [exchange.request.method for exchange in wire.log.exchanges] == ["POST", "GET"]


async def test_a_request_whose_body_is_incomplete_gets_its_response_from_a_task(wire: Wire) -> None:
    wire.service.now = respond
    wire.transport.protocol.data_received(POST[:-1])
    assert not wire.log.exchanges
    await settle()
    assert len(wire.log.exchanges) == 1
    assert statuses(await wire.send(POST[-1:] + GET)) == [200, 200]


async def test_responses_in_one_go_are_bounded(wire: Wire) -> None:
    wire.service.now = respond
    wire.transport.protocol.data_received(GET * 100)
    assert 1 <= len(wire.log.exchanges) < 50
    for _ in range(10):
        await settle()
    assert len(wire.log.exchanges) == 100


async def test_a_failure_before_a_response_is_logged_and_responded_to(wire: Wire) -> None:
    def fail(_: Request) -> Response:
        raise RuntimeError("defect")

    wire.service.now = fail
    assert statuses(await wire.send(GET + GET)) == [500, 500]
    assert [str(failure) for _, failure in wire.log.failures] == ["defect", "defect"]


async def test_no_memory_for_a_ready_response_ends_the_connection(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        raise MemoryError

    wire.service.now = respond
    monkeypatch.setattr("lazulite.server.http.outbound.OutboundStream.write", write)
    await wire.send(GET)
    assert wire.transport.aborted
    assert not wire.state.connections


async def test_good_credentials_of_a_ready_response_count_for_the_connection(wire: Wire) -> None:
    wire.service.now = lambda request: Response(403) if request.path == "/bad" else respond(request)
    await wire.send(GET.replace(b"/t?x=%27y", b"/bad"))
    assert not wire.transport.protocol.memory.is_authenticated  # type: ignore[attr-defined]
    await wire.send(GET)
    assert wire.transport.protocol.memory.is_authenticated  # type: ignore[attr-defined]


@pytest.mark.parametrize(("worked_s", "waits"), [(2 * SLICE_SECONDS, True), (SLICE_SECONDS / 4, False)])
async def test_processor_time_of_a_ready_response_is_charged_and_other_time_is_not(
    wire: Wire, worked_s: float, waits: bool
) -> None:
    work = Clock()
    wire.state.scheduler = FairScheduler(work, wire.clock, wire.clock)
    work.now_s += 100  # Since the scheduler looked at this clock last.

    def slow(request: Request) -> Response:
        wire.clock.now_s += 3 * SLICE_SECONDS
        work.now_s += worked_s
        return respond(request)

    wire.service.now = slow
    wire.transport.protocol.data_received(GET)
    assert wire.transport.protocol.gate.waits is waits  # type: ignore[attr-defined]


async def test_long_work_that_led_to_no_ready_response_is_charged(wire: Wire) -> None:
    work = Clock()
    wire.state.scheduler = FairScheduler(work, wire.clock, wire.clock)

    def slow(_: Request) -> None:
        wire.clock.now_s += 2 * SLICE_SECONDS
        work.now_s += 2 * SLICE_SECONDS

    wire.service.now = slow
    await wire.send(GET)
    wire.transport.protocol.data_received(GET)
    assert wire.transport.protocol.gate.waits  # type: ignore[attr-defined]


async def test_the_last_ready_response_of_a_drain_closes(wire: Wire) -> None:
    wire.service.now = respond
    wire.state.stopping = True
    assert b"Connection: close" in await wire.send(GET)
    assert wire.transport.closed or wire.transport.eof
