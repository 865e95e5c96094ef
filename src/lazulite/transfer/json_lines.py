"""JSON lines: an entity in each line, as the service sends it at minimal metadata, and `lazulite table` prints it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from lazulite.transfer.inputs import InputLines, Position, Row
from lazulite.transfer.values import ANNOTATION, Entity, RowError, property_names, type_of

_INT32 = 1 << 31


class JsonLinesWriter:
    """Writes entities as lines of JSON."""

    def __init__(self, output: IO[bytes]) -> None:
        self.size_bytes = 0
        self._output = output

    def write(self, entities: Sequence[Entity]) -> None:
        """Write entities."""
        encode = json.dumps
        lines = "".join([f"{encode(entity)}\n" for entity in entities]).encode("ascii")
        self._output.write(lines)
        self.size_bytes += len(lines)

    def finish(self) -> None:
        """Write what is left: nothing."""


def _reject_constant(text: str) -> None:
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_constant=_reject_constant)


class JsonLinesReader:
    """Reads lines of JSON. A line of blanks is none.

    Integers beyond 32 bits need no annotation here: they become Int64.
    """

    types: Mapping[str, str] = {}

    def __init__(self, lines: InputLines) -> None:
        self._lines = lines
        self._row = 0

    @property
    def size_bytes(self) -> int | None:
        """See `RowReader`."""
        return self._lines.size_bytes

    @property
    def read_bytes(self) -> int:
        """See `RowReader`."""
        return self._lines.offset

    def rows(self) -> Iterator[Row]:
        """See `RowReader`."""
        for line in self._lines:
            if line.isspace():
                continue
            self._row += 1
            try:
                yield Row(self._row, _entity(line))
            except RowError as error:
                yield Row(self._row, None, str(error))

    def position(self) -> Position | None:
        """See `RowReader`."""
        return self._lines.position()

    def resume(self, position: Position, row: int) -> None:
        """See `RowReader`."""
        self._lines.resume(position)
        self._row = row


def _entity(line: str) -> Entity:
    try:
        entity = _DECODER.decode(line)
    except (ValueError, RecursionError):
        raise RowError("the line is not JSON") from None
    if not isinstance(entity, dict):
        raise RowError("the line is no object of JSON")
    for name in [name for name in entity if name.startswith("odata.")]:
        del entity[name]
    for name in property_names(entity):
        type_of(entity, name)
        value = entity[name]
        if type(value) is int and not -_INT32 <= value < _INT32 and name + ANNOTATION not in entity:
            entity[name + ANNOTATION] = "Edm.Int64"
            entity[name] = str(value)
    return entity
