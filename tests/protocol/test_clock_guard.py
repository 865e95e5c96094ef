"""The clock of timestamps: what is a jump, and what is time that went by."""

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_DAY, UNIX_EPOCH_TICKS
from lazulite.protocol.clock_guard import ClockGuard, ClockJumpError, spelled

DAY = TICKS_PER_DAY
NOW = UNIX_EPOCH_TICKS + 20_000 * DAY


class Machine:
    """A clock, and a time since boot, which pass when asked to."""

    def __init__(self, *, accept: bool = False) -> None:
        self.shown, self.up = NOW, 100 * DAY
        self.reports: list[str] = []
        self.guard = ClockGuard(lambda: self.shown, lambda: self.up, self.reports.append, accept=accept)

    def pass_by(self, ticks: int) -> None:
        self.shown += ticks
        self.up += ticks

    def rejects(self) -> bool:
        try:
            assert self.guard() == self.shown
        except ClockJumpError as error:
            assert isinstance(error, EngineUnavailableError)
            return True
        return False


def test_time_that_goes_by_is_no_jump() -> None:
    machine = Machine()
    for days in (0, 1, 3, 10_000):  # Busy, idle or suspended.
        machine.pass_by(days * DAY)
        assert not machine.rejects()
    assert machine.reports == []


def test_a_jump_of_more_than_a_day_is_rejected_until_the_clock_is_set_back() -> None:
    machine = Machine()
    machine.shown += DAY
    assert not machine.rejects()
    machine.shown += 1
    assert machine.rejects()
    machine.pass_by(7 * DAY)
    assert machine.rejects()
    assert len(machine.reports) == 1
    assert "--accept-clock-jump" in machine.reports[0]
    assert "1.0 days ahead, to 2024-10-0" in machine.reports[0]
    machine.shown -= 2
    assert not machine.rejects()
    assert not machine.rejects()
    assert machine.reports[1:] == ["the clock is right again, and writes are taken"]
    machine.shown += 100 * 365 * DAY
    assert machine.rejects()
    assert len(machine.reports) == 3


def test_a_clock_that_goes_back_and_forth_is_right() -> None:
    machine = Machine()
    for step in (-30 * DAY, 30 * DAY, DAY // 2):
        machine.shown += step
        assert not machine.rejects()


def test_steps_that_together_are_a_jump_are_one() -> None:
    machine = Machine()
    steps = 0
    while not machine.rejects():
        machine.shown += DAY // 3
        steps += 1
    assert steps == 4


def test_a_jump_that_is_meant_is_accepted_up_to_the_last_year() -> None:
    machine = Machine(accept=True)
    for days in (2, 30_000, 2_000_000):
        machine.shown += days * DAY
        assert not machine.rejects()
    assert machine.reports == []


@pytest.mark.parametrize("accept", [False, True])
@pytest.mark.parametrize("beyond", [-DAY, 0, 1, 10**19])
def test_no_timestamp_is_made_that_could_not_be_spelled(accept: bool, beyond: int) -> None:
    machine = Machine(accept=accept)
    machine.shown = LAST_TICK + beyond
    machine.up = machine.shown - machine.guard.boot_tick
    assert machine.rejects()
    assert "until it is set right" in machine.reports[0]


def test_times_for_people() -> None:
    assert spelled(UNIX_EPOCH_TICKS) == "1970-01-01T00:00:00Z"
    assert spelled(LAST_TICK) == "9999-12-31T23:59:59Z"
    assert spelled(LAST_TICK + 1) == "a time after the year 9999"
