"""Waits double up to a bound, however many there are."""

from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.outcomes.retries import Attempts, Policy
from lazulite_patterns.simulation import Simulation

UNKNOWN = ResultUnknown("503")


def test_waits_are_bounded_after_a_thousand_requests() -> None:
    simulation = Simulation()
    attempts = Attempts(Policy(deadline_seconds=1e6, first_wait_seconds=0.1, wait_max_seconds=10), 0)
    waits = []
    for _ in range(1100):
        before = simulation.now_seconds
        assert simulation.run(attempts.wait(UNKNOWN))
        waits.append(simulation.now_seconds - before)
    assert all(wait <= min(10, 0.1 * 2**number) + 1e-6 for number, wait in enumerate(waits[:20]))
    assert 5 < max(waits) <= 10.001


def test_no_wait_goes_beyond_the_deadline() -> None:
    simulation = Simulation()
    attempts = Attempts(Policy(deadline_seconds=5), 0)
    while simulation.run(attempts.wait(UNKNOWN)):
        assert simulation.now_seconds <= 5
    assert simulation.run(attempts.wait(ResultUnknown("503", retry_after_seconds=6))) is False
