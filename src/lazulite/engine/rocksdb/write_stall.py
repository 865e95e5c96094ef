"""What to do while RocksDB is behind with its background work: wait off the event loop, a bounded time."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lazulite.engine.rocksdb.errors import StalledError
from lazulite.engine.rocksdb.options import RocksSettings

T = TypeVar("T")


async def unstalled(settings: RocksSettings, timer: Callable[[], float], attempt: Callable[[], T]) -> T:
    """Try a write, again and again for a while as long as RocksDB refuses it for being behind.

    Args:
        settings: how long, and how often.
        timer: counts seconds.
        attempt: the whole of it, reading included, because others may write between two tries.

    Raises:
        StalledError: the time is up.
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
