"""An embedded engine's flushes, made to fail, and the wait until the store is open again."""

import asyncio
import os
from collections.abc import Callable

from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.engine.rocksdb.options import RocksSettings

QUICK = RocksSettings(recovery_retry_seconds=0.001, stall_retry_seconds=0.001, stall_seconds_max=0.01)


class Failpoints(dict[str, Callable[[], None]]):
    """Failpoints that a test arms and disarms while the engine runs."""

    def __init__(self) -> None:
        super().__init__()
        self.armed: dict[str, Callable[[], None]] = {}
        for name in ("before_write", "before_sync", "after_sync"):
            self[name] = lambda name=name: self.armed.get(name, lambda: None)()  # type: ignore[misc]  # the default binds

    def fail(self, name: str, text: str) -> None:
        """Fail at a point as the binding does: a bare Exception."""

        def raise_it() -> None:
            raise Exception(text)

        self.armed[name] = raise_it


async def writable_again(engine: Engine) -> None:
    """Return when the engine takes commits."""
    async with asyncio.timeout(30):
        while True:
            try:
                await engine.check_writable()
            except EngineUnavailableError:
                await rest()
            else:
                return


async def rest() -> None:
    """Give up the interpreter for a moment: the threads that open a store starve beside a loop that never rests."""
    await asyncio.to_thread(os.sched_yield)
