"""Reclaims the disk space of dropped spaces, in the background, one space at a time.

A drop writes one range deletion; RocksDB removes the rows when it next compacts them. The reclaimer compacts them at
once. RocksDB releases the interpreter's lock while it compacts, so the thread does not delay the event loop.
"""

import asyncio
from functools import partial
from typing import Self

from rocksdict import Rdict

from lazulite.engine.contract import EngineError
from lazulite.engine.key_encoding import index_key, is_listed, space_bounds
from lazulite.engine.rocksdb.errors import STORE_ERRORS
from lazulite.engine.rocksdb.options import compact_options
from lazulite.engine.rocksdb.worker_thread import WorkerThread
from lazulite.engine.thread_pool import ThreadPool


class Reclaimer:
    """Compacts dropped spaces away."""

    def __init__(self) -> None:
        self._worker = ThreadPool(1, "lazulite-reclaim")
        self._options = compact_options()
        self._running: set[asyncio.Future[None]] = set()

    def __enter__(self) -> Self:
        """Return this reclaimer, whose thread ends with the block."""
        return self

    def begin(self, database: Rdict, space: int) -> None:
        """Queue a space for reclamation."""
        work = asyncio.get_running_loop().run_in_executor(self._worker, self._compact, database, space)
        self._running.add(work)
        work.add_done_callback(self._running.discard)

    async def finished(self) -> None:
        """Return when all reclamation begun so far has ended."""
        if running := list(self._running):
            await asyncio.wait(running)

    async def break_off(self, database: Rdict, worker: WorkerThread) -> None:
        """Interrupt reclamation, from another worker. The database can only be closed after this."""
        if self._running:
            await worker.run(partial(database.cancel_all_background, True))
            await self.finished()

    def __exit__(self, *_: object) -> None:
        """End the worker thread."""
        self._worker.shutdown()

    def _compact(self, database: Rdict, space: int) -> None:
        try:
            with STORE_ERRORS:
                start, end = space_bounds(space)
                database.compact_range(start, end, self._options)
                if is_listed(start):
                    database.compact_range(index_key(start), index_key(end), self._options)
        except EngineError:
            return  # Interrupted, or a failure that RocksDB also reports to the next write.
