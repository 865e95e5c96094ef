"""Spaces that were dropped and are not yet empty: rows `!{space}` of a catalog, with the row of the resource as value.

A service writes such a marker in the commit that removes the row of the space. So a later change of the catalog, or a
restart, finishes a drop that was interrupted. Older versions wrote an empty value, which may be of any resource.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from lazulite.engine.compare_and_swap import update_row
from lazulite.engine.contract import Engine, EngineUnavailableError, Key, KeyRange

_PREFIX, _AFTER_PREFIX = "!", '"'


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
        close: has every process reject changes in a space, given its number.
    """

    def __init__(self, engine: Engine, catalog: int, close: Callable[[int], Awaitable[None]]) -> None:
        self._engine = engine
        self._catalog = catalog
        self._close = close

    async def finish(self) -> None:
        """Close and empty every space that is still marked, and delete its marker."""
        await self._finish(KeyRange(("", ""), None), lambda _: True)

    async def finish_of(self, resource: Key) -> None:
        """Do the same with the spaces that a resource had, given the key of its row."""
        partition, row = resource
        markers = KeyRange((partition, _PREFIX), (partition, _AFTER_PREFIX))
        await self._finish(markers, lambda name: name in (row.encode(), b""))

    async def _finish(self, within: KeyRange, accepts: Callable[[bytes], bool]) -> None:
        pending: list[Key] = []
        async for part in self._engine.scan(self._catalog, [within]):
            keys = [part.key(index) for index, value in enumerate(part.values) if accepts(value)]
            pending += [key for key in keys if is_marker(key[1])]
        for key in pending:
            await self._reclaim(*key)

    async def _reclaim(self, partition: str, marker: str) -> None:
        await self._close(marked_space(marker))
        with suppress(EngineUnavailableError):  # The marker stays, and a later `finish` does the rest.
            await self._engine.drop(marked_space(marker))
            await update_row(self._engine, self._catalog, partition, marker, lambda _: {marker: None})
