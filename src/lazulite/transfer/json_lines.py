"""JSON lines: an entity in each line, as the service sends it at minimal metadata, and `lazulite table` prints it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from lazulite.transfer.inputs import InputLines, Position, Row
from lazulite.transfer.values import ANNOTATION, Entity, RowError, property_names, type_of

_INT32 = 1 << 31
_FORMS_MAX = 512


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
        self._forms: dict[tuple[tuple[str, ...], tuple[type, ...]], Sequence[str]] = {}
        """By the members that were checked, and their types of Python: see `_checked`."""

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
                yield Row(self._row, self._entity(line))
            except RowError as error:
                yield Row(self._row, None, str(error))

    def _entity(self, line: str) -> Entity:
        try:
            entity = _DECODER.decode(line)
        except (ValueError, RecursionError):
            raise RowError("the line is not JSON") from None
        if not isinstance(entity, dict):
            raise RowError("the line is no object of JSON")
        form = tuple(entity), tuple(map(type, entity.values()))
        integers = self._forms.get(form)
        if integers is None:
            integers = _checked(entity)
            if len(self._forms) < _FORMS_MAX and tuple(entity) == form[0]:
                self._forms[form] = integers
        for name in integers:
            value = entity[name]
            if not -_INT32 <= value < _INT32:
                entity[name + ANNOTATION] = "Edm.Int64"
                entity[name] = str(value)
        return entity

    def position(self) -> Position | None:
        """See `RowReader`."""
        return self._lines.position()

    def resume(self, position: Position, row: int) -> None:
        """See `RowReader`."""
        self._lines.resume(position)
        self._row = row


def _checked(entity: Entity) -> Sequence[str]:
    """Remove the members of OData, and return the names of integers without an annotation.

    Raises:
        RowError: a member is no property.
    """
    for name in [name for name in entity if name.startswith("odata.")]:
        del entity[name]
    names = property_names(entity)
    for name in names:
        type_of(entity, name)
    return [name for name in names if type(entity[name]) is int and name + ANNOTATION not in entity]
