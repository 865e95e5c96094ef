"""Values of Python as values of the SDK, by the type of the property, and back."""

import enum
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_args, get_origin
from uuid import UUID

import msgspec
from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.entities.values import TIME_MIN, check_value
from lazulite_patterns.keys.times import Ticks

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


class PropertyType(NamedTuple):
    """How values of one type are stored. Both functions raise ValueError or TypeError for what is none."""

    edm: str
    write: Callable[[Any], object]
    read: Callable[[Any], Any]


def _must(value: object, kind: type) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _write_int64(value: int) -> EntityProperty:
    if _must(value, int) not in _INT64:
        raise ValueError(f"{value} has more than 64 bits")
    return EntityProperty(int(value), EdmType.INT64)


def _write_int32(value: int) -> int:
    if _must(value, int) not in _INT32:
        raise ValueError(f"{value} has more than 32 bits")
    return int(value)


def _read_int64(value: object) -> int:
    """Read an Int64, or an Int32 of another writer: it is one of the values."""
    if isinstance(value, EntityProperty) and value.edm_type == EdmType.INT64:
        value = value.value
    return int(_must(value, int))


def _write_float(value: float) -> EntityProperty:
    return EntityProperty(float(_must(value, float)), EdmType.DOUBLE)


def _read_float(value: object) -> float:
    return float(value) if type(value) is int else float(_must(value, float))


def _write_time(value: datetime) -> datetime:
    if _must(value, datetime).tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    check_value(value)
    return value


def _write_ticks(value: Ticks) -> EntityProperty:
    if not Ticks.of(TIME_MIN) <= _must(value, Ticks):
        raise ValueError("the time is before 1601")
    return EntityProperty(value.text, EdmType.DATETIME)


def _read_ticks(value: object) -> Ticks:
    found = Ticks.of(_must(value, datetime))
    text = str(getattr(value, "tables_service_value", ""))
    fraction = text.partition(".")[2].rstrip("Z")
    return Ticks(found + int(fraction[6])) if len(fraction) > 6 else found


_TYPES: dict[object, PropertyType] = {
    str: PropertyType("String", lambda value: str(_must(value, str)), lambda value: _must(value, str)),
    int: PropertyType("Int64", _write_int64, _read_int64),
    float: PropertyType("Double", _write_float, _read_float),
    bool: PropertyType("Boolean", lambda value: _must(value, bool), lambda value: _must(value, bool)),
    bytes: PropertyType("Binary", lambda value: _must(value, bytes), lambda value: _must(value, bytes)),
    UUID: PropertyType("Guid", lambda value: _must(value, UUID), lambda value: _must(value, UUID)),
    datetime: PropertyType("DateTime", _write_time, lambda value: _must(value, datetime)),
    Ticks: PropertyType("DateTime", _write_ticks, _read_ticks),
}
INT32 = PropertyType("Int32", _write_int32, lambda value: int(_must(value, int)))
_AS_TEXT = (Decimal, date, time, timedelta)
"""Types without an Edm type, which are stored as the texts that JSON has for them."""


def property_type(kind: object) -> PropertyType | None:
    """Return how values of a type are stored; None for a type that is no property."""
    if (found := _TYPES.get(kind)) is not None:
        return found
    if kind in _AS_TEXT:
        return _as_text(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _enumeration(kind)
    if get_origin(kind) is Literal and all(isinstance(each, str) for each in get_args(kind)):
        return _as_text(kind)
    return None


def json_type(kind: object) -> PropertyType:
    """Return how values of any type are stored as JSON."""
    encode, decoder = msgspec.json.encode, msgspec.json.Decoder(_any(kind))
    return PropertyType("String", lambda value: encode(value).decode(), lambda value: decoder.decode(_must(value, str)))


def _any(kind: object) -> Any:
    return kind


def _as_text(kind: object) -> PropertyType:
    def write(value: object) -> str:
        text = str(msgspec.to_builtins(value))
        msgspec.convert(text, _any(kind))
        return text

    return PropertyType("String", write, lambda value: msgspec.convert(_must(value, str), _any(kind)))


def _enumeration(kind: type[enum.Enum]) -> PropertyType | None:
    kinds = {type(each.value) for each in kind}
    inner = _TYPES.get(kinds.pop()) if len(kinds) == 1 else None
    if inner is None:
        return None
    write, read = inner.write, inner.read
    return PropertyType(inner.edm, lambda value: write(_must(value, kind).value), lambda value: kind(read(value)))
