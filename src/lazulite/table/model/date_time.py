"""The instants of Edm.DateTime: their texts, and their ticks (100 ns since 1601-01-01T00:00:00Z).

Source: reference §5.3.
"""

import re
from datetime import date
from functools import lru_cache

from lazulite.protocol.clock import TICKS_PER_SECOND


class DateTime(int):
    """An instant in ticks: 100 ns since 1601-01-01T00:00:00Z. Negative before that."""


_DAY_SECONDS = 86_400
_DAY_LENGTH = len("1601-01-01")
_WHOLE_SECOND_LENGTH = len("1601-01-01T00:00:00Z")
_DAYS_TO_1601 = date(1601, 1, 1).toordinal()
DATETIME_MAX = DateTime((date.max.toordinal() + 1 - _DAYS_TO_1601) * _DAY_SECONDS * TICKS_PER_SECOND - 1)
"""9999-12-31T23:59:59.9999999Z."""

_DATETIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,16}))?)?)?(?:Z|z|([+-])(\d\d):?(\d\d))?", re.ASCII
)
_UTC_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,7}))?Z", re.ASCII)
UTC_INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,7}+)?Z"
"""An expression without groups for the usual form. But for trailing zeros it is the canonical one."""


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
        return f'"{trim_instant(value)}"'
    ticks = parse_datetime(value)
    if not 0 <= ticks <= DATETIME_MAX:
        raise DateTimeRangeError(ticks)
    return f'"{format_datetime(ticks)}"'


def trim_instant(text: str) -> str:
    """Return the canonical form of an instant in the usual one (`UTC_INSTANT`).

    Raises:
        ValueError: no such day, or the instant is before 1601.
    """
    if _midnight(text[:_DAY_LENGTH]) < 0:
        raise ValueError("before the first DateTime")
    if text[-2] != "0" or len(text) == _WHOLE_SECOND_LENGTH:
        return text
    return f"{text[:-1].rstrip('0').rstrip('.')}Z"
