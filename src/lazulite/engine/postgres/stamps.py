"""The stamps that one process gives: by its clock, and each only once while no partition is ahead of that clock.

That stamps grow in a partition, whoever gives them, its head sees to, which each commit is checked against.
"""

from lazulite.engine.contract import Clock


class Stamps:
    """See above."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def take(self, count: int = 1, above: int = 0) -> int:
        """Return the first of `count` stamps, one tick apart, all of them greater than `above`."""
        first = max(self._clock(), self._last + 1)
        self._last = first + count - 1
        return max(first, above + 1)
