"""Parquet. A property is a column; of a property with values of several types, `Name@type` has the types, as in CSV.

A missing property is null. A field's metadata names the type of the service (`edm`) where the one of Parquet does not.
DateTimes are nanoseconds, or texts if one is outside of the years 1678 to 2261, which nanoseconds do not reach.
"""

import hashlib
import io
import json
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import IO, Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lazulite.protocol.clock import UNIX_EPOCH_TICKS
from lazulite.table.model.edm import Json, format_datetime, parse_datetime
from lazulite.transfer.csv_files import TYPE_SUFFIX
from lazulite.transfer.inputs import ChangedInputError, InputError, Position, Row
from lazulite.transfer.json_lines import JsonLinesWriter
from lazulite.transfer.values import (
    KEYS,
    NULL,
    STRING,
    TIMESTAMP,
    Entity,
    RowError,
    property_names,
    set_text,
    text_of,
    type_named,
    type_of,
)

_Array: TypeAlias = "pa.Array[Any]"
_Field: TypeAlias = "pa.Field[Any]"

_GROUP_ROWS = 10_000
_GROUP_BYTES = 64 << 20
_READ_ROWS = 2_000
_FOOTER_BYTES = 64 << 10
_TICKS_OF_UNIT = {"s": 10_000_000, "ms": 10_000, "us": 10}
_NANOSECONDS_MAX = (1 << 63) - 1
_EDM = b"edm"
_LATE = "late DateTime"
"""In place of DateTime, for values that nanoseconds do not reach."""


def _nanoseconds(value: Json) -> int:
    return (parse_datetime(str(value)) - UNIX_EPOCH_TICKS) * 100


class _Kind(NamedTuple):
    """How a column of one type is written."""

    arrow: pa.DataType
    convert: Callable[[Json], object]


def _same(value: Json) -> object:
    return value


_KINDS: Mapping[str, _Kind] = {
    STRING: _Kind(pa.string(), _same),
    "Boolean": _Kind(pa.bool_(), _same),
    "Int32": _Kind(pa.int32(), _same),
    "Int64": _Kind(pa.int64(), lambda value: int(str(value))),
    "Double": _Kind(pa.float64(), lambda value: float(str(value))),
    "DateTime": _Kind(pa.timestamp("ns", "UTC"), _nanoseconds),
    _LATE: _Kind(pa.string(), _same),
    "Guid": _Kind(pa.string(), _same),
    "Binary": _Kind(pa.binary(), lambda value: b64decode(str(value))),
}


class ParquetWriter:
    """Writes entities. As the schema needs the types of all, they wait in a temporary file."""

    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - `finish` closes it
        self._lines = JsonLinesWriter(self._spool)
        self._types: dict[str, set[str]] = {name: {STRING} for name in KEYS}
        self.size_bytes = 0

    def write(self, entities: Sequence[Entity]) -> None:
        """Write entities."""
        for entity in entities:
            for name in property_names(entity):
                found = "DateTime" if name == TIMESTAMP else type_of(entity, name)
                if found == "DateTime" and abs(_nanoseconds(entity[name])) > _NANOSECONDS_MAX:
                    found = _LATE
                self._types.setdefault(name, set()).add(found)
        self._lines.write(entities)
        self.size_bytes = self._lines.size_bytes

    def finish(self) -> None:
        """Write the file."""
        columns = {name: _only_type(found) for name, found in self._types.items()}
        schema = pa.schema([field for name, own in columns.items() for field in _fields(name, own)])
        self._spool.seek(0)
        with self._spool as spool, pq.ParquetWriter(self._output, schema, compression="zstd") as writer:
            while entities := _group(spool):
                try:
                    arrays = [array for name, own in columns.items() for array in _arrays(entities, name, own)]
                except UnicodeEncodeError:
                    raise InputError("a text has half of a character, which Parquet cannot have") from None
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        self.size_bytes = self._output.tell() if self._output.seekable() else self.size_bytes


