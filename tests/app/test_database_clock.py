"""The database's time between two answers, with a round trip and a database that steps."""

import pytest

from lazulite.app.database_clock import DatabaseClock
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS


class Machine:
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
    machine = Machine()
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
    machine = Machine()
    await machine.clock.ask()
    machine.there, machine.back = 0.0, 0.4
    before = machine.shown() - machine.now
    await machine.clock.ask()
    assert machine.shown() - machine.now == pytest.approx(before)


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
async def test_a_step_of_the_database_is_followed(step: float) -> None:
    machine = Machine()
    await machine.clock.ask()
    machine.ahead += step
    assert machine.shown() == pytest.approx(machine.now + 5000)
    await machine.clock.ask()
    assert machine.shown() == pytest.approx(machine.now + 5000 + step)


async def test_without_an_answer_the_time_goes_on() -> None:
    machine = Machine()
    await machine.clock.ask()
    machine.fails = True
    with pytest.raises(EngineUnavailableError):
        await machine.clock.ask()
    machine.now += 7
    assert machine.shown() == pytest.approx(machine.now + 5000)
