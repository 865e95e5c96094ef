"""What of a store is copied, in the order in which it is: the services' own rows, then each table by its space.

Left out are dropped tables, whose rows are gone for everybody already, and what a copy notes of itself. Whatever the
engine, the parts come in the same order, and so do the rows of each.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.migration.endpoint import TransferError
from lazulite.records.spaces import COUNTERS, SERVICE_PROPERTIES, TABLES
from lazulite.table.catalog import DROPPED, Table


class Part(NamedTuple):
    """One space of a store."""

    space: int
    name: str
    """For people."""
    is_table: bool = True


class Row(NamedTuple):
    """A row of a part."""

    partition: str
    row: str
    value: bytes


OWN_PARTS = (
    Part(COUNTERS, "the counter of tables", is_table=False),
    Part(SERVICE_PROPERTIES, "the service properties", is_table=False),
    Part(TABLES, "the list of tables", is_table=False),
)
"""What every store has beside its tables, unless it was never used."""

_START: Key = ("", "")


async def parts_of(engine: Engine) -> list[Part]:
    """Return the parts of a store.

    Raises:
        TransferError: its list of tables is damaged.
    """
    tables: list[Part] = []
    async with aclosing(rows_of(engine, OWN_PARTS[-1])) as runs:
        async for run in runs:
            tables += [_table(row) for row in run]
    return [*OWN_PARTS, *sorted(tables)]


def _table(row: Row) -> Part:
    try:
        table = Table.from_bytes(row.value)
    except (ValueError, LookupError, TypeError):
        raise TransferError(f"the list of tables is damaged at {row.row!r} of account {row.partition!r}") from None
    return Part(table.space, f"{row.partition}/{table.name}")


async def rows_of(engine: Engine, part: Part, after: Key | None = None) -> AsyncGenerator[list[Row], None]:
    """Yield the rows of a part in their order, some at a time, as of one moment; only those behind `after` if given."""
    start = _START if after is None else (after[0], f"{after[1]}\0")
    async with aclosing(engine.scan(part.space, [KeyRange(start, None)])) as slices:
        async for piece in slices:
            rows = [Row(*piece.key(index), value) for index, value in enumerate(piece.values)]
            yield [row for row in rows if not row.row.startswith(DROPPED)] if part.space == TABLES else rows


async def is_empty(engine: Engine) -> bool:
    """Say whether nobody ever made anything in a store; drops that have not ended count as something."""
    for part in OWN_PARTS:
        async with aclosing(engine.scan(part.space, [KeyRange(_START, None)], 1)) as slices:
            async for piece in slices:
                if piece.values:
                    return False
    return True
