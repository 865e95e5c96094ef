"""A clock for the target of a copy: its stamps are above every Timestamp copied, whatever clock gave those."""

from lazulite.engine.contract import Clock


class RisingClock:
    """A `Clock` that is never below what it has been raised to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._floor = 0

    def raise_to(self, ticks: int) -> None:
        """Be at least `ticks` from now on."""
        self._floor = max(self._floor, ticks)

    def __call__(self) -> int:
        """See `Clock`."""
        return max(self._clock(), self._floor)
