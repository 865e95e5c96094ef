"""What costs a connection something and what does not, and which connections wait for the scheduler."""

import asyncio
from collections.abc import Callable
from itertools import count

import pytest

from lazulite.protocol.message import Request
from lazulite.server.admission.accounts import CarriedOverCost, CostAccount
from lazulite.server.admission.scheduler import SLICE_SECONDS, CpuMeter, FairScheduler
from lazulite.server.http.connection import Connection
from tests.server.http.test_connection import GET, HOST, statuses
from tests.server.wire import Clock, Wire, settle

from .test_scheduler import HandClock

BULK_BYTES = 16 * 1024
GOOD = [200, 201, 202, 204, 304, 404, 406, 409, 412, 500, 503]
UNWELCOME = [400, 401, 403, 405, 411, 413, 414, 415, 431, 501]

BODY = b"a" * (4 << 20)
POST = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(BODY)
ENOUGH = 100


def meter(total_s: float = 0.0, unsettled_s: float = 0.0) -> CpuMeter:
    read = CpuMeter()
    read.total_s, read.unsettled_s = total_s, unsettled_s
    return read


def test_input_costs_by_its_size_when_it_comes_in_bulk() -> None:
    account = CostAccount()
    for _ in range(1000):
        account.read(BULK_BYTES - 1)
    assert account.seconds == 0.0
    account.read(BULK_BYTES)
    once = account.seconds
    account.read(3 * BULK_BYTES)
    assert account.seconds == pytest.approx(4 * once)
    assert once > 0


def test_rejections_cost() -> None:
    account = CostAccount()
    account.rejected()
    assert 0 < account.seconds < SLICE_SECONDS


@pytest.mark.parametrize("status", GOOD)
def test_short_good_answers_cost_nothing(status: int) -> None:
    account = CostAccount()
    assert account.answered("GET", status, 10 * BULK_BYTES, meter(SLICE_SECONDS / 2, SLICE_SECONDS / 2))
    assert account.seconds == 0.0


@pytest.mark.parametrize(
    ("method", "status", "total_s"),
    [*(("GET", status, 0.0) for status in UNWELCOME), ("OPTIONS", 200, 0.0), ("GET", 200, SLICE_SECONDS)],
)
def test_other_responses_cost_their_unsettled_time_and_their_framing(method: str, status: int, total_s: float) -> None:
    account = CostAccount()
    assert not account.answered(method, status, 0, meter(total_s, 0.0))
    framing = account.seconds
    assert framing > 0
    assert not account.answered(method, status, 0, meter(total_s, 0.25))
    assert account.seconds == pytest.approx(2 * framing + 0.25)


def test_a_large_answer_is_no_short_one_however_fast_it_was() -> None:
    account = CostAccount()
    assert not account.answered("GET", 200, 20 * BULK_BYTES, meter(SLICE_SECONDS / 2, SLICE_SECONDS / 2))
    assert account.seconds > SLICE_SECONDS / 2


def test_sending_costs_by_size() -> None:
    account, sent, received = CostAccount(), CostAccount(), CostAccount()
    for one, size in ((account, 0), (sent, 10 * BULK_BYTES)):
        assert not one.answered("GET", 200, size, meter(SLICE_SECONDS, 0.0))
    received.read(10 * BULK_BYTES)
    assert sent.seconds - account.seconds == pytest.approx(received.seconds)


def test_long_work_that_led_to_no_response_at_once_costs() -> None:
    account = CostAccount()
    account.tried(meter(0.2e-3))
    assert account.seconds == 0
    account.tried(meter(0.5e-3))
    assert account.seconds == 0.5e-3


def test_settled_cost_is_charged_once() -> None:
    account = CostAccount()
    account.rejected()
    owed = account.seconds
    assert account.settle() == owed > 0
    assert account.settle() == 0.0


def test_a_closed_connection_leaves_its_unsettled_cost() -> None:
    account = CostAccount()
    assert account.left(meter(total_s=0.5)) == 0.0, "what was answered and good"
    account.rejected()
    once = account.left(meter())
    assert once > 0
    assert account.seconds == 0.0
    abandoned = meter(total_s=0.5)
    abandoned.waits = True
    assert account.left(abandoned) > 0.5


def test_less_than_a_slice_is_for_the_next_connection_and_more_for_many() -> None:
    carried_over = CarriedOverCost(lambda: 0.0)
    assert not carried_over.exceeds_slice()
    assert carried_over.take_over() == 0.0
    carried_over.leave(SLICE_SECONDS / 2)
    assert not carried_over.exceeds_slice()
    assert carried_over.take_over() == SLICE_SECONDS / 2
    carried_over.leave(2.5 * SLICE_SECONDS)
    assert carried_over.exceeds_slice()
    assert [carried_over.take_over() for _ in range(4)] == pytest.approx(
        [SLICE_SECONDS, SLICE_SECONDS, SLICE_SECONDS / 2, 0.0]
    )


