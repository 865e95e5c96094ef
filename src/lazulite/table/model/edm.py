"""The eight Edm types: what each accepts as JSON, its canonical JSON literal, its decoded value, its size.

Invariants: a *literal* is the one canonical, ASCII-only JSON text of a value, and the only form in which values are
stored and sent; `decode(literal)` gives the value that comparisons use. Two values of one type are equal exactly when
their literals are (except NaN and the zeros of Edm.Double). A function that makes literals takes a value as a JSON
parser returns it, and raises ValueError for a value that is none of its type. Instants are ticks: 100 ns since
1601-01-01T00:00:00Z.

Source: reference §5.3 (JSON encodings as recorded), §5.2 (sizes of the Microsoft billing formula).
"""

import json
import math
import re
import string
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple

from lazulite.protocol.clock import TICKS_PER_SECOND

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

_SHORT_DIGITS = 15
"""Where so many digits give a number back, .NET writes them without trailing zeros, as Python does; else it writes
17."""

_DAY_SECONDS = 86_400
_DAY_LENGTH = len("1601-01-01")
_WHOLE_SECOND_LENGTH = len('"1601-01-01T00:00:00Z"')
_DAYS_TO_1601 = date(1601, 1, 1).toordinal()

_DATETIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,16}))?)?)?(?:Z|z|([+-])(\d\d):?(\d\d))?", re.ASCII
)
_UTC_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,7}))?Z", re.ASCII)
UTC_INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,7}+)?Z"
"""An expression without groups for the usual form. But for trailing zeros it is the canonical one."""


class Guid(str):
    """A GUID in its canonical lower-case 8-4-4-4-12 form."""

    __slots__ = ()


def parse_guid(text: str) -> Guid:
    """Read a GUID in 8-4-4-4-12 form, any case.

    Raises:
        ValueError: not such a text.
    """
    if len(text) != _GUID_LENGTH or _GUID.fullmatch(text.lower()) is None:
        raise ValueError("not a GUID")
    return Guid(text.lower())


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


class DateTime(int):
    """An instant in ticks: 100 ns since 1601-01-01T00:00:00Z. Negative before that."""


DATETIME_MAX = DateTime((date.max.toordinal() + 1 - _DAYS_TO_1601) * _DAY_SECONDS * TICKS_PER_SECOND - 1)
"""9999-12-31T23:59:59.9999999Z."""


class DateTimeRangeError(ValueError):
    """A DateTime before 1601 or after 9999. `text` is the instant as .NET prints it in its error."""

    def __init__(self, ticks: int) -> None:
        super().__init__("out of the range of a DateTime")
        seconds = ticks // TICKS_PER_SECOND
        days, rest = divmod(seconds, _DAY_SECONDS)
        ordinal = min(max(days + _DAYS_TO_1601, 1), date.max.toordinal())
        day = date.fromordinal(ordinal)
        self.text = f"{day.month:02}/{day.day:02}/{day.year:04} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


@lru_cache(maxsize=4096)
def _midnight(day: str) -> int:
    """Return the ticks at which a day begins; ValueError if there is no such day."""
    return (date.fromisoformat(day).toordinal() - _DAYS_TO_1601) * _DAY_SECONDS * TICKS_PER_SECOND


def parse_datetime(text: str) -> DateTime:
    """Read an ISO 8601 instant; no offset means UTC.

    Digits beyond the seventh of a fraction are dropped (*unverified* on the live service; Go programs send nine).

    Raises:
        ValueError: not such a text, or no such day or time.
    """
    usual = _UTC_INSTANT.fullmatch(text)
    if usual is not None:
        day, hour, minute, second, fraction = usual.groups("")
        seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
        return DateTime(_midnight(day) + seconds * TICKS_PER_SECOND + int(fraction.ljust(7, "0")))
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ValueError("not an ISO 8601 instant")
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups("0")
    if hour > "23" or minute > "59" or second > "59" or offset_hour > "14" or offset_minute > "59":
        raise ValueError("no such time")
    days = date(int(year), int(month), int(day)).toordinal() - _DAYS_TO_1601
    offset = (int(offset_hour) * 60 + int(offset_minute)) * (-60 if sign == "-" else 60)
    seconds = days * _DAY_SECONDS + int(hour) * 3600 + int(minute) * 60 + int(second) - offset
    return DateTime(seconds * TICKS_PER_SECOND + int(fraction[:7].ljust(7, "0")))


@lru_cache(maxsize=1024)
def _format_second(seconds: int) -> str:
    days, rest = divmod(seconds, _DAY_SECONDS)
    day = date.fromordinal(days + _DAYS_TO_1601)
    return f"{day.isoformat()}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def format_datetime(ticks: int) -> str:
    """Format an instant as the service does: UTC, trailing zeros of the fraction (and a bare point) trimmed."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    if not fraction:
        return _format_second(seconds) + "Z"
    return f"{_format_second(seconds)}.{fraction:07}".rstrip("0") + "Z"


def format_datetime7(ticks: int) -> str:
    """Format an instant with all seven digits of its fraction."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_format_second(seconds)}.{fraction:07}Z"


def datetime_literal(value: object) -> str:
    """Return the canonical literal of a DateTime, given as parsed JSON.

    Raises:
        DateTimeRangeError: the instant is out of range.
        ValueError: the value is no DateTime.
    """
    if not isinstance(value, str):
        raise ValueError("not a DateTime")
    if _UTC_INSTANT.fullmatch(value) is not None and _midnight(value[:_DAY_LENGTH]) >= 0:
        return trimmed_instant(f'"{value}"')
    ticks = parse_datetime(value)
    if not 0 <= ticks <= DATETIME_MAX:
        raise DateTimeRangeError(ticks)
    return f'"{format_datetime(ticks)}"'


def trimmed_instant(literal: str) -> str:
    """Return the canonical literal of an instant in the usual form (`UTC_INSTANT`), both in quotes.

    Raises:
        ValueError: no such day, or the instant is before 1601.
    """
    if _midnight(literal[1 : 1 + _DAY_LENGTH]) < 0:
        raise ValueError("before the first DateTime")
    if literal[-3] != "0" or len(literal) == _WHOLE_SECOND_LENGTH:
        return literal
    return f'{literal[:-2].rstrip("0").rstrip(".")}Z"'


Value = str | bool | int | float | DateTime | Guid | bytes
"""A decoded value: String, Boolean, Int32 or Int64, Double, DateTime, Guid, Binary in this order."""


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _unquote(literal: str) -> str:
    text = literal[1:-1] if "\\" not in literal else json.loads(literal)
    assert isinstance(text, str)
    return text


def string_size(value: str) -> int:
    """Return the bytes of a String in the billing formula, given its value."""
    return 2 * utf16_length(value) + 4


def _binary_size(literal: str) -> int:
    return (len(literal) - 2) // 4 * 3 - literal.count("=", -3) + 4


class EdmType(NamedTuple):
    """One primitive type.

    `literal` takes a parsed JSON value to its canonical literal and raises ValueError where it is not of this type;
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
