"""The partitions that are worked on at a time, and the verdicts on them."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

from .recorder import Recorder

PARTITIONS = 12
RUNNING_MAX = 10
"""So many operations run at once on a partition, or had no answer: each more may double the orders to be tried."""
RETIRED = 3
"""So many partitions, the oldest ones, make room for new ones after each verdict."""


class Partitions:
    """A dozen partitions, always of different ages."""

    def __init__(self, directory: Path) -> None:
        """`directory` gets the histories that nothing explains."""
        self.begun = 0
        self.problems: list[str] = []
        self.checked = 0
        self.checking_seconds = 0.0
        self.configurations_max = 0
        self.running_max = 0
        self._directory = directory
        self._recorders: list[Recorder] = []
        self._renew()

    def __iter__(self) -> Iterator[Recorder]:
        return iter(self._recorders)

    def choose(self, dice: random.Random) -> Recorder:
        """Return any partition that is not too busy, a new one if there is none."""
        free = [each for each in self._recorders if each.running + each.unanswered < RUNNING_MAX]
        return dice.choice(free) if free else self._begin()

    def judge(self) -> None:
        """Check what was recorded since the last time, which is all over, and go on with some others."""
        began = time.process_time()
        for recorder in self._recorders:
            self._judge(recorder)
        self.checking_seconds += time.process_time() - began
        self._renew()

    def _judge(self, recorder: Recorder) -> None:
        history = recorder.history
        verdict = recorder.judge()
        self.checked += len(history)
        self.configurations_max = max(self.configurations_max, verdict.configurations_max)
        self.running_max = max(self.running_max, verdict.running_max)
        if recorder.problems:
            self.problems += recorder.problems
            lines = [f"{operation}\n" for operation in history]
            (self._directory / f"{recorder.name}.history").write_text("".join(lines))

    def _renew(self) -> None:
        self._recorders = self._recorders[RETIRED:]
        while len(self._recorders) < PARTITIONS:
            self._begin()

    def _begin(self) -> Recorder:
        self.begun += 1
        self._recorders.append(Recorder(f"p{self.begun}"))
        return self._recorders[-1]
