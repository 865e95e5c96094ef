"""The embedded engine: one RocksDB database, group commit, and nothing shown that is not durable.

What must hold, beside the invariants of `group_commit`:

1. A commit reads, decides and notes its changes without giving the loop a turn. Commits are so in one order, which
   generations, and with them the log, keep.
2. A generation goes to RocksDB's log unsynced (`sync = False`), on the event loop's thread because the binding keeps
   the interpreter's lock meanwhile; a worker thread then syncs the log, which lets go of it. What a power cut leaves is
   a prefix of the order of commits.
3. Each generation carries the greatest stamp given so far. Stamps grow over the whole store, over restarts, and over a
   clock that steps back.
4. A dropped space stays closed to commits until this process ends; its number is never used again, so that is enough.
5. After a failed write or sync nobody knows what the disk holds: the kernel may have thrown away what it could not
   write and sync without complaint the next time. So nothing more is written to that database. Readers go on to see
   the last durable state. Once the disk takes writes again the database is closed and opened, which replays the log
   into new, synced files; what was refused may then be there or not, but whole, and durable if it is.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

from rocksdict import Rdict

from lazulite.engine.contract import (
    Clock,
    Decide,
    EngineError,
    EngineUnavailableError,
    KeyRange,
    SpaceDroppedError,
)
from lazulite.engine.key_encoding import (
    encode_key,
    encode_text,
    partition_prefix,
    range_bounds,
)
from lazulite.engine.rocksdb.checkpoint import make_checkpoint
from lazulite.engine.rocksdb.commit_group import UNCHANGED
from lazulite.engine.rocksdb.data_directory import Location
from lazulite.engine.rocksdb.database import Failpoints, Store
from lazulite.engine.rocksdb.flush_stats import Meter
from lazulite.engine.rocksdb.group_commit import GroupCommit
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.rocksdb.reclaimer import Reclaimer
from lazulite.engine.rocksdb.scan import Cursor, RowSlice


class _Outcome(NamedTuple):
    """What came of one try of a commit, and what to await before anybody may know."""

    stamp: int
    refusal: Exception | None
    durable: asyncio.Future[None] | None


class RocksEngine:
    """An `Engine` in one directory (or in memory), for one process and one event loop."""

    def __init__(
        self,
        location: Location,
        clock: Clock,
        settings: RocksSettings,
        failpoints: Failpoints,
        timer: Callable[[], float],
        meter: Meter | None = None,
    ) -> None:
        """Use `open`."""
        self._location = location
        self._clock = clock
        self._settings = settings
        self._failpoints = failpoints
        self._timer = timer
        self._meter = meter
        self._flusher = ThreadPoolExecutor(1, "lazulite-flush")
        self._reclaimer = Reclaimer()
        self._closing = asyncio.Event()
        self._recovery: asyncio.Task[None] | None = None
        self._cursors: set[Cursor] = set()
        self._dropped: set[int] = set()
        self._store: Store | None = None
        self._adopt(location.open())

    @classmethod
    def open(
        cls,
        path: Path | None,
        clock: Clock,
        settings: RocksSettings | None = None,
        *,
        failpoints: Failpoints | None = None,
        timer: Callable[[], float] = time.perf_counter,
        meter: Meter | None = None,
    ) -> Self:
        """Open the store in a directory, made if missing; None keeps everything in memory.

        `timer` counts seconds for the slices of a scan, for stalls and for `meter`, which is told of each flush.

        Raises:
            LocationInUseError: another engine has it open.
            StoreUnusableError: it is damaged, of a newer format, or no place for a store.
        """
        settings = settings or RocksSettings()
        return cls(Location(path, settings), clock, settings, failpoints or {}, timer, meter)

    @property
    def name(self) -> str:
        """Where the store lives, for messages."""
        return self._location.name

    @property
    def newest_stamp(self) -> int:
        """The greatest stamp given so far, 0 at first."""
        return self._opened().stamp

    def statistics(self) -> dict[str, int]:
        """Return some numbers of the store, see `database.STATISTICS`; none while it is not open."""
        return {} if self._store is None else self._store.statistics()

    # --- reading

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """See `Engine.get`."""
        key = encode_key(space, partition, row)
        store = self._opened()
        value = store.group.durable(key)
        if value is UNCHANGED:
            if space in self._dropped:
                await self._emptied(store.group, space)
                return None
            return store.read(key)
        return value

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None
    ) -> AsyncGenerator[RowSlice, None]:
        """See `Engine.scan`."""
        bounds = [range_bounds(space, key_range) for key_range in ranges]
        store = self._opened()
        if space in self._dropped:
            await self._emptied(store.group, space)
            return
        durable = store.group.durable_within(bounds)
        cursor = Cursor(store.database, bounds, durable, limit, self._settings)
        self._cursors.add(cursor)
        del store  # A scan may outlive it.
        try:
            while not cursor.done:
                yield cursor.read(self._timer)
                await asyncio.sleep(0)
        finally:
            self._cursors.discard(cursor)
            cursor.close()

    async def _emptied(self, group: GroupCommit, space: int) -> None:
        """Return when a drop that was begun is durable."""
        pending = group.settled((), space)
        if pending is not None:
            await pending

    def _opened(self) -> Store:
        if self._store is None:
            raise EngineUnavailableError("the store is not open")
        return self._store

    # --- writing

    async def commit(self, space: int, partition: str, rows: Sequence[str], decide: Decide) -> int:
        """See `Engine.commit`."""
        prefix = partition_prefix(space, partition)
        keys = {row: prefix + encode_text(row) for row in rows}
        group = self._opened().group
        if group.full:
            await group.room()
        stamp, refusal, durable = self._decided(space, rows, keys, decide)
        if durable is not None:
            await durable
        if refusal is not None:
            raise refusal
        return stamp

    def _decided(self, space: int, rows: Sequence[str], keys: Mapping[str, bytes], decide: Decide) -> _Outcome:
        """Read, decide and note the changes, in one step."""
        store = self._writable()
        group = store.group
        if space in self._dropped:
            return _Outcome(0, SpaceDroppedError(f"space {space} was dropped"), group.settled((), space))
        current = self._latest(store, keys)
        stamp = max(self._clock(), store.stamp + 1)
        try:
            changes = decide([current[row] for row in rows], stamp)
            changed = [(keys[row], current[row], value) for row, value in changes.items()]
        except Exception as refusal:  # noqa: BLE001 - any refusal at all; it is raised once it may be.
            return _Outcome(0, refusal, group.settled(keys.values(), space))
        group.change(changed)
        store.stamp = stamp
        return _Outcome(stamp, None, group.written() if changed else group.settled(keys.values(), space))

    def _latest(self, store: Store, keys: Mapping[str, bytes]) -> dict[str, bytes | None]:
        """Return the latest values of rows, given their keys."""
        latest, stored = store.group.latest, store.read
        found: dict[str, bytes | None] = {}
        for row, key in keys.items():
            value = latest(key)
            found[row] = stored(key) if value is UNCHANGED else value
        return found

    async def drop(self, space: int) -> None:
        """See `Engine.drop`."""
        store = self._writable()
        if space in self._dropped:  # Were this drop to fail, the space would be open again.
            await self._emptied(store.group, space)
            return
        store.group.drop(space)
        self._dropped.add(space)
        await store.group.written()
        if self._store is not None and not self._closing.is_set():
            self._reclaimer.begin(self._store.database, space)

    async def check_writable(self) -> None:
        """See `Engine.check_writable`."""
        self._clock()  # Raises if commits could have no stamp.
        await self._writable().group.written()

    async def checkpoint(self, path: Path) -> None:
        """Make a checkpoint: all that was acknowledged so far and nothing that is not durable. Commits wait meanwhile.

        Args:
            path: a directory that does not exist, on the store's file system.

        Raises:
            EngineError: it cannot be made.
        """
        store = self._writable()
        async with store.group.held():
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._flusher, make_checkpoint, store.database, path)

    def _writable(self) -> Store:
        store = self._opened()
        if self._closing.is_set():
            raise EngineUnavailableError("the store is closing")
        store.check_writable()
        return store

    async def reclaimed(self) -> None:
        """Return when the room of the spaces dropped so far has been given back (or that was given up)."""
        await self._reclaimer.finished()

    # --- opening again, and closing

    def _adopt(self, database: Rdict) -> None:
        settings, timer = self._settings, self._timer
        home, meter = self._location, self._meter
        store = Store(database, home.durable, home.note_synced, self._flusher, settings, timer, self._failpoints, meter)
        store.stamp = store.last_stamp()
        store.group.failed = self._recover_soon
        store.group.refused = self._dropped.difference_update
        self._store = store

    async def _release(self) -> None:
        """Close the database and everything that keeps it open."""
        store, self._store = self._store, None
        if store is None:
            return
        loop = asyncio.get_running_loop()
        try:
            for cursor in list(self._cursors):
                cursor.close()
            self._dropped -= store.group.unsettled_drops()
            await self._reclaimer.break_off(store.database, self._flusher)
        finally:
            await loop.run_in_executor(self._flusher, self._location.close, store.database)

    def _recover_soon(self) -> None:
        if not self._closing.is_set():
            self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        """Once the disk takes writes again, close the database and open it anew; try until that succeeds."""
        while not await self._paused():
            try:
                if await self._reopened():
                    return
            except (EngineError, OSError, MemoryError):
                continue

    async def _reopened(self) -> bool:
        """Close the database, if the disk takes writes again, and open it anew; say whether that was done."""
        loop = asyncio.get_running_loop()
        if self._store is not None:
            if not await loop.run_in_executor(self._flusher, self._location.has_room):
                return False
            await self._release()
        database = await loop.run_in_executor(self._flusher, self._location.open)
        try:
            self._adopt(database)
        except BaseException:  # Whatever it is: left open, it would be in the way of the next try.
            await loop.run_in_executor(self._flusher, self._location.close, database)
            raise
        return True

    async def _paused(self) -> bool:
        """Let a while pass; say whether the engine is closing, which ends the wait."""
        try:
            async with asyncio.timeout(self._settings.recovery_retry_seconds):
                await self._closing.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """See `Engine.close`. Commits are refused from now on; those in flight are answered first."""
        self._closing.set()
        if self._recovery is not None:
            await self._recovery
        if self._store is not None:
            await self._store.group.drain()
        await self._release()
        self._flusher.shutdown()
        self._reclaimer.shutdown()
