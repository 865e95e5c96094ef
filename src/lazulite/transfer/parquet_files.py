"""Parquet. A property is a column; of a property with values of several types, `Name@type` has the types, as in CSV.

A missing property is null. A field's metadata names the type of the service (`edm`) where the one of Parquet does not.
DateTimes are nanoseconds, or texts if one is outside of the years 1678 to 2261, which nanoseconds do not reach.
"""

import hashlib
import io
import marshal
import math
import struct
import tempfile
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, repeat
from typing import IO, Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lazulite.protocol.clock import UNIX_EPOCH_TICKS
from lazulite.table.model.edm import Json, format_datetime
from lazulite.transfer.csv_files import TYPE_SUFFIX
from lazulite.transfer.inputs import ChangedInputError, InputError, Position, Row
from lazulite.transfer.values import (
    ANNOTATION,
    KEYS,
    NULL,
    READERS,
    STRING,
    TIMESTAMP,
    TYPE_OF_JSON,
    Entity,
    RowError,
    property_names,
    set_text,
    text_of,
    type_named,
    type_of,
)

_Array: TypeAlias = "pa.Array[Any]"
_Chunks: TypeAlias = "pa.ChunkedArray[Any]"
_Field: TypeAlias = "pa.Field[Any]"

_GROUP_ROWS = 10_000
_GROUP_BYTES = 64 << 20
_READ_ROWS = 2_000
_PART_BYTES = 16 << 20
"""Bytes of texts that become rows together."""
_FOOTER_BYTES = 64 << 10
_TICKS_OF_UNIT = {"s": 10_000_000, "ms": 10_000, "us": 10}
_FIRST_YEAR, _LAST_YEAR = "1678", "2261"
_LENGTH = struct.Struct("=Q")
"""Of a page in the temporary file, before it."""
_EDM = b"edm"
_LATE = "late DateTime"
"""In place of DateTime, for values that nanoseconds do not reach."""


class _Kind(NamedTuple):
    """How a column of one type is written."""

    arrow: pa.DataType
    convert: Callable[[Any], object] | None = None
    """None: the value is that of JSON."""
    texts: bool = False
    """The values are texts that Arrow reads."""


_KINDS: Mapping[str, _Kind] = {
    STRING: _Kind(pa.string()),
    "Boolean": _Kind(pa.bool_()),
    "Int32": _Kind(pa.int32()),
    "Int64": _Kind(pa.int64(), texts=True),
    "Double": _Kind(pa.float64(), float),
    "DateTime": _Kind(pa.timestamp("ns", "UTC"), texts=True),
    _LATE: _Kind(pa.string()),
    "Guid": _Kind(pa.string()),
    "Binary": _Kind(pa.binary(), a2b_base64),
}


class _PageColumn(NamedTuple):
    """A property of the entities of a page. A value is None where the property is null or missing."""

    types: str | Sequence[str | None]
    """The type of all values, of which none is null; or of each, and None where the property is missing."""
    values: Sequence[Json]


_Page: TypeAlias = tuple[int, Mapping[str, _PageColumn]]
"""The number of its entities, and their properties."""


class ParquetWriter:
    """Writes entities. As the schema needs the types of all, they wait in a temporary file, as columns of each page."""

    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - `finish` closes it
        self._types: dict[str, set[str]] = {name: {STRING} for name in KEYS}
        self.size_bytes = 0

    def write(self, entities: Sequence[Entity]) -> None:
        """Write entities."""
        members = dict.fromkeys(chain.from_iterable(entities))
        columns = {}
        for name in property_names(members):
            column = _page_column(entities, name, is_annotated=name + ANNOTATION in members)
            self._types.setdefault(name, set()).update(_found_types(column))
            columns[name] = tuple(column)
        page = marshal.dumps((len(entities), columns))
        self._spool.write(_LENGTH.pack(len(page)))
        self._spool.write(page)
        self.size_bytes = self._spool.tell()

    def finish(self) -> None:
        """Write the file."""
        columns = {name: _only_type(found) for name, found in self._types.items()}
        schema = pa.schema([field for name, own in columns.items() for field in _fields(name, own)])
        self._spool.seek(0)
        with self._spool as spool, pq.ParquetWriter(self._output, schema, compression="zstd") as writer:
            while pages := _group(spool):
                try:
                    arrays = [array for name, own in columns.items() for array in _arrays(pages, name, own)]
                except UnicodeEncodeError:
                    raise InputError("a text has half of a character, which Parquet cannot have") from None
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        self.size_bytes = self._output.tell() if self._output.seekable() else self.size_bytes


