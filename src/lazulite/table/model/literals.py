"""The canonical literals of the Edm types, but Edm.DateTime: the one ASCII-only JSON text of each value.

Each function takes a value as a JSON parser returns it, and raises ValueError for a value that is none of its type.

Source: reference §5.3 (JSON encodings as recorded).
"""

import math
import re
import string
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from json.encoder import encode_basestring_ascii as quote


class Guid(str):
    """A GUID in its canonical lower-case 8-4-4-4-12 form."""

    __slots__ = ()


Json = str | bool | int | float | list["Json"] | dict[str, "Json"] | None
"""What a JSON parser returns."""

_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_GUID_LENGTH = 36
_BASE64 = (string.ascii_letters + string.digits + "+/").encode()
_BASE64_MAX = 65_536 * 4 // 3 + 2
"""Characters of the longest Binary."""
_INT64_DIGITS = 19
"""Numbers of fewer digits are in its range."""
_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
DECIMAL_LENGTH_MAX = 32_768
"""Characters of a Double that is sent as a string: as many as a String may have."""
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,5})?", re.ASCII)
_NOT_A_NUMBER = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "INF": math.inf, "-INF": -math.inf}


def parse_guid(text: str) -> Guid:
    """Read a GUID in 8-4-4-4-12 form, any case.

    Raises:
        ValueError: not such a text.
    """
    if len(text) != _GUID_LENGTH or _GUID.fullmatch(text.lower()) is None:
        raise ValueError("not a GUID")
    return Guid(text.lower())


_SHORT_DIGITS = 15
"""Where so many digits give a number back, .NET writes them without trailing zeros, as Python does; else it writes
17."""


def format_double(value: float) -> str:
    """Return the JSON literal of a Double, digits as .NET's round-trip format writes them (`10.0`, `1E+15`)."""
    if math.isfinite(value):
        return finite_literal(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def finite_literal(value: float) -> str:
    """Return the literal of a Double that is a number; see `format_double`."""
    text = repr(value)  # The shortest text that gives the number back.
    if "e" not in text:
        if len(text) <= 1 + _SHORT_DIGITS:
            return text
        if text[-1] != "0" and len(text.lstrip("-0.").replace(".", "")) > _SHORT_DIGITS:
            return f"{value:.17g}"
    text = f"{value:.15g}"
    if float(text) != value:
        text = f"{value:.17g}"
    text = text.upper()
    return text if "." in text or "E" in text else text + ".0"


def string_literal(value: Json) -> str:
    """Return the literal of a String."""
    if not isinstance(value, str):
        raise ValueError("not a string")
    return quote(value)


def boolean_literal(value: Json) -> str:
    """Return the literal of a Boolean; the texts `true` and `false` in any case are accepted."""
    text = "true" if value is True else "false" if value is False else ""
    if isinstance(value, str) and len(value) <= len("false"):
        text = value.lower()
    if text not in ("true", "false"):
        raise ValueError("not a Boolean")
    return text


def _integer(value: Json, limit: int) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is not int or not -limit <= value < limit:
        raise ValueError("not an integer of this size")
    return value


def int32_literal(value: Json) -> str:
    """Return the literal of an Int32; a text of digits is accepted."""
    return str(_integer(value, 1 << 31))


def int64_literal(value: Json) -> str:
    """Return the literal of an Int64, a string; a text of digits and an integer are accepted."""
    if (
        isinstance(value, str)
        and len(value) < _INT64_DIGITS
        and value.isdigit()
        and value.isascii()
        and value[0] != "0"
    ):
        return f'"{value}"'
    return f'"{_integer(value, 1 << 63)}"'


def double_literal(value: Json) -> str:
    """Return the literal of a Double; decimal texts and the names of NaN and the infinities are accepted."""
    if isinstance(value, str) and value in _NOT_A_NUMBER:
        return format_double(_NOT_A_NUMBER[value])
    number = value if type(value) is float else _to_float(value)
    if not math.isfinite(number):
        raise ValueError("out of the range of a Double")
    return finite_literal(number)


def _to_float(value: Json) -> float:
    if isinstance(value, str):
        if len(value) > DECIMAL_LENGTH_MAX or _DECIMAL.fullmatch(value) is None:
            raise ValueError("not a Double")
        return float(value)
    if type(value) is not int:
        raise ValueError("not a Double")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def guid_literal(value: Json) -> str:
    """Return the literal of a Guid, in lower case."""
    if not isinstance(value, str):
        raise ValueError("not a Guid")
    return f'"{parse_guid(value)}"'


def binary_literal(value: Json) -> str:
    """Return the literal of a Binary; the unused bits of the last character become 0."""
    if not isinstance(value, str):
        raise ValueError("not base64")
    digits = value.rstrip("=")
    if len(value) % 4 or len(value) - len(digits) > 2:  # Python takes more of them.
        raise ValueError("not base64")
    if len(value) > _BASE64_MAX:  # It is too large, and only to be distinguished from what is no Binary at all.
        if digits.encode("ascii").translate(None, _BASE64):
            raise ValueError("not base64")
        return f'"{value}"'
    try:
        b64decode(value, validate=True)
        # What is valid can only differ from the canonical text in the bits that its last character has too many.
        return f'"{value[:-4]}{b64encode(b64decode(value[-4:])).decode()}"'
    except Base64Error as error:
        raise ValueError("not base64") from error
