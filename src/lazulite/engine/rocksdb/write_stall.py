"""Retries of a write while RocksDB stalls writes: bounded in time, off the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lazulite.engine.rocksdb.errors import StalledError
from lazulite.engine.rocksdb.options import RocksSettings

T = TypeVar("T")


async def retry_while_stalled(settings: RocksSettings, timer: Callable[[], float], attempt: Callable[[], T]) -> T:
    """Attempt a write until RocksDB no longer stalls it, for at most `settings.stall_seconds_max`.

    Args:
        settings: bound and interval of the retries.
        timer: returns seconds.
        attempt: makes the whole write, and raises `StalledError` if RocksDB did none of it.

    Raises:
        StalledError: the bound is reached.
    """
    deadline: float | None = None
    while True:
        try:
            return attempt()
        except StalledError:
            now = timer()
            deadline = deadline or now + settings.stall_seconds_max
            if now >= deadline:
                raise
        await asyncio.sleep(settings.stall_retry_seconds)
