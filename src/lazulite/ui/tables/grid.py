"""A page of rows as columns and cells."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lazulite.ui.tables.values import KEYS, NUMBERS, TIMESTAMP, Entity

CELL_CHARACTERS_MAX = 64
BINARY_BYTES_SHOWN = 24


class Column(NamedTuple):
    """A property that some row of the page has."""

    name: str
    types: Sequence[str]
    """The types of its values, the most common first."""
    rows: int
    """How many rows of the page have it."""
    is_number: bool


class Cell(NamedTuple):
    """A property of a row, which distinguishes missing, empty and other values."""

    state: str
    """`missing`, `empty`, `value` or `cut`."""
    text: str
    is_number: bool = False
    note: str = ""
    """The full length of a text that is cut; the type, if the column has several."""


class GridRow(NamedTuple):
    """A row of the grid."""

    partition: str
    row: str
    etag: str
    timestamp: str
    cells: Sequence[Cell]


MISSING = Cell("missing", "")


def columns_of(entities: Sequence[Entity]) -> Sequence[Column]:
    """Return the union of the properties of all rows, in the order in which they come."""
    types: dict[str, Counter[str]] = {}
    for entity in entities:
        for name, value in entity.values.items():
            types.setdefault(name, Counter())[value.type] += 1
    return [
        Column(name, [each for each, _ in counts.most_common()], counts.total(), counts.keys() <= NUMBERS)
        for name, counts in types.items()
    ]


def rows_of(entities: Sequence[Entity], columns: Sequence[Column]) -> Sequence[GridRow]:
    """Return the rows with a cell for each column."""
    return [
        GridRow(each.partition, each.row, each.etag, each.timestamp, [_cell(each, column) for column in columns])
        for each in entities
    ]


def chosen(columns: Sequence[Column], names: str) -> Sequence[Column]:
    """Return the chosen columns, in that order; all of them if there is no choice.

    Args:
        columns: of the page.
        names: separated by commas. One that no row of the page has becomes an empty column.
    """
    by_name: Mapping[str, Column] = {each.name: each for each in columns}
    wanted = [name for name in dict.fromkeys(names.split(",")) if name and name not in (*KEYS, TIMESTAMP)]
    return [by_name.get(name, Column(name, (), 0, False)) for name in wanted] if wanted else columns


def _cell(entity: Entity, column: Column) -> Cell:
    value = entity.values.get(column.name)
    if value is None:
        return MISSING
    note = value.type if len(column.types) > 1 else ""
    if value.type == "Binary":
        return _binary_cell(value.text, value.bytes, note)
    text = value.text
    if not text:
        return Cell("empty", "", False, note)
    if len(text) > CELL_CHARACTERS_MAX:
        return Cell("cut", text[:CELL_CHARACTERS_MAX], False, f"{len(text):,} characters")
    return Cell("value", text, value.type in NUMBERS, note)


def _binary_cell(text: str, size: int, note: str) -> Cell:
    if not size:
        return Cell("empty", "", False, note)
    if size > BINARY_BYTES_SHOWN:
        return Cell("cut", text[: BINARY_BYTES_SHOWN * 4 // 3], False, f"{size:,} bytes")
    return Cell("value", text, False, note)
