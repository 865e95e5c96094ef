"""Values of properties as JSON, as the SDK writes and reads them. Its own functions for this are not public."""

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty


class ServiceTime(datetime):
    """A time that keeps its text, with seven digits, as the times of the SDK do."""

    tables_service_value: str


Written = tuple[str | None, object]
"""The type to name beside the value, None for a type that JSON tells; and the value."""

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


def _int32(value: Any) -> Written:
    if int(value) not in _INT32:
        raise TypeError(f"{value} has more than 32 bits")
    return None, int(value)


def _int64(value: Any) -> Written:
    if int(value) not in _INT64:
        raise TypeError(f"{value} has more than 64 bits")
    return "Edm.Int64", str(int(value))


def _double(value: Any) -> Written:
    if isinstance(value, str) or math.isfinite(value):
        return "Edm.Double", value
    return "Edm.Double", "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _time(value: Any) -> Written:
    if isinstance(value, str):
        return "Edm.DateTime", value
    if text := getattr(value, "tables_service_value", None):
        return "Edm.DateTime", str(text)  # All seven digits of a time that was read.
    utc = value.astimezone(UTC) if value.tzinfo is not None else value
    return "Edm.DateTime", utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _text(value: Any) -> Written:
    return None, str(value)


def _boolean(value: Any) -> Written:
    return "Edm.Boolean" if isinstance(value, str) else None, value


_EDM: dict[EdmType, Callable[[Any], Written]] = {
    EdmType.STRING: _text,
    EdmType.BOOLEAN: _boolean,
    EdmType.INT32: _int32,
    EdmType.INT64: _int64,
    EdmType.DOUBLE: _double,
    EdmType.DATETIME: _time,
    EdmType.GUID: lambda value: ("Edm.Guid", str(value)),
    EdmType.BINARY: lambda value: ("Edm.Binary", base64.b64encode(value).decode()),
}
_TYPES: tuple[tuple[type, EdmType], ...] = (
    (str, EdmType.STRING),
    (bool, EdmType.BOOLEAN),
    (int, EdmType.INT32),
    (float, EdmType.DOUBLE),
    (datetime, EdmType.DATETIME),
    (UUID, EdmType.GUID),
    (bytes, EdmType.BINARY),
)
"""The first that fits: a `bool` is an `int`, too."""
_BY_TYPE = {kind: _EDM[edm] for kind, edm in _TYPES}


def edm_type(kind: type) -> EdmType:
    """Return the type of the service that values of a class have.

    Raises:
        TypeError: they have none.
    """
    for each, edm in _TYPES:
        if issubclass(kind, each):
            return edm
    raise TypeError(f"{kind.__name__} is no type of a property")


def _writer(value: object) -> Callable[[Any], Written]:
    found = _BY_TYPE.get(type(value))
    return _EDM[edm_type(type(value))] if found is None else found


def time_of(text: str) -> ServiceTime:
    """Return the time that a text of the service is."""
    found = ServiceTime.fromisoformat(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    found.tables_service_value = text
    return found


_READERS: dict[str, Callable[[Any], object]] = {
    "Edm.Int64": lambda value: EntityProperty(int(value), EdmType.INT64),
    "Edm.Double": float,
    "Edm.DateTime": time_of,
    "Edm.Guid": UUID,
    "Edm.Binary": base64.b64decode,
}
"""Types that JSON does not tell; values of the other ones are those of JSON."""
_TYPE = "@odata.type"


def properties_of(found: Mapping[str, object]) -> dict[str, object]:
    """Return the properties of an entity that was read as JSON with minimal metadata, with its `Timestamp`.

    Raises:
        ValueError: a value is none of its type.
    """
    read: dict[str, object] = {}
    for name, value in found.items():
        if name.startswith("odata.") or name.endswith(_TYPE):
            continue
        reader = _READERS.get(str(found.get(name + _TYPE)))
        read[name] = value if reader is None else reader(value)
    return read


def entity_json(properties: Mapping[str, object]) -> str:
    """Return an entity as JSON of ASCII characters; properties that are None are left out.

    Raises:
        TypeError: a value has no type of the service.
    """
    written: dict[str, object] = {}
    for name, value in properties.items():
        if isinstance(value, EntityProperty):
            if value.value is None:
                continue
            edm, plain = _EDM[EdmType(value.edm_type)](value.value)
        elif value is None:
            continue
        else:
            edm, plain = _writer(value)(value)
        written[name] = plain
        if edm is not None:
            written[f"{name}@odata.type"] = edm
    return json.dumps(written, separators=(",", ":"))
