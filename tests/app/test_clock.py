"""What of the clock is a jump and what is time that went by, what a start says of it, and a database's time."""

from pathlib import Path

import pytest

from lazulite.app import clock as app_clock
from lazulite.app.clock import (
    NAME,
    ClockGuard,
    ClockJumpError,
    DatabaseClock,
    check_database_time,
    check_newest_timestamp,
    check_since_boot,
    note_boot,
    spelled,
)
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_DAY, TICKS_PER_SECOND, UNIX_EPOCH_TICKS, unix_seconds
from lazulite.settings.config import ConfigError

DAY = TICKS_PER_DAY
NOW = UNIX_EPOCH_TICKS + 20_000 * DAY

BOOT = NOW - 5 * DAY


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


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(app_clock, "system_clock", lambda: NOW)
    monkeypatch.setattr(app_clock, "_BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one\n")


def test_a_jump_since_the_last_start_is_rejected_while_the_machine_is_the_same_boot(tmp_path: Path) -> None:
    check_since_boot(tmp_path / "missing", BOOT)
    note_boot(tmp_path, BOOT)
    for step in (-1000 * DAY, 0, DAY):
        check_since_boot(tmp_path, BOOT + step)
    with pytest.raises(ConfigError, match=r"jumped 2\.0 days ahead since the last start, to 2024-10-04.*--accept"):
        check_since_boot(tmp_path, BOOT + 2 * DAY)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    # After a boot, years may have gone by.
    (tmp_path / "boot_id").write_text("two\n")
    check_since_boot(tmp_path, BOOT + 3650 * DAY)


@pytest.mark.parametrize("text", ["", "one", "one x", "one 1 2", "\ufeff", "\x00" * 10])
def test_a_damaged_record_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    check_since_boot(tmp_path, BOOT + 3650 * DAY)


def test_where_boots_have_no_id_nothing_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "boot_id").unlink()
    note_boot(tmp_path, BOOT)
    assert not (tmp_path / NAME).exists()


def test_a_disk_that_takes_no_record_keeps_nothing_from_starting(tmp_path: Path) -> None:
    note_boot(tmp_path / "missing", BOOT)


def test_timestamps_may_be_a_day_ahead() -> None:
    for timestamp in (0, NOW, NOW + DAY):
        check_newest_timestamp("here", timestamp)
    with pytest.raises(ConfigError, match=r"Timestamp in here is 2024-10-05T00:00:00Z, 1\.0 days ahead.*--accept"):
        check_newest_timestamp("here", NOW + DAY + 1)


def test_a_clock_may_be_a_day_ahead_of_the_databases() -> None:
    for ahead in (-1000 * DAY, 0, DAY):
        check_database_time("there", unix_seconds(NOW - ahead))
    with pytest.raises(ConfigError, match=r"2\.0 days ahead of the clock of there.*--accept"):
        check_database_time("there", unix_seconds(NOW - 2 * DAY))


class DatabaseAndMachine:
    """A machine that has been running for `now` seconds, and a database `ahead` seconds ahead of it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ahead = 5000.0
        self.there = self.back = 0.0
        self.fails = False
        self.clock = DatabaseClock(self.ask, lambda: round(self.now * TICKS_PER_SECOND))

    async def ask(self) -> float:
        """Tell the database's time after the way there, and before the way back."""
        self.now += self.there
        if self.fails:
            raise EngineUnavailableError("gone")
        reported = self.now + self.ahead
        self.now += self.back
        return reported

    def shown(self) -> float:
        """Return what the clock shows in seconds since 1970."""
        return (self.clock() - UNIX_EPOCH_TICKS) / TICKS_PER_SECOND


async def test_the_time_is_the_databases_within_a_round_trip() -> None:
    machine = DatabaseAndMachine()
    machine.there, machine.back = 0.3, 0.1
    await machine.clock.ask()
    assert machine.shown() == pytest.approx(machine.now + 5000, abs=0.2)
    shown = machine.shown()
    machine.now += 50
    assert machine.shown() == pytest.approx(shown + 50)
    machine.there = machine.back = 0.001
    await machine.clock.ask()
    assert machine.shown() == pytest.approx(machine.now + 5000, abs=0.002)


async def test_an_answer_that_agrees_changes_nothing() -> None:
    machine = DatabaseAndMachine()
    await machine.clock.ask()
    machine.there, machine.back = 0.0, 0.4
    before = machine.shown() - machine.now
    await machine.clock.ask()
    assert machine.shown() - machine.now == pytest.approx(before)


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
async def test_a_step_of_the_database_is_followed(step: float) -> None:
    machine = DatabaseAndMachine()
    await machine.clock.ask()
    machine.ahead += step
    assert machine.shown() == pytest.approx(machine.now + 5000)
    await machine.clock.ask()
    assert machine.shown() == pytest.approx(machine.now + 5000 + step)


async def test_without_an_answer_the_time_goes_on() -> None:
    machine = DatabaseAndMachine()
    await machine.clock.ask()
    machine.fails = True
    with pytest.raises(EngineUnavailableError):
        await machine.clock.ask()
    machine.now += 7
    assert machine.shown() == pytest.approx(machine.now + 5000)
