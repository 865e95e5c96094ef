"""Time as the services count it, ticks of 100 ns since 1601-01-01T00:00:00Z, UTC, and as HTTP and XML spell it."""

import time
from collections.abc import Callable
from datetime import date
from functools import lru_cache

from lazulite.engine.contract import Clock

TICKS_PER_SECOND = 10_000_000
_SECONDS_PER_DAY = 86_400
TICKS_PER_DAY = _SECONDS_PER_DAY * TICKS_PER_SECOND
UNIX_EPOCH_TICKS = 116_444_736_000_000_000
"""1970-01-01T00:00:00Z in ticks."""
LAST_TICK = 2_650_467_743_999_999_999
"""9999-12-31T23:59:59.9999999Z, after which no date can be spelled."""
_LAST_SECOND = LAST_TICK // TICKS_PER_SECOND * TICKS_PER_SECOND

_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Counts while the machine is suspended, too. Only Linux has such a clock."""

_EPOCH_DAY = date(1601, 1, 1).toordinal()
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def system_clock() -> int:
    """Return the machine's time in ticks."""
    return time.time_ns() // 100 + UNIX_EPOCH_TICKS


def ticks_since_boot() -> int:
    """Return how long the machine has been running, in ticks, which setting its clock does not change."""
    nanoseconds = time.monotonic_ns() if _BOOT_CLOCK is None else time.clock_gettime_ns(_BOOT_CLOCK)
    return nanoseconds // 100


def steady(clock: Clock, since_boot: Callable[[], int] = ticks_since_boot) -> Clock:
    """Return a clock that begins at the machine's time, and that setting the machine's clock does not change.

    Args:
        clock: the time; any other clock than the machine's is returned as it is.
        since_boot: how long the machine has been running, in ticks.
    """
    if clock is not system_clock:
        return clock
    boot_tick = clock() - since_boot()
    return lambda: boot_tick + since_boot()


def until_9999(clock: Clock) -> Clock:
    """Return a clock that stands still at the last second that can be spelled."""
    return lambda: min(clock(), _LAST_SECOND)


def unix_seconds(ticks: int) -> float:
    """Return ticks as seconds since 1970."""
    return (ticks - UNIX_EPOCH_TICKS) / TICKS_PER_SECOND


def format_http_date(ticks: int) -> str:
    """Return an instant, cut to whole seconds; the last second of the year 9999 for a later one."""
    return _format_second(min(ticks, LAST_TICK) // TICKS_PER_SECOND)


@lru_cache(maxsize=4096)
def _format_second(seconds: int) -> str:
    """Return the text of a second, counted from 1601. One request, and the requests of one moment, name few seconds."""
    day, rest = divmod(seconds, _SECONDS_PER_DAY)
    minutes, second = divmod(rest, 60)
    found = date.fromordinal(day + _EPOCH_DAY)
    written = f"{_WEEKDAYS[found.weekday()]}, {found.day:02} {_MONTHS[found.month - 1]} {found.year}"
    return f"{written} {minutes // 60:02}:{minutes % 60:02}:{second:02} GMT"


__all__ = [
    "LAST_TICK",
    "TICKS_PER_DAY",
    "TICKS_PER_SECOND",
    "UNIX_EPOCH_TICKS",
    "Clock",
    "format_http_date",
    "steady",
    "system_clock",
    "ticks_since_boot",
    "unix_seconds",
    "until_9999",
]
