"""What costs a connection something, and what does not."""

import pytest

from lazulite.server.admission.costs import CarriedOverCost, CostAccount
from lazulite.server.admission.scheduler import SLICE_SECONDS, CpuMeter

from .test_scheduler import HandClock

BULK_BYTES = 16 * 1024
GOOD = [200, 201, 202, 204, 304, 404, 406, 409, 412, 500, 503]
UNWELCOME = [400, 401, 403, 405, 411, 413, 414, 415, 431, 501]


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
