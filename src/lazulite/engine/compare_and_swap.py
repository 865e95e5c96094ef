"""Changing one row by what it is, with a decision that is a value: it may be made in another process.

The row is read, the change is made of what was read, and the commit writes it only if the row is still that; else all
of it begins anew. For rows that change seldom: whoever reads and whoever writes may both be away from the store.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lazulite.engine.contract import Engine


class RowChangedError(Exception):
    """The row is not what it was expected to be."""


@dataclass(frozen=True, slots=True)
class Swap:
    """A `Decide`: write these rows if the first row that the commit names is as expected."""

    expected: bytes | None
    changes: Mapping[str, bytes | None]

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """See `Decide`."""
        if current[0] != self.expected:
            raise RowChangedError
        return self.changes


async def rewrite(
    engine: Engine,
    space: int,
    partition: str,
    row: str,
    change: Callable[[bytes | None], Mapping[str, bytes | None]],
) -> None:
    """Change a row, and others of its partition with it.

    Args:
        engine: where it is.
        space: its space.
        partition: its partition.
        row: the row that the change depends on.
        change: given the row's value, what to write. Pure; it may be called more than once. What it raises surfaces.
    """
    while True:
        current = await engine.get(space, partition, row)
        changes = dict(change(current))
        rows = dict.fromkeys([row, *changes])
        try:
            await engine.commit(space, partition, list(rows), Swap(current, changes))
        except RowChangedError:
            continue
        return
