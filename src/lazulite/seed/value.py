"""A value of a seed with its place, read as what a key of the schema holds.

Each method takes the value as one kind of thing, or raises `SeedError` with the reason and the place.
"""

from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import NoReturn
from uuid import UUID

from lazulite.resources.tables import Literal
from lazulite.seed.positions import Path
from lazulite.table.model.edm import (
    BINARY,
    BOOLEAN,
    DATETIME,
    DOUBLE,
    GUID,
    INT32,
    INT64,
    STRING,
    format_double,
    parse_datetime,
    type_of_json,
)

TYPES = {
    "string": STRING,
    "boolean": BOOLEAN,
    "int32": INT32,
    "int64": INT64,
    "double": DOUBLE,
    "datetime": DATETIME,
    "guid": GUID,
    "binary": BINARY,
}
"""The key of a table with one key, by which a value of a property names its type -> the type."""
_INT32_MAX = 1 << 31


class SeedError(ValueError):
    """A seed is wrong, or cannot be applied.

    Args:
        at: the place in the seed.
        reason: one line for people, without secrets.
    """

    def __init__(self, at: Path, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Value:
    """A value, and its place."""

    raw: object
    at: Path

    def fail(self, reason: str) -> NoReturn:
        """Reject the value."""
        raise SeedError(self.at, reason)

    def fields(self, known: Collection[str]) -> dict[str, "Value"]:
        """Return the values of a table by their keys, which are some of `known`."""
        found = dict(self.named())
        for name, value in found.items():
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(known)}"
                value.fail(f"there is no key {name!r} here; {hint}")
        return found

    def named(self) -> Iterator[tuple[str, "Value"]]:
        """Yield the keys of a table with their values."""
        if not isinstance(self.raw, Mapping):
            self.fail("must be a table")
        for name, value in self.raw.items():
            yield str(name), Value(value, (*self.at, str(name)))

    def items(self) -> list["Value"]:
        """Return the elements of an array."""
        if not isinstance(self.raw, list | tuple):
            self.fail("must be an array")
        return [Value(each, (*self.at, index)) for index, each in enumerate(self.raw)]

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.raw, str):
            self.fail("must be a string")
        return self.raw

    def one_of(self, choices: Collection[str]) -> str:
        """Return one of some strings."""
        text = self.text()
        if text not in choices:
            self.fail(f"must be one of {', '.join(choices)}")
        return text

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.raw, bool):
            self.fail("must be true or false")
        return self.raw

    def integer(self, least: int, most: int) -> int:
        """Return a whole number in a range."""
        if type(self.raw) is not int or not least <= self.raw <= most:
            self.fail(f"must be a whole number from {least} to {most}")
        return self.raw

    def texts(self) -> dict[str, str]:
        """Return a table of strings."""
        return {name: value.text() for name, value in self.named()}

    def instant(self) -> int:
        """Return a time, in ticks."""
        if isinstance(self.raw, str):
            try:
                return parse_datetime(self.raw)
            except ValueError:
                self.fail("must be a time, such as 2026-01-31T12:00:00Z")
        return parse_datetime(self.utc())

    def utc(self) -> str:
        """Return a time of TOML as a client writes it."""
        if not isinstance(self.raw, datetime) or self.raw.tzinfo is None:
            self.fail("must be a time with its zone, such as 2026-01-31T12:00:00Z")
        return self.raw.astimezone(UTC).isoformat().replace("+00:00", "Z")

    def literal(self) -> Literal:
        """Return the value of a property of an entity, with its type."""
        if isinstance(self.raw, Mapping):
            return self._declared()
        try:
            return _shaped(self)
        except ValueError as error:
            if isinstance(error, SeedError):
                raise
            self.fail(str(error))

    def _declared(self) -> Literal:
        (name, value), *others = [*self.fields(TYPES).items()] or [("", self)]
        if others or not name:
            self.fail('a type is a table with one key, such as {guid = "…"}')
        edm = TYPES[name]
        raw = value.utc() if isinstance(value.raw, datetime) else value.raw
        try:
            return Literal(edm, _checked_double(raw) if edm is DOUBLE else edm.literal(raw))  # type: ignore[arg-type]  # it raises for what is no JSON
        except (ValueError, AttributeError, TypeError):
            value.fail(f"is no {name}")


def _shaped(value: Value) -> Literal:
    """Return the literal of a value whose type its form tells. Raises `ValueError`."""
    raw = value.raw
    if isinstance(raw, float):
        return Literal(DOUBLE, _checked_double(raw))
    if isinstance(raw, bytes):
        return Literal(BINARY, BINARY.literal(b64encode(raw).decode()))
    if isinstance(raw, UUID):
        return Literal(GUID, GUID.literal(str(raw)))
    if isinstance(raw, bool | int | str):
        edm = type_of_json(raw)
        if edm is INT32 and not -_INT32_MAX <= raw < _INT32_MAX:  # type: ignore[operator]  # it is an integer
            edm = INT64
        return Literal(edm, edm.literal(raw))
    return Literal(DATETIME, DATETIME.literal(value.utc()))


def _checked_double(raw: object) -> str:
    """Return the literal of a Double; of TOML's `inf` and `nan`, too."""
    if isinstance(raw, float):
        return format_double(raw)
    return DOUBLE.literal(raw)  # type: ignore[arg-type]  # it raises for what is no JSON
