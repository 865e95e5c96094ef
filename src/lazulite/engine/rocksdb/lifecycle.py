"""The database of a data directory: opened, opened anew after a failure, closed.

After a failed write or sync the content of the disk is unknown: the kernel may have discarded what it could not write,
and the next sync may still succeed. So nothing more is written to that database. Readers keep the last durable state.
Once the disk takes writes again, the database is closed and opened anew. RocksDB then replays its log into new, synced
files. A rejected commit may or may not be there afterwards, but as a whole, and durable if it is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from rocksdict import Rdict

from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.engine.rocksdb.worker_thread import WorkerThread


class DatabaseLifecycle:
    """Keeps the database open as far as the disk allows.

    Args:
        directory: where the database lives.
        adopt: wraps a database that was just opened.
        release: ends all uses of a database that is about to be closed.
        retry_seconds: time between a failure and an attempt to open the database anew, and between attempts.
        worker: runs what blocks.

    Raises:
        DataDirectoryInUseError: another engine has the directory open.
        StoreUnusableError: the database cannot be opened.
    """

    def __init__(
        self,
        directory: DataDirectory,
        adopt: Callable[[Rdict], OpenDatabase],
        release: Callable[[OpenDatabase], Awaitable[None]],
        retry_seconds: float,
        worker: WorkerThread,
    ) -> None:
        self._directory = directory
        self._adopt_database = adopt
        self._release_database = release
        self._retry_seconds = retry_seconds
        self._worker = worker
        self._closing = asyncio.Event()
        self._recovery: asyncio.Task[None] | None = None
        self.current: OpenDatabase | None = None
        """The open database; None while there is none."""
        self._adopt(directory.open())

    @property
    def closing(self) -> bool:
        """Whether `close` was called."""
        return self._closing.is_set()

    def opened(self) -> OpenDatabase:
        """Return the open database.

        Raises:
            EngineUnavailableError: there is none.
        """
        if self.current is None:
            raise EngineUnavailableError("the store is not open")
        return self.current

    def writable(self) -> OpenDatabase:
        """Return the open database for a write.

        Raises:
            EngineUnavailableError: there is none, it has failed, or it is closing.
        """
        database = self.opened()
        if self.closing:
            raise EngineUnavailableError("the store is closing")
        database.check_writable()
        return database

    async def close(self) -> None:
        """Reject commits from now on, answer those in flight, and close the database."""
        self._closing.set()
        if self._recovery is not None:
            await self._recovery
        if self.current is not None:
            await self.current.group_commit.drain()
        await self._release()

    # --- opening anew

    def _adopt(self, database: Rdict) -> None:
        adopted = self._adopt_database(database)
        adopted.group_commit.on_failure = self._recover_soon
        self.current = adopted

    async def _release(self) -> None:
        """Close the database once all its uses have ended."""
        database, self.current = self.current, None
        if database is None:
            return
        try:
            await self._release_database(database)
        finally:
            await self._in_worker(self._directory.close, database.database)

    def _recover_soon(self) -> None:
        if not self.closing:
            self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        """Try to open the database anew until that succeeds or the engine closes."""
        while not await self._closes_meanwhile():
            try:
                if await self._reopen():
                    return
            except (EngineError, OSError, MemoryError):
                continue

    async def _reopen(self) -> bool:
        """Close the database, if the disk takes writes again, and open it anew; return whether that was done."""
        if self.current is not None:
            if not await self._worker.run(self._directory.has_room):
                return False
            await self._release()
        database = await self._worker.run(self._directory.open)
        try:
            self._adopt(database)
        except BaseException:  # A database left open would block the next attempt.
            await self._in_worker(self._directory.close, database)
            raise
        return True

    async def _in_worker(self, action: Callable[[Rdict], None], database: Rdict) -> None:
        await self._worker.run(partial(action, database))

    async def _closes_meanwhile(self) -> bool:
        """Wait for the retry interval; return early, with True, if the engine closes."""
        try:
            async with asyncio.timeout(self._retry_seconds):
                await self._closing.wait()
        except TimeoutError:
            return False
        return True
