"""Dates of HTTP headers and of XML: `Mon, 17 Jun 2019 23:55:48 GMT`. Source: RFC 9110 section 5.6.7.

A list has thousands of different instants on a few days, so days are cached.
"""

from datetime import date
from functools import lru_cache

from lazulite.protocol.clock import LAST_TICK, TICKS_PER_DAY, TICKS_PER_SECOND

_EPOCH_DAY = date(1601, 1, 1).toordinal()
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def format_http_date(ticks: int) -> str:
    """Return an instant, cut to whole seconds; the last second of the year 9999 for a later one."""
    day, rest = divmod(min(ticks, LAST_TICK), TICKS_PER_DAY)
    minutes, second = divmod(rest // TICKS_PER_SECOND, 60)
    return f"{_format_day(day)} {minutes // 60:02}:{minutes % 60:02}:{second:02} GMT"


@lru_cache(maxsize=4096)
def _format_day(day: int) -> str:
    found = date.fromordinal(day + _EPOCH_DAY)
    return f"{_WEEKDAYS[found.weekday()]}, {found.day:02} {_MONTHS[found.month - 1]} {found.year}"
