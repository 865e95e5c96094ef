"""Long work as a generator that yields between two short steps.

Reading a long body is such work. The generator knows no event loop: `finish` runs it without a pause, and
`service.time_slice.TimeSlice.run` lets other tasks run between its steps.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Work with a result of type T."""


def finish(steps: Steps[T]) -> T:
    """Run work to its end without a pause and return its result. Raises what the work raises."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
