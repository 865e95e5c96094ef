"""Compare-and-swap of rows: commit functions that are plain data, so that another process can run them.

`update_row` reads the row, computes the change, and commits only if the row still has the value that was read.
Otherwise it starts over. Use it for rows that change seldom, from processes that are a round trip away from the store.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lazulite.engine.contract import Engine


class RowChangedError(Exception):
    """The row does not have the expected value."""


@dataclass(frozen=True, slots=True)
class CompareAndSwap:
    """A `CommitFunction`: write these rows if the first named row has the expected value."""

    expected: bytes | None
    changes: Mapping[str, bytes | None]

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """Return the changes, see `CommitFunction`.

        Raises:
            RowChangedError: the first row has another value.
        """
        if current[0] != self.expected:
            raise RowChangedError
        return self.changes


@dataclass(frozen=True, slots=True)
class CompareAndSwapRows:
    """A `CommitFunction`: write these rows if all named rows have the expected values."""

    expected: Sequence[bytes | None]
    changes: Mapping[str, bytes | None]

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """Return the changes, see `CommitFunction`.

        Raises:
            RowChangedError: a row has another value.
        """
        if tuple(current) != tuple(self.expected):
            raise RowChangedError
        return self.changes


async def update_row(
    engine: Engine,
    space: int,
    partition: str,
    row: str,
    change: Callable[[bytes | None], Mapping[str, bytes | None]],
) -> None:
    """Change a row, and other rows of its partition in the same commit.

    Args:
        engine: the engine that holds the row.
        space: number of the row's space.
        partition: partition key of the row.
        row: row key of the row on which the change depends.
        change: returns the rows to write for the row's current value. Pure; it may be called more than once. Its
            exceptions are raised to the caller.

    Raises:
        EngineError: the engine failed.
    """
    while True:
        current = await engine.get(space, partition, row)
        changes = dict(change(current))
        rows = dict.fromkeys([row, *changes])
        try:
            await engine.commit(space, partition, list(rows), CompareAndSwap(current, changes))
        except RowChangedError:
            continue
        return
