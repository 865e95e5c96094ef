"""The date forms of shared access signatures and stored access policies (ISO 8601 as the REST reference narrows it).

`YYYY-MM-DD`, `YYYY-MM-DDThh:mm`, `…:ss` and `…:ss.f` with 1 to 7 digits, each time followed by `Z` or `±hh:mm`.
"""

import re
from datetime import date

from lazulite.protocol.clock import TICKS_PER_SECOND

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?(?:Z|([+-])(\d\d):(\d\d)))?", re.ASCII
)
_EPOCH_DAY = date(1601, 1, 1).toordinal()


def ticks_of(day: date, hour: int, minute: int, second: int) -> int:
    """Return a UTC date and time as ticks.

    Raises:
        ValueError: a time that no day has.
    """
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("no such time of day")
    return (((day.toordinal() - _EPOCH_DAY) * 24 + hour) * 3600 + minute * 60 + second) * TICKS_PER_SECOND


def parse_sas_date(text: str) -> int:
    """Return the instant in ticks; a date alone is its midnight, UTC.

    Raises:
        ValueError: any other form.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError("not a date of the form YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.fffffff]]Z")
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups("0")
    ticks = ticks_of(date(int(year), int(month), int(day)), int(hour), int(minute), int(second))
    ticks += int(fraction.ljust(7, "0"))
    if sign == "0":
        return ticks
    offset = (int(off_hour) * 60 + int(off_minute)) * 60 * TICKS_PER_SECOND
    return ticks - offset if sign == "+" else ticks + offset


def format_sas_date(ticks: int) -> str:
    """Return the instant, cut to whole seconds, as `YYYY-MM-DDThh:mm:ssZ`."""
    days, seconds = divmod(ticks // TICKS_PER_SECOND, 86_400)
    minutes, second = divmod(seconds, 60)
    return f"{date.fromordinal(days + _EPOCH_DAY)}T{minutes // 60:02}:{minutes % 60:02}:{second:02}Z"
