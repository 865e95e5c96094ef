"""CSV, with and without types.

With types, a property has two columns, `Name` and `Name@type`, as in files of Storage Explorer. A cell without a type
is missing; an empty cell of type String is an empty string. Without types, an empty cell is missing.
"""

import csv
import io
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Final, NamedTuple

from lazulite.transfer.inputs import InputError, InputLines, Position, Row
from lazulite.transfer.values import (
    ANNOTATION,
    KEYS,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE_OF_JSON,
    Entity,
    RowError,
    guess_type,
    set_text,
    text_of,
    type_named,
)

TYPE_SUFFIX = "@type"
SAMPLE_ROWS = 1000
"""The rows from which types are guessed."""
COLUMNS_MAX = 2 * 4096
_PADDED_ROWS = 1000
_FORMULA = re.compile(r"[=+\-@\t\r]")
"""What begins a cell that a spreadsheet may run."""
_IGNORED = -1


class _Segment(NamedTuple):
    """Successive rows of one number of cells."""

    rows: int
    width: int


class CsvWriter:
    """Writes entities as rows. The columns are the properties of all entities, in the order in which they come.

    As the header needs all of them, the rows wait in a temporary file, unless `select` names the columns.

    Args:
        output: where the file goes.
        typed: write the types, too.
        select: the properties; None for all.
        guard: put an apostrophe before texts that a spreadsheet may run as a formula. That changes the data.
    """

    def __init__(
        self, output: IO[bytes], *, typed: bool = True, select: Sequence[str] | None = None, guard: bool = False
    ) -> None:
        self.size_bytes = 0
        self._output = output
        self._typed, self._guard = typed, guard
        fixed = [*KEYS, TIMESTAMP] if select is None or TIMESTAMP in select else [*KEYS]
        self._header = fixed
        self._fixed = len(fixed)
        self._places = {name: at for at, name in enumerate(fixed)}
        self._segments: list[_Segment] = []
        self._is_complete = False
        for name in select or ():
            self._place(name)
        self._is_complete = select is not None
        self._spool: IO[bytes] | None = None
        if select is None:
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - `finish` closes it
        else:
            self._write_header()

    def write(self, entities: Sequence[Entity]) -> None:
        """Write entities."""
        rows = [self._row(entity) for entity in entities]
        width = len(self._header)
        for row in rows:
            if len(row) < width:
                row.extend([""] * (width - len(row)))
        if self._segments and self._segments[-1].width == width:
            rows_before = self._segments.pop().rows
            self._segments.append(_Segment(rows_before + len(rows), width))
        else:
            self._segments.append(_Segment(len(rows), width))
        self._write_rows(rows, self._spool or self._output)

    def _row(self, entity: Entity) -> list[str]:
        places, fixed, typed = self._places, self._fixed, self._typed
        row = [""] * len(self._header)
        for name, value in entity.items():
            at = places.get(name)
            if at is None:
                at = self._place(name)
                row += [""] * (len(self._header) - len(row))
            if at < 0:
                continue
            if at < fixed or not typed:
                row[at] = self._text(value, "")
            elif (at - fixed) % 2:
                row[at] = str(value)[4:]  # The type, behind `Edm.`
            else:
                row[at] = self._text(value, row[at + 1])
                if not row[at + 1]:
                    row[at + 1] = TYPE_OF_JSON[type(value)]
        return row

    def _text(self, value: object, type_name: str) -> str:
        if type(value) is not str:
            return text_of(value)  # type: ignore[arg-type]  # members of JSON
        if self._guard and not type_name and _FORMULA.match(value):
            return f"'{value}"
        return value

    def _place(self, name: str) -> int:
        """Return the index of the cell of a member, in a new column if the member is new; or that it is ignored."""
        if name in self._places:
            return self._places[name]
        if name.startswith("odata.") or (self._is_complete and not name.endswith(ANNOTATION)):
            self._places[name] = _IGNORED
        elif name.endswith(ANNOTATION):
            owner = self._place(name.removesuffix(ANNOTATION))
            self._places[name] = owner + 1 if self._typed and owner >= self._fixed else _IGNORED
        else:
            if len(self._header) >= COLUMNS_MAX:
                raise InputError(f"the entities have more than {COLUMNS_MAX // 2:,} properties; choose some by select")
            self._places[name] = len(self._header)
            self._header += [name, name + TYPE_SUFFIX] if self._typed else [name]
        return self._places[name]

    def _write_header(self) -> None:
        self._write_rows([self._header], self._output)

    def _write_rows(self, rows: Sequence[Sequence[str]], output: IO[bytes]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerows(rows)
        part = text.getvalue().encode("utf-8", "surrogatepass")
        output.write(part)
        self.size_bytes += len(part)

    def finish(self) -> None:
        """Write the rows that wait."""
        if self._spool is None:
            return
        with self._spool as spool:
            spool_bytes, self.size_bytes = spool.tell(), 0
            self._write_header()
            spool.seek(0)
            if {segment.width for segment in self._segments} <= {len(self._header)}:
                shutil.copyfileobj(spool, self._output, 1 << 20)
                self.size_bytes += spool_bytes
                return
            rows = csv.reader(io.TextIOWrapper(spool, "utf-8", "surrogatepass", newline=""))
            for segment in self._segments:
                padding = [""] * (len(self._header) - segment.width)
                for start in range(0, segment.rows, _PADDED_ROWS):
                    part = islice(rows, min(_PADDED_ROWS, segment.rows - start))
                    self._write_rows([row + padding for row in part], self._output)


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How to read a file."""

    types: Mapping[str, str] = field(default_factory=dict)
    """The types of columns that the caller knows."""
    guess: bool = True
    """Guess the types of other columns; else they are String."""


class _Column(NamedTuple):
    """A column of values."""

    name: str
    at: int
    type_at: int
    """Where the type stands; -1: nowhere."""
    type_name: str
    """The type of values without one."""


_NOT_READ: Final = {TIMESTAMP}
"""The service sets it."""


class CsvReader:
    """Reads rows.

    Types that the first row has stand for those that later rows lack, as Storage Explorer 1.40 writes them there only.

    Raises:
        InputError: the file has no header of names.
    """

    def __init__(self, lines: InputLines, options: CsvOptions | None = None) -> None:
        self._lines, self._options = lines, options or CsvOptions()
        self._records = csv.reader(lines, strict=True)
        self._row = 0
        header = next(self._records, None)
        if not header:
            raise InputError("the file is empty; its first line names the columns")
        self._names = header
        self._is_typed = any(name.endswith(TYPE_SUFFIX) for name in header)
        sample = islice(self._numbered(), 2 if self._is_typed else SAMPLE_ROWS)
        self._waiting = deque(sample)
        self._drops_empty = False
        self._columns = self._plan([record for record in self._waiting if isinstance(record, list)])

    @property
    def size_bytes(self) -> int | None:
        """See `RowReader`."""
        return self._lines.size_bytes

    @property
    def read_bytes(self) -> int:
        """See `RowReader`."""
        return self._lines.offset

    @property
    def types(self) -> Mapping[str, str]:
        """See `RowReader`."""
        return {column.name: column.type_name for column in self._columns}

    def _plan(self, sample: Sequence[list[str]]) -> list[_Column]:
        places = {name: at for at, name in enumerate(self._names)}
        if len(places) < len(self._names):
            raise InputError("two columns have the same name")
        if unknown := set(self._options.types) - set(places):
            raise InputError(f"there is no column {sorted(unknown)[0]}; the columns are {', '.join(places)[:500]}")
        columns = []
        for name, at in places.items():
            if name in _NOT_READ or name.endswith(TYPE_SUFFIX):
                continue
            type_at = places.get(name + TYPE_SUFFIX, -1)
            type_name = STRING if name in KEYS else self._type_of(name, at, type_at, sample)
            columns.append(_Column(name, at, -1 if name in KEYS else type_at, type_name))
        self._drops_empty = self._types_are_in_first_row(columns, sample)
        return columns

    def _type_of(self, name: str, at: int, type_at: int, sample: Sequence[list[str]]) -> str:
        given = self._options.types.get(name)
        if given is not None:
            return given
        if type_at >= 0:
            first = sample[0][type_at] if sample and len(sample[0]) > type_at else ""
            try:
                return type_named(first) if first else STRING
            except RowError as error:
                raise InputError(f"{name}{TYPE_SUFFIX}: {error}") from None
        if self._is_typed or not self._options.guess:
            return STRING
        return guess_type(record[at] for record in sample if len(record) > at)

    @staticmethod
    def _types_are_in_first_row(columns: Sequence[_Column], sample: Sequence[list[str]]) -> bool:
        """Tell whether the second row has values without types, whose columns have types in the first one."""
        if len(sample) < 2:
            return False
        first, second = (dict(enumerate(record)) for record in sample[:2])
        return any(
            second.get(column.at) and not second.get(column.type_at) and first.get(column.type_at)
            for column in columns
            if column.type_at >= 0
        )

    def _numbered(self) -> Iterator[list[str] | str]:
        """Yield records; a text in place of one says what is wrong with it."""
        while True:
            try:
                record = next(self._records)
            except StopIteration:
                return
            except csv.Error as error:
                yield f"the row is no CSV: {error}"
                continue
            if record:
                yield record

    def rows(self) -> Iterator[Row]:
        """See `RowReader`."""
        records = self._numbered()
        while True:
            record = self._waiting.popleft() if self._waiting else next(records, None)
            if record is None:
                return
            self._row += 1
            if isinstance(record, str):
                yield Row(self._row, None, record)
                continue
            try:
                yield Row(self._row, self._entity(record))
            except RowError as error:
                yield Row(self._row, None, str(error))

    def _entity(self, record: list[str]) -> Entity:
        if len(record) != len(self._names):
            raise RowError(f"the row has {len(record)} cells, and the header {len(self._names)}")
        entity: Entity = {}
        drops_empty = self._drops_empty or not self._is_typed
        for name, at, type_at, type_name in self._columns:
            text = record[at]
            if name in KEYS:
                entity[name] = text
                continue
            own = record[type_at] if type_at >= 0 else ""
            if not text and (not own or drops_empty):
                continue
            kind = type_named(own) if own else type_name
            if text or kind in _EMPTY:
                set_text(entity, name, kind, text)
        return entity

    def position(self) -> Position | None:
        """See `RowReader`."""
        return None if self._waiting else self._lines.position()

    def resume(self, position: Position, row: int) -> None:
        """See `RowReader`."""
        self._lines.resume(position)
        self._waiting.clear()
        self._records = csv.reader(self._lines, strict=True)
        self._row = row


_EMPTY = {STRING, "Binary", NULL}
"""The types that have an empty text; of another type, an empty cell is missing."""