def _only_type(found: Set[str]) -> str | None:
    """Return the type of all values of a property; None if there are several."""
    if _LATE in found and found <= {_LATE, "DateTime"}:
        return _LATE
    return next(iter(found)) if len(found) == 1 and NULL not in found else None


def _group(spool: IO[bytes]) -> list[Entity]:
    """Return the entities of the next group of rows."""
    entities: list[Entity] = []
    left = _GROUP_BYTES
    for line in islice(spool, _GROUP_ROWS):
        entities.append(json.loads(line))
        left -= len(line)
        if left <= 0:
            break
    return entities


def _fields(name: str, own: str | None) -> list[_Field]:
    """Return the fields of a property; `own` is the type of all its values, None: there are several."""
    if own is None:
        return [pa.field(name, pa.string()), pa.field(name + TYPE_SUFFIX, pa.string())]
    edm = "DateTime" if own == _LATE else own
    return [pa.field(name, _KINDS[own].arrow, metadata={_EDM: edm.encode()})]


def _arrays(entities: Sequence[Entity], name: str, own: str | None) -> list[_Array]:
    if own is not None:
        convert, arrow = _KINDS[own].convert, _KINDS[own].arrow
        values = [convert(entity[name]) if name in entity else None for entity in entities]
        return [pa.array(values, pa.int64()).cast(arrow) if own == "DateTime" else pa.array(values, arrow)]
    texts = [text_of(entity[name]) if name in entity else None for entity in entities]
    types = [type_of(entity, name) if name in entity else None for entity in entities]
    return [pa.array(texts, pa.string()), pa.array(types, pa.string())]


class _Column(NamedTuple):
    """A column to read: its index, its type, and how its array becomes texts."""

    name: str
    at: int
    type_at: int
    """The index of the column that has the types; -1: there is none."""
    type_name: str
    texts: Callable[[_Array], list[str | None]]


class ParquetReader:
    """Reads rows.

    Raises:
        InputError: it is no Parquet, or has a column that no property can be.
    """

    types: Mapping[str, str]

    def __init__(self, file: IO[bytes]) -> None:
        if not file.seekable():
            file = io.BytesIO(file.read())
        self.size_bytes: int | None = file.seek(0, io.SEEK_END)
        file.seek(max(self.size_bytes - _FOOTER_BYTES, 0))
        self._digest = hashlib.blake2b(file.read() + str(self.size_bytes).encode(), digest_size=16).hexdigest()
        file.seek(0)
        try:
            self._file = pq.ParquetFile(file)
        except pa.ArrowInvalid as error:
            raise InputError(f"the file is not Parquet: {str(error)[:200]}") from None
        names = self._file.schema_arrow.names
        self._columns = [
            _column(field, at, names.index(field.name + TYPE_SUFFIX) if field.name + TYPE_SUFFIX in names else -1)
            for at, field in enumerate(self._file.schema_arrow)
            if field.name != TIMESTAMP and not field.name.endswith(TYPE_SUFFIX)
        ]
        self.types = {column.name: column.type_name for column in self._columns}
        self._row = 0

    @property
    def read_bytes(self) -> int:
        """See `RowReader`."""
        total = max(self._file.metadata.num_rows, 1)
        return (self.size_bytes or 0) * self._row // total

    def rows(self) -> Iterator[Row]:
        """See `RowReader`."""
        metadata, first, skipped = self._file.metadata, 0, self._row
        while first < metadata.num_row_groups and skipped >= metadata.row_group(first).num_rows:
            skipped -= metadata.row_group(first).num_rows
            first += 1
        groups = list(range(first, metadata.num_row_groups))
        for batch in self._file.iter_batches(_READ_ROWS, row_groups=groups) if groups else ():
            arrays = [batch.column(at) for at in range(batch.num_columns)]
            values = [column.texts(arrays[column.at]) for column in self._columns]
            types = [None if column.type_at < 0 else arrays[column.type_at].to_pylist() for column in self._columns]
            for at in range(min(skipped, batch.num_rows), batch.num_rows):
                self._row += 1
                yield self._read(at, values, types)
            skipped = max(skipped - batch.num_rows, 0)

    def _read(self, at: int, values: Sequence[list[str | None]], types: Sequence[list[str | None] | None]) -> Row:
        entity: Entity = {}
        try:
            for column, texts, own in zip(self._columns, values, types, strict=True):
                text, kind = texts[at], column.type_name
                if text is None:
                    continue
                if own is not None:
                    kind = type_named(own[at] or STRING)
                set_text(entity, column.name, kind, text)
        except RowError as error:
            return Row(self._row, None, str(error))
        return Row(self._row, entity)

    def position(self) -> Position | None:
        """See `RowReader`."""
        return {"digest": self._digest}

    def resume(self, position: Position, row: int) -> None:
        """See `RowReader`."""
        if position.get("digest") != self._digest:
            raise ChangedInputError("the input has changed since")
        self._row = row