def _page_column(entities: Sequence[Entity], name: str, *, is_annotated: bool) -> _PageColumn:
    """Return a property of the entities of a page. Types are found for all at once, as mostly there is one."""
    values = [entity.get(name) for entity in entities]
    if name == TIMESTAMP:
        return _PageColumn("DateTime", values)
    found = [entity for entity in entities if name in entity] if None in values else entities
    label = name + ANNOTATION
    labels = [entity.get(label) for entity in found] if is_annotated else repeat(None)
    forms = set(zip(labels, map(type, [entity[name] for entity in found])))  # noqa: B905 - `repeat` has no end
    types = {type_named(label) if isinstance(label, str) else TYPE_OF_JSON.get(kind, "") for label, kind in forms}
    if len(types) == 1 and not types & {NULL, ""}:
        return _PageColumn(types.pop(), values)
    return _PageColumn([type_of(entity, name) if name in entity else None for entity in entities], values)


def _found_types(column: _PageColumn) -> set[str]:
    if not isinstance(column.types, str):
        return {found for found in column.types if found is not None}
    if column.types != "DateTime":
        return {column.types}
    texts = [str(value) for value in column.values if value is not None]
    is_near = not texts or (min(texts)[:4] >= _FIRST_YEAR and max(texts)[:4] <= _LAST_YEAR)
    return {column.types} if is_near else {column.types, _LATE}


def _only_type(found: Set[str]) -> str | None:
    """Return the type of all values of a property; None if there are several."""
    if _LATE in found and found <= {_LATE, "DateTime"}:
        return _LATE
    return next(iter(found)) if len(found) == 1 and NULL not in found else None


def _group(spool: IO[bytes]) -> list[_Page]:
    """Return the pages of the next group of rows."""
    pages: list[_Page] = []
    rows, start = 0, spool.tell()
    while rows < _GROUP_ROWS and spool.tell() < start + _GROUP_BYTES and (length := spool.read(_LENGTH.size)):
        # From bytes: of a file, `marshal` would read each value by itself.
        count, columns = marshal.loads(spool.read(*_LENGTH.unpack(length)))  # noqa: S302 - this process wrote it
        pages.append((count, {name: _PageColumn(*column) for name, column in columns.items()}))
        rows += count
    return pages


def _fields(name: str, own: str | None) -> list[_Field]:
    """Return the fields of a property; `own` is the type of all its values, None: there are several."""
    if own is None:
        return [pa.field(name, pa.string()), pa.field(name + TYPE_SUFFIX, pa.string())]
    edm = "DateTime" if own == _LATE else own
    return [pa.field(name, _KINDS[own].arrow, metadata={_EDM: edm.encode()})]


def _arrays(pages: Sequence[_Page], name: str, own: str | None) -> list[_Chunks]:
    """Return the columns of a property, in parts of one page each."""
    parts = [columns.get(name) or _PageColumn([None] * count, [None] * count) for count, columns in pages]
    if own is not None:
        return [pa.chunked_array([_array(column.values, _KINDS[own]) for column in parts])]
    types = [_types_of_each(column) for column in parts]
    texts = [
        [None if found is None else text_of(value) for found, value in zip(each, column.values, strict=True)]
        for each, column in zip(types, parts, strict=True)
    ]
    return [pa.chunked_array([pa.array(part, pa.string()) for part in each]) for each in (texts, types)]


def _array(values: Sequence[Json], kind: _Kind) -> _Array:
    arrow, convert, texts_only = kind
    found = values if convert is None else [None if value is None else convert(value) for value in values]
    return pa.array(found, pa.string()).cast(arrow) if texts_only else pa.array(found, arrow)


def _types_of_each(column: _PageColumn) -> Sequence[str | None]:
    types = column.types
    return [None if value is None else types for value in column.values] if isinstance(types, str) else types


class _Column(NamedTuple):
    """A column to read: its index, its type, and how its array becomes members."""

    name: str
    at: int
    type_at: int
    """The index of the column that has the types; -1: there is none."""
    type_name: str
    members: Callable[[_Array], list[Json]]
    """Returns members of JSON."""


_Planned: TypeAlias = tuple[str, str, str | None, bool, list[Json], list[str | None] | None]
"""A column's name, its annotation's name and value, whether only texts have that, its values, and its types."""


