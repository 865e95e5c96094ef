"""Work in steps: a generator that yields wherever other work may run first.

Whatever reads a long body is such work. It knows no event loop: a caller runs it to its end at once (`finish`), or lets
other requests run between two steps (`service.time_slice.Turn.through`).
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]


def finish(steps: Steps[T]) -> T:
    """Run some work to its end without a pause and return its result. Raises what the work raises."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
