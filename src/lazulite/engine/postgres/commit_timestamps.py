"""Commit timestamps of one process: from its clock, each given once while no partition is ahead of that clock.

The partition version rows make timestamps grow within a partition over all processes: each commit is checked against
its partition's version.
"""

from lazulite.engine.contract import Clock


class CommitTimestamps:
    """Gives commit timestamps, in ticks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def take(self, count: int = 1, above: int = 0) -> int:
        """Return the first of `count` timestamps, one tick apart, all of them greater than `above`.

        Raises:
            EngineUnavailableError: the clock refuses to tell the time.
        """
        first = max(self._clock(), self._last + 1)
        self._last = first + count - 1
        return max(first, above + 1)