def test_carried_over_cost_is_forgotten_after_a_second() -> None:
    clock = HandClock()
    carried_over = CarriedOverCost(clock)
    for clock.now_s in (0.0, 0.9, 1.8):
        carried_over.leave(2 * SLICE_SECONDS)
        assert carried_over.exceeds_slice()
    clock.now_s = 2.7
    carried_over.leave(0.0)
    assert carried_over.exceeds_slice()
    clock.now_s = 2.8
    assert not carried_over.exceeds_slice()
    assert carried_over.take_over() == 0.0


class Gate(FairScheduler):
    """A scheduler that admits no work until it is asked to."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(clock, clock)
        self.waiting: list[Callable[[], bool]] = []
        self.owed_s = 0.0

    def enter(self, go: Callable[[], bool], *, slices: int | None = None) -> None:
        self.waiting.append(go)

    def charge(self, seconds: float) -> None:
        self.owed_s += seconds

    async def let_on(self) -> bool:
        taken = self.waiting.pop(0)()
        await settle()
        return taken


@pytest.fixture(name="gate")
def _gate(wire: Wire) -> Gate:
    gate = Gate()
    wire.state.scheduler = gate
    return gate


async def _ask_until_held(wire: Wire, gate: Gate, request: bytes = GET) -> int:
    for asked in range(ENOUGH):
        if gate.waiting:
            return asked
        await wire.send(request)
    return ENOUGH


@pytest.mark.parametrize("status", [200, 201, 204, 304, 404, 409, 412, 500, 503])
async def test_what_good_clients_get_keeps_nobody_waiting(wire: Wire, gate: Gate, status: int) -> None:
    wire.service.status = status
    assert await _ask_until_held(wire, gate) == ENOUGH
    assert gate.short_request_count == ENOUGH


@pytest.mark.parametrize("status", [400, 401, 403, 413])
async def test_who_is_rejected_time_and_again_waits(wire: Wire, gate: Gate, status: int) -> None:
    wire.service.status = status
    asked = await _ask_until_held(wire, gate)
    assert 1 < asked < ENOUGH
    assert gate.short_request_count == 0
    assert gate.owed_s >= SLICE_SECONDS, "the scheduler is charged"
    assert wire.transport.reading_paused
    assert len(statuses(await wire.send(GET))) == asked, "answered so far, and no more"
    assert await gate.let_on()
    assert len(statuses(wire.transport.written)) == asked + 1
    assert not wire.transport.reading_paused


async def test_who_is_rejected_before_the_service_waits_too(wire: Wire, gate: Gate) -> None:
    assert 1 < await _ask_until_held(wire, gate, b"PURGE / HTTP/1.1\r\n" + HOST + b"\r\n") < ENOUGH
    assert wire.service.requests == []


async def test_what_is_thrown_away_after_a_rejection_waits(wire: Wire, gate: Gate) -> None:
    assert statuses(await wire.send(POST.replace(b"%d" % len(BODY), b"999999999"))) == [413]
    for _ in range(2):  # Some may have been read already.
        await wire.send(BODY)
        assert len(gate.waiting) == 1
    assert wire.transport.reading_paused
    await gate.let_on()
    assert not wire.transport.reading_paused
    await wire.send(BODY[:-1])
    assert len(gate.waiting) == 1


async def test_who_is_held_does_not_hold_others(wire: Wire, gate: Gate) -> None:
    wire.service.status = 403
    await _ask_until_held(wire, gate)
    other = wire.connect()
    assert statuses(await wire.send(GET, other)) == [403]


async def test_bulk_waits(wire: Wire, gate: Gate) -> None:
    await wire.send(POST + BODY)
    assert (len(gate.waiting), wire.service.requests) == (1, [])
    await gate.let_on()
    assert [len(request.body) for request in wire.service.requests] == [len(BODY)]


@pytest.mark.parametrize(("late_s", "status"), [(-1, 200), (1, 408)])
async def test_no_deadline_comes_nearer_while_the_server_keeps_a_client_waiting(
    wire: Wire, gate: Gate, late_s: int, status: int
) -> None:
    await wire.send(POST + BODY[:100])
    await wire.wait(10)
    await wire.send(BODY[100:-1])
    await wire.wait(1000)
    assert (len(gate.waiting), wire.transport.written) == (1, b"")
    await gate.let_on()
    await wire.wait(1)
    await wire.wait(wire.state.limits.body_stall_seconds - 1 + late_s)
    assert statuses(await wire.send(b"a")) == [status]


async def test_who_leaves_while_it_is_held_is_passed_over(wire: Wire, gate: Gate) -> None:
    wire.service.status = 403
    await _ask_until_held(wire, gate)
    wire.transport.abort()
    await settle()
    assert not await gate.let_on()
    assert not wire.state.connections


def _gate_of_slow_requests(wire: Wire) -> Gate:
    """Return the gate of a service whose requests take a second before they pause, and one after it."""
    clock = Clock()
    wire.state.scheduler = gate = Gate(clock)

    async def slow(_: Request) -> None:
        clock.now_s += 1
        await asyncio.sleep(0)
        clock.now_s += 1

    wire.service.before = slow
    return gate


@pytest.mark.parametrize(("method", "ends"), [("GET", True), ("HEAD", True), ("PUT", False), ("DELETE", False)])
async def test_a_scheduled_query_ends_with_its_client_and_a_write_does_not(wire: Wire, method: str, ends: bool) -> None:
    gate = _gate_of_slow_requests(wire)
    await wire.send(f"{method} / HTTP/1.1\r\n".encode() + HOST + b"Content-Length: 0\r\n\r\n")
    assert len(gate.waiting) == 1
    wire.transport.abort()
    await settle()
    assert (not wire.state.connections) is ends
    assert await gate.let_on() is not ends
    assert not wire.state.connections


async def test_a_slow_request_is_answered_and_makes_the_next_one_wait(wire: Wire) -> None:
    gate = _gate_of_slow_requests(wire)
    assert await wire.send(GET) == b""
    await gate.let_on()
    assert statuses(wire.transport.written) == [200]
    assert statuses(await wire.send(GET)) == [200]
    await gate.let_on()
    await gate.let_on()
    assert statuses(wire.transport.written) == [200, 200]


async def test_what_a_request_took_is_not_charged_to_the_next_one(wire: Wire) -> None:
    clock = HandClock()
    wire.state.scheduler = gate = Gate(clock)

    async def work(request: Request) -> None:
        clock.now_s += 0.0 if request.method == "HEAD" else SLICE_SECONDS

    wire.service.before = work
    await wire.send(GET)
    assert (len(gate.waiting), gate.short_request_count) == (1, 0)
    await gate.let_on()
    await wire.send(GET.replace(b"GET", b"HEAD"))
    assert (len(gate.waiting), gate.short_request_count) == (0, 1)


async def test_coming_anew_for_each_request_is_no_way_around_the_lane(wire: Wire, gate: Gate) -> None:
    wire.service.status = 403
    comings = count(1)
    while next(comings) < ENOUGH:
        newest = wire.connect()
        said = await wire.send(GET, newest)
        if gate.waiting:
            break
        assert statuses(said) == [403]
        newest.close()
        await settle()
    assert 2 < next(comings) < ENOUGH
    assert said == b"", "not even looked at"
    assert await gate.let_on()
    assert statuses(newest.written) == [403]
    wire.service.status = 200
    assert statuses(await wire.send(GET, wire.connect())) == [200], "others need not wait for that"


def _work_slowly(wire: Wire, gate: Gate) -> None:
    """Have each request take two iterations of the loop before it gives way."""

    async def work(_: Request) -> None:
        wire.clock.now_s += 2 * SLICE_SECONDS
        await asyncio.sleep(0)

    gate.clock = wire.clock
    gate._work_clock = wire.clock
    wire.service.before = work


async def test_who_leaves_while_slow_work_waits_leaves_its_price(wire: Wire, gate: Gate) -> None:
    _work_slowly(wire, gate)
    gone = wire.connect()
    await wire.send(GET, gone)
    assert len(gate.waiting) == 1
    gone.close()
    await settle()
    wire.service.before = None
    newest = wire.connect()
    assert await wire.send(GET, newest) == b""
    gate.waiting.pop(0)
    assert await gate.let_on()
    assert statuses(newest.written) == [200]


async def test_who_leaves_before_slow_work_is_done_leaves_its_price(wire: Wire, gate: Gate) -> None:
    done = asyncio.Event()

    async def work(_: Request) -> None:
        wire.clock.now_s += 2 * SLICE_SECONDS
        await done.wait()

    gate.clock = wire.clock
    gate._work_clock = wire.clock
    wire.service.before = work
    gone = wire.connect()
    await wire.send(GET, gone)
    gone.close()
    await settle()
    assert wire.state.carried_over.seconds < SLICE_SECONDS
    done.set()
    await settle()
    assert wire.state.carried_over.seconds >= 2 * SLICE_SECONDS


async def _leave_after_slow_work(wire: Wire, gate: Gate, count: int) -> None:
    _work_slowly(wire, gate)
    those = [wire.connect() for _ in range(count)]
    for each in those:
        await wire.send(GET, each)
    for each in those:
        each.close()
    await settle()
    gate.waiting.clear()
    wire.service.before = None


async def test_nobody_goes_past_the_lane_while_much_is_owed_by_those_who_left(wire: Wire, gate: Gate) -> None:
    await _leave_after_slow_work(wire, gate, 1)
    newest_ones = [wire.connect() for _ in range(5)]
    assert [await wire.send(GET, each) for each in newest_ones] == [b""] * 5
    newest_ones[0].close()
    await settle()
    assert not await gate.let_on(), "it has gone, and takes over nothing"
    owed_s, left_s = gate.owed_s, wire.state.carried_over.seconds
    assert left_s >= 2 * SLICE_SECONDS
    assert await gate.let_on()
    assert statuses(newest_ones[1].written) == [200]
    assert gate.owed_s - owed_s == left_s - wire.state.carried_over.seconds == SLICE_SECONDS
    assert len(statuses(await wire.send(GET, newest_ones[1]))) == 2, "once is enough"
    while gate.waiting:
        assert await gate.let_on()
    assert all(statuses(each.written)[0] == 200 for each in newest_ones[1:])
    assert statuses(await wire.send(GET, wire.connect())) == [200], "all is paid"


async def test_carried_over_cost_lets_a_connection_be_read_from_once(wire: Wire, gate: Gate) -> None:
    await _leave_after_slow_work(wire, gate, 1)
    newest = wire.connect()
    assert await wire.send(GET, newest) == b""
    assert not newest.reading_paused, "else its end of file would not be seen"
    assert await wire.send(GET, newest) == b""
    assert newest.reading_paused
    assert await gate.let_on()
    assert statuses(newest.written) == [200, 200]
    assert not newest.reading_paused


async def test_what_is_owed_by_those_who_left_has_a_bound(wire: Wire, gate: Gate) -> None:
    await _leave_after_slow_work(wire, gate, 200)
    assert wire.state.carried_over.seconds == pytest.approx(100 * SLICE_SECONDS)


@pytest.mark.parametrize("spoke", [True, False])
async def test_who_was_held_is_heard_before_a_drain_takes_it_for_silent(wire: Wire, gate: Gate, spoke: bool) -> None:
    wire.service.status = 403
    answered = await _ask_until_held(wire, gate)
    assert wire.transport.reading_paused
    wire.state.stopping = wire.state.draining = True
    wire.transport.protocol.begin_drain()  # type: ignore[attr-defined]  # a Connection
    await settle()
    assert not wire.transport.closed
    assert gate.waiting.pop(0)()
    assert not wire.transport.reading_paused
    assert not wire.transport.closed, "what it said meanwhile is still with the kernel"
    if spoke:
        await wire.send(GET)
    else:
        await settle()
    assert wire.transport.closed
    assert len(statuses(wire.transport.written)) == answered + spoke


async def test_a_body_in_small_fragments_waits_and_one_in_large_parts_does_not(wire: Wire, gate: Gate) -> None:
    head = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    other = wire.connect()
    for _ in range(5):
        await wire.send(head + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 14 + b"0\r\n\r\n", other)
    assert not gate.waiting
    await wire.send(head + b"1\r\nx\r\n" * 2500)
    assert len(gate.waiting) == 1
    assert wire.transport.reading_paused


async def test_nobody_who_waited_is_served_once_the_server_has_given_up(wire: Wire, gate: Gate) -> None:
    await wire.send(POST + BODY)
    assert len(gate.waiting) == 1
    connection = wire.transport.protocol
    assert isinstance(connection, Connection)
    connection.abandon()
    gate.waiting[0]()
    await settle()
    assert wire.service.requests == []
    assert not wire.state.connections


async def test_small_fragments_of_a_rejected_body_cost_as_much(wire: Wire, gate: Gate) -> None:
    head = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    large = wire.state.limits.body_bytes + 1
    await wire.send(head + b"%x\r\n" % large + b"x" * large + b"\r\n")
    while gate.waiting:  # For the bulk.
        await gate.let_on()
    assert statuses(wire.transport.written) == [413]
    await wire.send(b"1\r\nx\r\n" * 2500)
    assert len(gate.waiting) == 1


async def test_short_bodies_cost_nothing_however_many(wire: Wire, gate: Gate) -> None:
    request = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\n"
    for _ in range(1500):
        await wire.send(request + b"hel")
        await wire.send(b"lo")
    assert not gate.waiting
    assert len(wire.service.requests) == 1500
