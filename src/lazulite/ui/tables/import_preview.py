"""What an import would do, by the first bytes of its file: columns with their types, rows, and what is wrong with them.

Invariant: nothing is stored, and no more than `PREVIEW_BYTES_MAX` bytes and `ROWS_READ_MAX` rows are read.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from lazulite.settings.extras import require_extra
from lazulite.transfer.csv_files import SAMPLE_ROWS
from lazulite.transfer.formats import FORMATS, ReadOptions
from lazulite.transfer.importing import FailedRow, RowKeys
from lazulite.transfer.inputs import InputError, Row
from lazulite.transfer.values import NULL, RowError, check_keys, property_names, text_of, type_of
from lazulite.transfer.values import Entity as Members
from lazulite.ui.tables.grid import Column, GridRow, columns_of, rows_of
from lazulite.ui.tables.values import KEYS, NUMBERS, TIMESTAMP, Entity, Value

PREVIEW_BYTES_MAX = 1 << 20
"""More than a row of any table, and mostly more than the rows from which types are guessed."""
ROWS_READ_MAX = 20_000
ROWS_SHOWN = 20
COLUMNS_SHOWN = 60
PROBLEMS_SHOWN = 10
PARQUET = "parquet"
_LINE_END = b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePreview:
    """The beginning of a file, as it would be imported."""

    problem: str = ""
    """Why nothing of it can be shown; "" if it can."""
    columns: Sequence[Column] = ()
    left_out: int = 0
    """Columns beyond `COLUMNS_SHOWN`."""
    rows: Sequence[GridRow] = ()
    """The first rows that are entities."""
    numbers: Sequence[int] = ()
    """The numbers of `rows` in the file."""
    read: int = 0
    """The rows that were read."""
    bad: int = 0
    """Those of them that would be reported."""
    problems: Sequence[FailedRow] = ()
    """The first of the bad rows."""
    is_whole: bool = True
    """Whether all rows of the file were read."""
    may_guess_again: bool = False
    """Whether the import guesses types from more rows than these."""


def preview_of(data: bytes, size: int, format_name: str, row_keys: RowKeys) -> FilePreview:
    """Return what an import would do. It blocks, so it runs in a thread.

    Args:
        data: the first bytes of the file, or all of them.
        size: the length of the file.
        format_name: of `FORMATS`.
        row_keys: what rows without a RowKey get.
    """
    is_whole = len(data) >= size
    try:
        if format_name == PARQUET:
            require_extra(PARQUET, "Parquet")
            if not is_whole:
                raise InputError("a Parquet file says at its end what it has, so a long one is not shown beforehand")
        elif not is_whole:
            data = data[: data.rfind(_LINE_END) + 1]
            if not data:
                raise InputError(f"the first row has more than {PREVIEW_BYTES_MAX >> 20} MiB, so it is not shown")
        reader = FORMATS[format_name].read(io.BytesIO(data), ReadOptions())
        rows = list(islice(reader.rows(), ROWS_READ_MAX + 1))
    except (InputError, ValueError) as error:
        return FilePreview(problem=str(error), is_whole=is_whole)
    if len(rows) > ROWS_READ_MAX or (not is_whole and format_name != PARQUET):
        rows, is_whole = rows[:-1], False  # The last row may be cut.
    guesses = format_name.endswith("csv") and not is_whole and len(rows) < SAMPLE_ROWS
    return _preview(rows, reader.types, row_keys, is_whole=is_whole, may_guess_again=guesses)


def _preview(
    rows: Sequence[Row], types: Mapping[str, str], row_keys: RowKeys, *, is_whole: bool, may_guess_again: bool
) -> FilePreview:
    shown: list[Entity] = []
    numbers: list[int] = []
    problems: list[FailedRow] = []
    bad = 0
    for row in rows:
        try:
            entity = _entity(row, row_keys)
        except RowError as error:
            bad += 1
            if len(problems) < PROBLEMS_SHOWN:
                problems.append(FailedRow(row.number, None, str(error)))
            continue
        if len(shown) < ROWS_SHOWN:
            shown.append(entity)
            numbers.append(row.number)
    columns = _columns(shown, types)
    return FilePreview(
        columns=columns[:COLUMNS_SHOWN],
        left_out=max(0, len(columns) - COLUMNS_SHOWN),
        rows=rows_of(shown, columns[:COLUMNS_SHOWN]),
        numbers=numbers,
        read=len(rows),
        bad=bad,
        problems=problems,
        is_whole=is_whole,
        may_guess_again=may_guess_again,
    )


def _entity(row: Row, row_keys: RowKeys) -> Entity:
    """Return a row as a page shows it. Raises `RowError`."""
    if row.entity is None:
        raise RowError(row.problem)
    row_keys.fill(row.number, row.entity)
    partition, row_key = check_keys(row.entity)
    return Entity(partition, row_key, "", "", dict(_values(row.entity)))


def _values(entity: Members) -> Sequence[tuple[str, Value]]:
    names = [name for name in property_names(entity) if name not in (*KEYS, TIMESTAMP)]
    values = [(name, Value(type_of(entity, name), text_of(entity[name]))) for name in names]
    return [(name, value) for name, value in values if value.type != NULL]


def _columns(shown: Sequence[Entity], types: Mapping[str, str]) -> Sequence[Column]:
    """Return the columns of the file with the types of their values, or what the file says of those without any."""
    found = {each.name: each for each in columns_of(shown)}
    for name, type_name in types.items():
        if name not in (*KEYS, TIMESTAMP):
            found.setdefault(name, Column(name, [type_name], 0, type_name in NUMBERS))
    order = [name for name in types if name in found]
    return [found[name] for name in dict.fromkeys([*order, *found])]
