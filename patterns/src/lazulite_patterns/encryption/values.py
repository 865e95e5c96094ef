"""Values of properties as bytes, and back to what the SDK reads. A code names the type."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.effects.wire import time_of
from lazulite_patterns.encryption.errors import Undecryptable
from lazulite_patterns.entities.errors import EntityValueError

_INT32, _INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)


class _Code(NamedTuple):
    edm: EdmType
    write: Callable[[Any], bytes]
    read: Callable[[bytes], object]


def _time_text(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if text := getattr(value, "tables_service_value", None):
        return str(text).encode()
    utc = value.astimezone(UTC) if value.tzinfo is not None else value
    return cast(bytes, utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode())


def _number(layout: str, numbers: range) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        if int(value) not in numbers:
            raise ValueError(f"{value} is out of the range of its type")
        return struct.pack(layout, int(value))

    return write


_CODES = {
    1: _Code(EdmType.STRING, lambda value: str(value).encode(), lambda octets: octets.decode()),
    2: _Code(EdmType.BINARY, bytes, bytes),
    3: _Code(EdmType.BOOLEAN, lambda value: bytes([bool(value)]), lambda octets: octets == b"\x01"),
    4: _Code(EdmType.INT32, _number(">i", _INT32), lambda octets: struct.unpack(">i", octets)[0]),
    5: _Code(
        EdmType.INT64,
        _number(">q", _INT64),
        lambda octets: EntityProperty(struct.unpack(">q", octets)[0], EdmType.INT64),
    ),
    6: _Code(
        EdmType.DOUBLE, lambda value: struct.pack(">d", float(value)), lambda octets: struct.unpack(">d", octets)[0]
    ),
    7: _Code(EdmType.DATETIME, _time_text, lambda octets: time_of(octets.decode())),
    8: _Code(EdmType.GUID, lambda value: UUID(str(value)).bytes, lambda octets: UUID(bytes=octets)),
}
_BY_EDM = {each.edm: code for code, each in _CODES.items()}
_BY_TYPE: tuple[tuple[type, EdmType], ...] = (
    (str, EdmType.STRING),
    (bool, EdmType.BOOLEAN),
    (int, EdmType.INT32),
    (float, EdmType.DOUBLE),
    (datetime, EdmType.DATETIME),
    (UUID, EdmType.GUID),
    (bytes, EdmType.BINARY),
)
"""The first that fits: a `bool` is an `int`, too."""


def encoded(value: object) -> tuple[int, bytes]:
    """Return the code of a value's type, and its bytes.

    Raises:
        EntityValueError: no property has such a value.
    """
    if isinstance(value, EntityProperty):
        code, plain = _BY_EDM[EdmType(value.edm_type)], value.value
    else:
        edm = next((edm for kind, edm in _BY_TYPE if isinstance(value, kind)), None)
        if edm is None:
            raise EntityValueError(f"{type(value).__name__} is no type of a property")
        code, plain = _BY_EDM[edm], value
    try:
        return code, _CODES[code].write(plain)
    except (ValueError, UnicodeEncodeError) as error:
        raise EntityValueError(str(error)) from error


def decoded(code: int, octets: bytes) -> object:
    """Return the value of bytes that were authenticated.

    Raises:
        Undecryptable: a later version of the library wrote it.
    """
    if (found := _CODES.get(code)) is None:
        raise Undecryptable(f"there is no type with the code {code}")
    return found.read(octets)
