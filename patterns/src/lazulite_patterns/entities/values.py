"""Values of properties: which of them the service takes, and their bytes by its formula.

Source: "Understanding the Table service data model", and the formula of the description of capacity billing.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.effects.wire import edm_type
from lazulite_patterns.keys.characters import units

TEXT_UNITS_MAX = 32_768
BINARY_BYTES_MAX = 65_536
TIME_MIN = datetime(1601, 1, 1, tzinfo=UTC)
"""The first time that the service stores."""
_TIME_MAX = datetime.max.replace(tzinfo=UTC)
_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,5})?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,16})?)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})


class _Type(NamedTuple):
    """Values of one Edm type. `check` raises TypeError or ValueError for a value that the service does not take."""

    check: Callable[[Any], object]
    size: Callable[[Any], int]


def _reject(value: object, kind: EdmType) -> TypeError:
    return TypeError(f"{value!r:.80} is no {kind.value}")


def _text(value: Any) -> None:
    if (count := units(str(value))) > TEXT_UNITS_MAX:
        raise ValueError(f"{count} UTF-16 units, {TEXT_UNITS_MAX} are allowed")


def _binary(value: Any) -> None:
    if not isinstance(value, bytes):
        raise _reject(value, EdmType.BINARY)
    if len(value) > BINARY_BYTES_MAX:
        raise ValueError(f"{len(value)} bytes, {BINARY_BYTES_MAX} are allowed")


def _boolean(value: Any) -> None:
    if not isinstance(value, bool) and not (isinstance(value, str) and value.lower() in {"true", "false"}):
        raise _reject(value, EdmType.BOOLEAN)


def _integer(bits: int, kind: EdmType) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if not isinstance(value, int | str) or isinstance(value, bool):
            raise _reject(value, kind)
        if not -(1 << bits - 1) <= int(value) < 1 << bits - 1:
            raise ValueError(f"{value} has more than {bits} bits")

    return check


def _double(value: Any) -> None:
    if isinstance(value, str):
        if value not in _NO_NUMBERS and (_DECIMAL.fullmatch(value) is None or not math.isfinite(float(value))):
            raise _reject(value, EdmType.DOUBLE)
    elif not isinstance(value, int | float) or isinstance(value, bool):
        raise _reject(value, EdmType.DOUBLE)
    else:
        float(value)  # OverflowError: an integer without end.


def _time(value: Any) -> None:
    if isinstance(value, str) and _TIME.fullmatch(value) is not None:
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise _reject(value, EdmType.DATETIME)
    utc = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if utc < TIME_MIN:
        raise ValueError(f"{value} is before 1601")
    if utc > _TIME_MAX:
        raise ValueError(f"{value} is after 9999")


def _guid(value: Any) -> None:
    if not isinstance(value, UUID) and not (isinstance(value, str) and _GUID.fullmatch(value)):
        raise _reject(value, EdmType.GUID)


_TYPES: dict[EdmType, _Type] = {
    EdmType.STRING: _Type(_text, lambda value: 4 + 2 * units(str(value))),
    EdmType.BINARY: _Type(_binary, lambda value: 4 + len(value)),
    EdmType.BOOLEAN: _Type(_boolean, lambda _: 1),
    EdmType.INT32: _Type(_integer(32, EdmType.INT32), lambda _: 4),
    EdmType.INT64: _Type(_integer(64, EdmType.INT64), lambda _: 8),
    EdmType.DOUBLE: _Type(_double, lambda _: 8),
    EdmType.DATETIME: _Type(_time, lambda _: 8),
    EdmType.GUID: _Type(_guid, lambda _: 16),
}


_OF_CLASSES: dict[type, _Type] = {}
"""The types of classes that were met."""


def _typed(value: object) -> tuple[_Type, object]:
    if isinstance(value, EntityProperty):
        return _TYPES[EdmType(value.edm_type)], value.value
    if (found := _OF_CLASSES.get(type(value))) is None:
        found = _OF_CLASSES[type(value)] = _TYPES[edm_type(type(value))]
    return found, value


def is_absent(value: object) -> bool:
    """Tell whether a property with this value is not sent."""
    return value is None or (isinstance(value, EntityProperty) and value.value is None)


def check_value(value: object) -> None:
    """Reject a value that the service would reject, or store as another one.

    Raises:
        TypeError, ValueError, OverflowError: there is no such property; the message says why.
    """
    kind, plain = _typed(value)
    kind.check(plain)


def value_size(value: object) -> int:
    """Return the bytes of a value by the service's formula. `value` is as the SDK takes it, and not None."""
    kind, plain = _typed(value)
    return kind.size(plain)
