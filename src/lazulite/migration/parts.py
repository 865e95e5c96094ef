"""The parts of a store in the order in which they are copied: the services' own spaces, then each that a catalog names.

Dropped spaces, whose rows are gone already, and the journal of a copy are left out. Whatever the engine, the parts come
in the same order, and so do the rows of each.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.migration.endpoint import MigrationError
from lazulite.records.catalog import is_marker
from lazulite.records.spaces import CatalogFormat, Space, Spaces


class StorePart(NamedTuple):
    """One space of a store."""

    space: int
    name: str
    """The name in messages."""
    catalog: CatalogFormat | None = None
    """The catalog that names it; None for the services' own spaces."""
    has_markers: bool = False
    """Whether some of its rows mark dropped spaces."""
    is_content: bool = True
    """Whether its rows count for the checksum of the store."""


class StoredRow(NamedTuple):
    """A row of a part."""

    partition: str
    row: str
    value: bytes


_START: Key = ("", "")


async def parts_of(engine: Engine, spaces: Spaces) -> list[StorePart]:
    """Return the parts of a store.

    Raises:
        MigrationError: a catalog, such as the list of tables, is damaged.
    """
    own = [space for space in spaces if space.copied]
    named: list[StorePart] = []
    for space in own:
        if space.catalog is not None:
            async with aclosing(rows_of(engine, _own_part(space))) as runs:
                async for run in runs:
                    named += [part for row in run for part in _named_parts(space, space.catalog, row)]
    return [*map(_own_part, own), *sorted(named, key=lambda part: part.space)]


def _own_part(space: Space) -> StorePart:
    return StorePart(space.number, space.title, has_markers=space.catalog is not None, is_content=space.in_checksum)


def _named_parts(space: Space, catalog: CatalogFormat, row: StoredRow) -> list[StorePart]:
    try:
        number, name = catalog.read(row.row, row.value)
        indexes = catalog.indexes(row.value)
    except (ValueError, LookupError, TypeError):
        raise MigrationError(f"{space.title} is damaged at {row.row!r} of account {row.partition!r}") from None
    name = f"{row.partition}/{name}"
    return [
        StorePart(number, name, catalog),
        *(StorePart(index.space, f"index {index.name} of {name}") for index in indexes),
    ]


async def rows_of(engine: Engine, part: StorePart, after: Key | None = None) -> AsyncGenerator[list[StoredRow], None]:
    """Yield the rows of a part in their order, some at a time, as of one moment; only those behind `after` if given."""
    start = _START if after is None else (after[0], f"{after[1]}\0")
    async with aclosing(engine.scan(part.space, [KeyRange(start, None)])) as slices:
        async for piece in slices:
            rows = [StoredRow(*piece.key(index), value) for index, value in enumerate(piece.values)]
            yield [row for row in rows if not is_marker(row.row)] if part.has_markers else rows


async def is_empty(engine: Engine, spaces: Spaces) -> bool:
    """Tell whether a store was never used; unfinished drops count as use."""
    for space in spaces:
        if space.copied:
            async with aclosing(engine.scan(space.number, [KeyRange(_START, None)], 1)) as slices:
                async for piece in slices:
                    if piece.values:
                        return False
    return True
