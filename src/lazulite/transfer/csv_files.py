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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from typing import IO, Final, NamedTuple

from lazulite.table.model.edm import Json
from lazulite.transfer.inputs import InputError, InputLines, Position, Row
from lazulite.transfer.values import (
    ANNOTATION,
    KEYS,
    READERS,
    STRING,
    TIMESTAMP,
    TYPE_OF_JSON,
    Entity,
    RowError,
    guess_type,
    no_value,
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


def _line(row: Sequence[str]) -> str:
    """Return a row as a line. The writer of `csv` looks at each character; most rows need none of its quotes."""
    line = ",".join(row)
    if line.count(",") == len(row) - 1 and '"' not in line and "\r" not in line and "\n" not in line:
        return f"{line}\r\n"
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(row)
    return text.getvalue()


def _records(lines: Iterator[str]) -> Iterator[list[str] | str]:
    """Yield the cells of each record; a text in place of them says what is wrong. Only quotes need the reader of `csv`.

    A quoted cell may go on in the next lines, which the reader takes.
    """
    for line in lines:
        if '"' not in line:
            yield line.rstrip("\r\n").split(",") if line.strip() else []
            continue
        try:
            yield next(csv.reader(chain((line,), lines), strict=True))
        except csv.Error as error:
            yield f"the row is no CSV: {error}"


class _Layout(NamedTuple):
    """How entities become rows that have the same members with values of the same types of Python."""

    pick: Callable[[Sequence[str]], Sequence[str]]
    """Returns the cells, given the values and the constants."""
    constants: Sequence[str]
    """An empty cell, and types of members without annotations."""
    spelled: Sequence[int]
    """The values that are no texts."""
    texts: Sequence[int]
    """The values that are texts without an annotation."""
    annotations: Sequence[int]
    """The values that are annotations and have a cell."""


_LAYOUTS_MAX = 512


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
        self._layouts: dict[tuple[tuple[str, ...], tuple[type, ...]], _Layout] = {}
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
        rows = [row if len(row) == width else [*row, *[""] * (width - len(row))] for row in rows]
        if self._segments and self._segments[-1].width == width:
            rows_before = self._segments.pop().rows
            self._segments.append(_Segment(rows_before + len(rows), width))
        else:
            self._segments.append(_Segment(len(rows), width))
        self._write_rows(rows, self._spool or self._output)

    def _row(self, entity: Entity) -> Sequence[str]:
        """Return the cells of an entity. What is the same for all of its form is done once."""
        names, values = tuple(entity), list(entity.values())
        form = names, tuple(map(type, values))
        layout = self._layouts.get(form)
        if layout is None:
            if len(self._layouts) >= _LAYOUTS_MAX:
                self._layouts.clear()
            layout = self._layouts[form] = self._layout(names, values)
        for at in layout.spelled:
            values[at] = text_of(values[at])
        if self._guard:
            for at in layout.texts:
                if _FORMULA.match(values[at]):  # type: ignore[arg-type]  # it is a text
                    values[at] = f"'{values[at]}"
        for at in layout.annotations:
            values[at] = values[at][4:]  # type: ignore[index]  # the type, behind `Edm.`
        return layout.pick([*values, *layout.constants])  # type: ignore[list-item]  # they are texts by now

    def _layout(self, names: Sequence[str], values: Sequence[Json]) -> "_Layout":
        """Return where the cells of a form are, among its values and the constants behind them."""
        places = [self._place(name) for name in names]
        constants = [""]
        cells = [len(names)] * len(self._header)
        owned = {place for name, place in zip(names, places, strict=True) if "@" in name}
        texts = []
        for at, (place, value) in enumerate(zip(places, values, strict=True)):
            if place < 0:
                continue
            cells[place] = at
            is_property = place >= self._fixed and "@" not in names[at]
            if is_property and self._typed and place + 1 not in owned:
                cells[place + 1] = len(names) + len(constants)
                constants.append(TYPE_OF_JSON[type(value)])
            if type(value) is str and "@" not in names[at] and f"{names[at]}{ANNOTATION}" not in names:
                texts.append(at)
        return _Layout(
            itemgetter(*cells),
            constants,
            [at for at, value in enumerate(values) if type(value) is not str],
            texts,
            [at for at, place in enumerate(places) if place >= 0 and "@" in names[at]],
        )

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
        part = "".join([_line(row) for row in rows]).encode("utf-8", "surrogatepass")
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


class _Cell(NamedTuple):
    """How a cell is read."""

    name: str
    at: int
    convert: Callable[[str], Json] | None
    annotated: str
    """The name of the annotation."""
    annotation: str | None
    of_texts_only: bool
    keeps_empty: bool
    """An empty cell is a value; else the property is missing."""
    kind: str


def _getter(places: Sequence[int]) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return the function that takes these places out of a row."""
    if len(places) < 2:
        return lambda record: tuple(record[at] for at in places)
    return itemgetter(*places)


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
        self._records = _records(lines)
        self._row = 0
        header = next(self._records, None)
        if not isinstance(header, list) or not header:
            raise InputError("the file is empty; its first line names the columns")
        if len(header) > COLUMNS_MAX:
            raise InputError(f"the first line names {len(header):,} columns; at most {COLUMNS_MAX:,} are read")
        self._names = header
        self._is_typed = any(name.endswith(TYPE_SUFFIX) for name in header)
        sample = islice(self._numbered(), 2 if self._is_typed else SAMPLE_ROWS)
        self._waiting = deque(sample)
        self._drops_empty = False
        self._columns = self._plan([record for record in self._waiting if isinstance(record, list)])
        self._type_places = [column.type_at for column in self._columns if column.type_at >= 0]
        self._get_types = _getter(self._type_places)
        self._plans: dict[tuple[str, ...], list[_Cell]] = {}

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
        """Yield the records that are not empty."""
        return (record for record in self._records if record)

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
        types = self._get_types(record)
        plan = self._plans.get(types)
        if plan is None:
            if len(self._plans) >= _LAYOUTS_MAX:
                self._plans.clear()
            plan = self._plans[types] = self._cells(types)
        entity: Entity = {}
        for name, at, convert, annotated, annotation, of_texts_only, keeps_empty, kind in plan:
            text = record[at]
            if not text and not keeps_empty:
                continue
            value: Json = text
            if convert is not None:
                try:
                    value = convert(text)
                except ValueError:
                    raise no_value(name, text, kind) from None
            if annotation is not None and not (of_texts_only and type(value) is not str):
                entity[annotated] = annotation
            entity[name] = value
        return entity

    def _cells(self, types: tuple[str, ...]) -> list["_Cell"]:
        """Return how the cells of rows are read that have these types."""
        own = dict(zip(self._type_places, types, strict=True))
        cells = []
        drops_empty = self._drops_empty or not self._is_typed
        for name, at, type_at, type_name in self._columns:
            given = own.get(type_at, "")
            kind = type_named(given) if given else type_name
            reader = READERS[kind]
            keeps_empty = name in KEYS or (bool(given) and not drops_empty and reader.has_empty)
            cells.append(
                _Cell(
                    name,
                    at,
                    reader.convert,
                    name + ANNOTATION,
                    reader.annotation,
                    reader.of_texts_only,
                    keeps_empty,
                    kind,
                )
            )
        return cells

    def position(self) -> Position | None:
        """See `RowReader`."""
        return None if self._waiting else self._lines.position()

    def resume(self, position: Position, row: int) -> None:
        """See `RowReader`."""
        self._lines.resume(position)
        self._waiting.clear()
        self._records = _records(self._lines)
        self._row = row