def _texts(array: _Array) -> list[str | None]:
    return array.to_pylist()


def _scalars(array: _Array) -> list[str | None]:
    return [None if value is None else text_of(value) for value in array.to_pylist()]


def _doubles(array: _Array) -> list[str | None]:
    return [None if value is None else _NOT_FINITE.get(repr(value), repr(value)) for value in array.to_pylist()]


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _binaries(array: _Array) -> list[str | None]:
    return [None if value is None else b64encode(value).decode() for value in array.to_pylist()]


def _instants(unit: str) -> Callable[[_Array], list[str | None]]:
    def texts(array: _Array) -> list[str | None]:
        numbers = array.cast(pa.int64()).to_pylist()
        if unit == "ns":
            ticks = [None if number is None else number // 100 for number in numbers]
        else:
            ticks = [None if number is None else number * _TICKS_OF_UNIT[unit] for number in numbers]
        return [None if each is None else format_datetime(each + UNIX_EPOCH_TICKS) for each in ticks]

    return texts


def _dates(array: _Array) -> list[str | None]:
    return [None if value is None else f"{value.isoformat()}T00:00:00Z" for value in array.to_pylist()]


def _column(field: _Field, at: int, type_at: int) -> _Column:
    """Return how a field is read.

    Raises:
        InputError: no property can be like it.
    """
    arrow = field.type
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    own = (field.metadata or {}).get(_EDM, b"").decode("ascii", "replace")
    for tells, type_name, texts in _READABLE:
        if tells(arrow):
            if pa.types.is_timestamp(arrow):
                texts = _instants(arrow.unit)  # noqa: PLW2901 - the one of this unit
            return _Column(field.name, at, type_at, own if own in _KINDS else type_name, texts)
    raise InputError(f"the column {field.name} has the type {field.type}, which no property has")


_READABLE: Sequence[tuple[Callable[[pa.DataType], bool], str, Callable[[_Array], list[str | None]]]] = (
    (pa.types.is_string, STRING, _texts),
    (pa.types.is_large_string, STRING, _texts),
    (pa.types.is_boolean, "Boolean", _scalars),
    (lambda arrow: pa.types.is_integer(arrow) and arrow.bit_width < 32, "Int32", _scalars),
    (pa.types.is_int32, "Int32", _scalars),
    (pa.types.is_integer, "Int64", _scalars),
    (pa.types.is_floating, "Double", _doubles),
    (pa.types.is_timestamp, "DateTime", _texts),
    (pa.types.is_date, "DateTime", _dates),
    (pa.types.is_binary, "Binary", _binaries),
    (pa.types.is_large_binary, "Binary", _binaries),
    (pa.types.is_fixed_size_binary, "Binary", _binaries),
)
"""What tells a type of Arrow, the type of the service, and how its arrays become texts."""
