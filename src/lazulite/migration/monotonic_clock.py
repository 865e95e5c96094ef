"""The clock of a copy's target: commit timestamps are above every copied Timestamp, whichever clock assigned it."""

from lazulite.engine.contract import Clock


class MonotonicClock:
    """A `Clock` that never returns less than the highest value passed to `advance_to`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._floor = 0

    def advance_to(self, ticks: int) -> None:
        """Return at least `ticks` from now on."""
        self._floor = max(self._floor, ticks)

    def __call__(self) -> int:
        """See `Clock`."""
        return max(self._clock(), self._floor)
