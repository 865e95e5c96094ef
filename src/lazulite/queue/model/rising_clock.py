"""The time of a process, which never steps back."""

from lazulite.engine.contract import Clock


class RisingClock:
    """A clock that stands still while another one steps back.

    Args:
        clock: the other one.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest = 0

    def __call__(self) -> int:
        """Return the time in ticks."""
        self._latest = max(self._latest, self._clock())
        return self._latest
