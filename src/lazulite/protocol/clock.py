"""Time as the services count it: ticks of 100 ns since 1601-01-01T00:00:00Z, UTC."""

import time

from lazulite.engine.contract import Clock

TICKS_PER_SECOND = 10_000_000
UNIX_EPOCH_TICKS = 116_444_736_000_000_000
"""1970-01-01T00:00:00Z in ticks."""


def system_clock() -> int:
    """Return the machine's time in ticks."""
    return time.time_ns() // 100 + UNIX_EPOCH_TICKS


def unix_seconds(ticks: int) -> float:
    """Return ticks as seconds since 1970."""
    return (ticks - UNIX_EPOCH_TICKS) / TICKS_PER_SECOND


__all__ = ["TICKS_PER_SECOND", "UNIX_EPOCH_TICKS", "Clock", "system_clock", "unix_seconds"]