def _annotation(type_name: str) -> tuple[str | None, bool]:
    reader = READERS[type_name]
    return reader.annotation, reader.of_texts_only


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
            self._file = _opened(file)
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
        for batch in _small(self._file.iter_batches(_READ_ROWS, row_groups=groups)) if groups else ():
            arrays = [batch.column(at) for at in range(batch.num_columns)]
            values = [column.members(arrays[column.at]) for column in self._columns]
            types = [None if column.type_at < 0 else arrays[column.type_at].to_pylist() for column in self._columns]
            plan = [
                (column.name, column.name + ANNOTATION, *_annotation(column.type_name), each, own)
                for column, each, own in zip(self._columns, values, types, strict=True)
            ]
            for at in range(min(skipped, batch.num_rows), batch.num_rows):
                self._row += 1
                yield self._read(at, plan)
            skipped = max(skipped - batch.num_rows, 0)

    def _read(self, at: int, plan: Sequence[_Planned]) -> Row:
        entity: Entity = {}
        try:
            for name, annotated, annotation, of_texts_only, values, own in plan:
                value = values[at]
                if value is None:
                    continue
                if own is not None and own[at]:
                    set_text(entity, name, type_named(own[at] or STRING), text_of(value))
                    continue
                if annotation is not None and not (of_texts_only and type(value) is not str):
                    entity[annotated] = annotation
                entity[name] = value
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


def _opened(file: IO[bytes]) -> pq.ParquetFile:
    """Open a file whose repeated values stay single until its rows are made."""
    found = pq.ParquetFile(file)
    metadata = found.metadata
    if not metadata.num_row_groups:
        return found
    group = metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    repeated = [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.physical_type == "BYTE_ARRAY" and any("DICTIONARY" in each for each in chunk.encodings)
    ]
    return pq.ParquetFile(file, read_dictionary=repeated) if repeated else found


def _small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches in parts whose values need little memory, however often a long one is repeated."""
    for batch in batches:
        row_bytes = max(1, sum(_longest(batch.column(at)) for at in range(batch.num_columns)))
        rows = max(1, _PART_BYTES // row_bytes)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _longest(array: _Array) -> int:
    """Return the bytes of the longest text of an array; 0 for other types."""
    values = array.dictionary if isinstance(array, pa.DictionaryArray) else array
    if not isinstance(values, pa.StringArray | pa.BinaryArray | pa.LargeStringArray | pa.LargeBinaryArray):
        return 0
    return pc.max(pc.binary_length(values)).as_py() or 0


def _same(array: _Array) -> list[Json]:
    return array.to_pylist()


def _spelled(members: Callable[[_Array], list[Json]]) -> Callable[[_Array], list[Json]]:
    return lambda array: [None if value is None else text_of(value) for value in members(array)]


def _digits(array: _Array) -> list[Json]:
    return [None if value is None else str(value) for value in array.to_pylist()]


def _doubles(array: _Array) -> list[Json]:
    return [value if value is None or math.isfinite(value) else _NOT_FINITE[repr(value)] for value in array.to_pylist()]


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _binaries(array: _Array) -> list[Json]:
    return [None if value is None else b64encode(value).decode() for value in array.to_pylist()]


def _instants(unit: str) -> Callable[[_Array], list[Json]]:
    def texts(array: _Array) -> list[Json]:
        numbers = array.cast(pa.int64()).to_pylist()
        if unit == "ns":
            ticks = [None if number is None else number // 100 for number in numbers]
        else:
            ticks = [None if number is None else number * _TICKS_OF_UNIT[unit] for number in numbers]
        return [None if each is None else format_datetime(each + UNIX_EPOCH_TICKS) for each in ticks]

    return texts


def _dates(array: _Array) -> list[Json]:
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
    for tells, type_name, members in _READABLE:
        if tells(arrow):
            if pa.types.is_timestamp(arrow):
                members = _instants(arrow.unit)  # noqa: PLW2901 - the one of this unit
            if field.name in KEYS:  # They are texts, whatever the column has.
                return _Column(field.name, at, -1, STRING, _spelled(members))
            return _Column(field.name, at, type_at, own if own in _KINDS else type_name, members)
    raise InputError(f"the column {field.name} has the type {field.type}, which no property has")


_READABLE: Sequence[tuple[Callable[[pa.DataType], bool], str, Callable[[_Array], list[Json]]]] = (
    (pa.types.is_string, STRING, _same),
    (pa.types.is_null, STRING, _same),
    (pa.types.is_large_string, STRING, _same),
    (pa.types.is_boolean, "Boolean", _same),
    (lambda arrow: pa.types.is_integer(arrow) and arrow.bit_width < 32, "Int32", _same),
    (pa.types.is_int32, "Int32", _same),
    (pa.types.is_integer, "Int64", _digits),
    (pa.types.is_floating, "Double", _doubles),
    (pa.types.is_timestamp, "DateTime", _same),
    (pa.types.is_date, "DateTime", _dates),
    (pa.types.is_binary, "Binary", _binaries),
    (pa.types.is_large_binary, "Binary", _binaries),
    (pa.types.is_fixed_size_binary, "Binary", _binaries),
)
"""What tells a type of Arrow, the type of the service, and how its arrays become members."""
