"""Spaces that were dropped and are not yet empty: rows `!{space}` of a catalog.

A service writes such a marker in the commit that removes the row of the space, so that a restart finishes a drop that a
crash interrupted.
"""

from lazulite.engine.compare_and_swap import update_row
from lazulite.engine.contract import Engine, KeyRange

_PREFIX = "!"


def marker_of(space: int) -> str:
    """Return the row that marks a space as dropped."""
    return f"{_PREFIX}{space}"


def is_marker(row: str) -> bool:
    """Tell whether a row of a catalog is a marker."""
    return row.startswith(_PREFIX)


def marked_space(row: str) -> int:
    """Return the space that a marker names.

    Raises:
        ValueError: the row is no marker.
    """
    return int(row.removeprefix(_PREFIX))


class DroppedSpaces:
    """The markers of one catalog.

    Args:
        engine: of the store.
        catalog: the number of the catalog's space.
    """

    def __init__(self, engine: Engine, catalog: int) -> None:
        self._engine = engine
        self._catalog = catalog

    async def reclaim(self, partition: str, marker: str) -> None:
        """Empty a dropped space, and delete its marker."""
        await self._engine.drop(marked_space(marker))
        await update_row(self._engine, self._catalog, partition, marker, lambda _: {marker: None})

    async def finish(self) -> None:
        """Empty every space that is still marked."""
        pending: list[tuple[str, str]] = []
        async for part in self._engine.scan(self._catalog, [KeyRange(("", ""), None)]):
            keys = [part.key(index) for index in range(len(part.values))]
            pending += [key for key in keys if is_marker(key[1])]
        for partition, marker in pending:
            await self.reclaim(partition, marker)
