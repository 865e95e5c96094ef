"""What costs a connection something, and what does not."""

import pytest

from lazulite.server.admission.costs import Debt, Estate
from lazulite.server.admission.scheduler import TURN_SECONDS, Meter

from .test_scheduler import HandClock

BULK_BYTES = 16 * 1024
GOOD = [200, 201, 202, 204, 304, 404, 406, 409, 412, 500, 503]
UNWELCOME = [400, 401, 403, 405, 411, 413, 414, 415, 431, 501]


def meter(total_s: float = 0.0, unpaid_s: float = 0.0) -> Meter:
    read = Meter()
    read.total_s, read.unpaid_s = total_s, unpaid_s
    return read


def test_input_costs_by_its_size_when_it_comes_in_bulk() -> None:
    debt = Debt()
    for _ in range(1000):
        debt.read(BULK_BYTES - 1)
    assert debt.seconds == 0.0
    debt.read(BULK_BYTES)
    once = debt.seconds
    debt.read(3 * BULK_BYTES)
    assert debt.seconds == pytest.approx(4 * once)
    assert once > 0


def test_refusals_cost() -> None:
    debt = Debt()
    debt.refused()
    assert 0 < debt.seconds < TURN_SECONDS


@pytest.mark.parametrize("status", GOOD)
def test_short_good_answers_cost_nothing(status: int) -> None:
    debt = Debt()
    assert debt.answered("GET", status, 10 * BULK_BYTES, meter(TURN_SECONDS / 2, TURN_SECONDS / 2))
    assert debt.seconds == 0.0


@pytest.mark.parametrize(
    ("method", "status", "total_s"),
    [*(("GET", status, 0.0) for status in UNWELCOME), ("OPTIONS", 200, 0.0), ("GET", 200, TURN_SECONDS)],
)
def test_other_answers_cost_what_the_lane_does_not_know_of_and_their_framing(
    method: str, status: int, total_s: float
) -> None:
    debt = Debt()
    assert not debt.answered(method, status, 0, meter(total_s, 0.0))
    framing = debt.seconds
    assert framing > 0
    assert not debt.answered(method, status, 0, meter(total_s, 0.25))
    assert debt.seconds == pytest.approx(2 * framing + 0.25)


def test_a_large_answer_is_no_short_one_however_fast_it_was() -> None:
    debt = Debt()
    assert not debt.answered("GET", 200, 20 * BULK_BYTES, meter(TURN_SECONDS / 2, TURN_SECONDS / 2))
    assert debt.seconds > TURN_SECONDS / 2


def test_what_is_sent_to_who_is_slow_costs_by_its_size() -> None:
    debt, sent, received = Debt(), Debt(), Debt()
    for one, size in ((debt, 0), (sent, 10 * BULK_BYTES)):
        assert not one.answered("GET", 200, size, meter(TURN_SECONDS, 0.0))
    received.read(10 * BULK_BYTES)
    assert sent.seconds - debt.seconds == pytest.approx(received.seconds)


def test_what_is_paid_is_owed_no_more() -> None:
    debt = Debt()
    debt.refused()
    owed = debt.seconds
    assert debt.pay() == owed > 0
    assert debt.pay() == 0.0


def test_a_connection_leaves_what_it_owes() -> None:
    debt = Debt()
    assert debt.left(meter(total_s=0.5)) == 0.0, "what was answered and good"
    debt.refused()
    once = debt.left(meter())
    assert once > 0
    assert debt.seconds == 0.0
    abandoned = meter(total_s=0.5)
    abandoned.waits = True
    assert debt.left(abandoned) > 0.5


def test_less_than_a_turn_is_for_the_next_and_more_for_many() -> None:
    estate = Estate(lambda: 0.0)
    assert not estate.is_heavy()
    assert estate.inherit() == 0.0
    estate.leave(TURN_SECONDS / 2)
    assert not estate.is_heavy()
    assert estate.inherit() == TURN_SECONDS / 2
    estate.leave(2.5 * TURN_SECONDS)
    assert estate.is_heavy()
    assert [estate.inherit() for _ in range(4)] == pytest.approx([TURN_SECONDS, TURN_SECONDS, TURN_SECONDS / 2, 0.0])


def test_what_was_left_is_forgotten_once_nobody_leaves_more() -> None:
    clock = HandClock()
    estate = Estate(clock)
    for clock.now_s in (0.0, 0.9, 1.8):
        estate.leave(2 * TURN_SECONDS)
        assert estate.is_heavy()
    clock.now_s = 2.7
    estate.leave(0.0)
    assert estate.is_heavy()
    clock.now_s = 2.8
    assert not estate.is_heavy()
    assert estate.inherit() == 0.0
