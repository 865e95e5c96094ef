"""The eight Edm types: what each accepts as JSON, its canonical JSON literal, its decoded value, its size.

Invariants: a *literal* is the one canonical, ASCII-only JSON text of a value, and the only form in which values are
stored and sent; `decode(literal)` gives the value that comparisons use. Two values of one type are equal exactly when
their literals are (except NaN and the zeros of Edm.Double).

Source: reference §5.3 (JSON encodings as recorded), §5.2 (sizes of the Microsoft billing formula).
"""

import json
from base64 import b64decode
from collections.abc import Callable
from typing import NamedTuple

from lazulite.table.model.date_time import DateTime, datetime_literal, parse_datetime
from lazulite.table.model.literals import (
    Guid,
    Json,
    binary_literal,
    boolean_literal,
    double_literal,
    guid_literal,
    int32_literal,
    int64_literal,
    string_literal,
)

Value = str | bool | int | float | DateTime | Guid | bytes
"""A decoded value: String, Boolean, Int32 or Int64, Double, DateTime, Guid, Binary in this order."""


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _unquote(literal: str) -> str:
    text = json.loads(literal)
    assert isinstance(text, str)
    return text


def string_size(value: str) -> int:
    """Return the bytes of a String in the billing formula, given its value."""
    return 2 * utf16_length(value) + 4


def _binary_size(literal: str) -> int:
    return (len(literal) - 2) // 4 * 3 - literal.count("=", -3) + 4


class EdmType(NamedTuple):
    """One primitive type.

    `literal` takes a parsed JSON value to its canonical literal and raises ValueError where it is none of this type;
    `decode` takes a literal to its value; `size` to its bytes in the billing formula; `limit` is the most that `size`
    may give. `annotated` types carry an `@odata.type` in minimal metadata.
    """

    name: str
    annotated: bool
    literal: Callable[[Json], str]
    decode: Callable[[str], Value]
    size: Callable[[str], int]
    limit: int = 8


STRING = EdmType(
    "Edm.String", False, string_literal, _unquote, lambda text: string_size(_unquote(text)), 2 * 32_768 + 4
)
BOOLEAN = EdmType("Edm.Boolean", False, boolean_literal, lambda text: text == "true", lambda _: 1)
INT32 = EdmType("Edm.Int32", False, int32_literal, int, lambda _: 4)
INT64 = EdmType("Edm.Int64", True, int64_literal, lambda text: int(text[1:-1]), lambda _: 8)
DOUBLE = EdmType("Edm.Double", False, double_literal, lambda text: float(text.strip('"')), lambda _: 8)
DATETIME = EdmType("Edm.DateTime", True, datetime_literal, lambda text: parse_datetime(text[1:-1]), lambda _: 8)
GUID = EdmType("Edm.Guid", True, guid_literal, lambda text: Guid(text[1:-1]), lambda _: 16, 16)
BINARY = EdmType(
    "Edm.Binary",
    True,
    binary_literal,
    lambda text: b64decode(text[1:-1]),
    _binary_size,
    65_536 + 4,
)

TYPES: dict[str, EdmType] = {edm.name: edm for edm in (STRING, BOOLEAN, INT32, INT64, DOUBLE, DATETIME, GUID, BINARY)}
"""By the name that annotations use."""


def needs_annotation(edm: EdmType, literal: str) -> bool:
    """Tell whether minimal metadata must name the type: always for some types, for a Double only if it is a string."""
    return edm.annotated or (edm is DOUBLE and literal[0] == '"')


def type_of_literal(literal: str) -> EdmType:
    """Return the type of an unannotated canonical literal."""
    first = literal[0]
    if first == '"':
        return STRING
    if first in "tf":
        return BOOLEAN
    return DOUBLE if "." in literal or "E" in literal else INT32


def type_of_json(value: Json) -> EdmType:
    """Return the type that an unannotated JSON value declares by its shape.

    Raises:
        ValueError: an object or an array.
    """
    edm = _BY_SHAPE.get(type(value))
    if edm is None:
        raise ValueError("not a primitive value")
    return edm


_BY_SHAPE: dict[type, EdmType] = {str: STRING, bool: BOOLEAN, int: INT32, float: DOUBLE}
