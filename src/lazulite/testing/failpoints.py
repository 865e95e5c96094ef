"""Failures of an embedded store's next writes."""

from collections import deque
from collections.abc import Callable
from typing import Literal, get_args

from lazulite.engine.contract import EngineUnavailableError

Step = Literal["before_write", "before_sync", "after_sync"]
"""A step of a flush: see `engine.rocksdb.database.Failpoints`."""


class NextFailures(dict[str, Callable[[], None]]):
    """Failpoints that each fail as often as they are asked to, and pass otherwise. Safe in threads."""

    def __init__(self) -> None:
        super().__init__()
        self._armed: dict[str, deque[None]] = {step: deque() for step in get_args(Step)}
        for step, armed in self._armed.items():
            self[step] = self._failpoint(step, armed)

    def fail(self, step: Step, count: int) -> None:
        """Make a step fail the next `count` times.

        Raises:
            ValueError: there is no such step.
        """
        if step not in self._armed:
            raise ValueError(f"no step {step!r}: choose from {', '.join(self._armed)}")
        self._armed[step].extend([None] * count)

    @staticmethod
    def _failpoint(step: str, armed: "deque[None]") -> Callable[[], None]:
        def fail() -> None:
            try:
                armed.pop()
            except IndexError:
                return
            raise EngineUnavailableError(f"failed {step}, as a test asked for")

        return fail
