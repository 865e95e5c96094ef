"""The embedded engine: one RocksDB database, group commit, and readers that see durable values only.

Invariants beside those of `group_commit`:

1. A commit reads, decides and joins the open commit group in one step of the event loop. So commits have one order,
   and the commit groups, and with them the log, keep it.
2. A group is written to RocksDB's log unsynced (`sync = False`), on the event loop's thread: the binding keeps the
   interpreter's lock meanwhile. A worker thread then syncs the log without that lock. A power cut therefore leaves a
   prefix of the order of commits.
3. Each group stores the newest commit timestamp. Timestamps grow over the whole store, over restarts, and over a clock
   that steps back.
4. A dropped space rejects commits until this process ends. Its number is never reused, so that is enough.
5. After a failed write or sync the database is opened again: see `database`.

The disk space of dropped spaces is reclaimed in the background, one space at a time. A drop writes one range deletion;
RocksDB removes the rows when it next compacts them. The reclaimer compacts them at once. RocksDB releases the
interpreter's lock while it compacts, so the thread does not delay the event loop.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from rocksdict import Rdict

from lazulite.engine.commit import Commit, CompanionWrite, Decision, Needs, Values
from lazulite.engine.commit_needs import commit_prepared
from lazulite.engine.contract import (
    UNKNOWN,
    Clock,
    EngineError,
    EngineUnavailableError,
    KeyRange,
    SpaceDroppedError,
    Unknown,
    Waiter,
)
from lazulite.engine.key_encoding import (
    encode_key,
    encode_keys,
    index_key,
    is_listed,
    range_bounds,
    space_bounds,
    space_prefix,
)
from lazulite.engine.rocksdb.change_log import ChangeLog
from lazulite.engine.rocksdb.data_directory import DataDirectory, make_checkpoint
from lazulite.engine.rocksdb.database import DatabaseLifecycle, Failpoints, OpenDatabase, Rows
from lazulite.engine.rocksdb.flush_stats import FlushObserver
from lazulite.engine.rocksdb.group_commit import (
    STORE_ERRORS,
    UNCHANGED,
    GroupCommit,
    KeyChange,
    Outcome,
    WorkerThread,
    changes_by_key,
)
from lazulite.engine.rocksdb.options import RocksSettings, compact_options
from lazulite.engine.rocksdb.rollback_journal import WITH_INDEXES, read_format
from lazulite.engine.rocksdb.scan import Cursor, RowSlice, sorted_rows
from lazulite.engine.rocksdb.snapshot import StoreSnapshot
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


T = TypeVar("T")


class Written(NamedTuple):
    """The outcome of conditional writes. Write number i has the timestamp `first + i`."""

    first: int
    declined: Collection[int]
    """The numbers of those that did nothing."""


class RocksEngine:
    """An `Engine` in one directory (or in memory), for one process and one event loop."""

    def __init__(
        self,
        directory: DataDirectory,
        clock: Clock,
        settings: RocksSettings,
        failpoints: Failpoints,
        timer: Callable[[], float],
        flush_observer: FlushObserver | None = None,
        change_log: ChangeLog | None = None,
    ) -> None:
        """Use `open`."""
        self.name = directory.name
        """The store's name in messages: its directory, or `memory`."""
        self._directory = directory
        self._clock = clock
        self._settings = settings
        self._failpoints = failpoints
        self._timer = timer
        self._flush_observer = flush_observer
        self._change_log = change_log
        self._cursors: set[Cursor | StoreSnapshot] = set()
        self._dropped: set[int] = set()
        self._fences: dict[int, int] = {}
        retry_seconds = settings.recovery_retry_seconds
        with ExitStack() as threads:
            self._flusher = threads.enter_context(WorkerThread("lazulite-flush"))
            self._reclaimer = threads.enter_context(Reclaimer())
            self._lifecycle = DatabaseLifecycle(directory, self._wrap, self._release, retry_seconds, self._flusher)
            self._threads = threads.pop_all()

    @classmethod
    def open(
        cls,
        path: Path | None,
        clock: Clock,
        settings: RocksSettings | None = None,
        *,
        failpoints: Failpoints | None = None,
        timer: Callable[[], float] = time.perf_counter,
        flush_observer: FlushObserver | None = None,
        change_log: ChangeLog | None = None,
    ) -> Self:
        """Open the store in a directory, made if missing; None keeps everything in memory.

        Args:
            path: the data directory.
            clock: the time now, for commit timestamps.
            settings: RocksDB's tunables; None for the defaults.
            failpoints: see `database.Failpoints`.
            timer: returns seconds, for the slices of a scan, for stalls and for `flush_observer`.
            flush_observer: receives each flush that succeeds.
            change_log: receives each commit group that is durable, for replicas.

        Raises:
            DataDirectoryInUseError: another engine has it open.
            StoreUnusableError: it is damaged, of a newer format, or holds other files.
        """
        settings = settings or RocksSettings()
        directory = DataDirectory(path, settings)
        return cls(directory, clock, settings, failpoints or {}, timer, flush_observer, change_log)

    @property
    def newest_timestamp(self) -> int:
        """The greatest commit timestamp so far, in ticks; 0 in a new store."""
        return self._lifecycle.opened().newest_timestamp

    def statistics(self) -> dict[str, int]:
        """Return some numbers of the store, see `database.STATISTICS`; none while it is not open."""
        database = self._lifecycle.current
        return {} if database is None else database.statistics()

    # --- reading

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """Return one row's value, see `Engine.get`."""
        value = self.get_now(space, partition, row)
        if value is not UNKNOWN:
            return value
        database = self._lifecycle.opened()
        if space in self._dropped:
            await self._until_dropped(database.group_commit, space)
            return None
        return database.get(encode_key(space, partition, row))

    reads_now = commits_now = True

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        """Return one row's value, or `UNKNOWN`, see `Engine.get_now`."""
        key = encode_key(space, partition, row)
        database = self._lifecycle.current
        if database is None:
            return UNKNOWN
        value = database.group_commit.durable(key)
        if value is not UNCHANGED:
            return value
        if space in self._dropped:
            return UNKNOWN
        try:
            return database.get(key)
        except EngineError:
            return UNKNOWN

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[RowSlice, None]:
        """Yield the rows of some ranges, see `Engine.scan`."""
        bounds = [range_bounds(space, key_range) for key_range in ranges]
        database = self._lifecycle.opened()
        if space in self._dropped:
            await self._until_dropped(database.group_commit, space)
            return
        durable = sorted_rows(database.group_commit.durable_within(bounds))
        cursor = Cursor(database.database, bounds, durable, limit, self._settings, keys_only=keys_only)
        self._cursors.add(cursor)
        del database  # A scan may outlive it.
        try:
            while not cursor.done:
                yield cursor.next_slice(self._timer)
                await asyncio.sleep(0)
        finally:
            self._cursors.discard(cursor)
            cursor.close()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[StoreSnapshot]:
        """See `Engine.snapshot`."""
        database = self._lifecycle.opened()
        snapshot = StoreSnapshot(database.database, database.group_commit.undone)
        self._cursors.add(snapshot)
        del database  # A snapshot may outlive it.
        try:
            yield snapshot
        finally:
            self._cursors.discard(snapshot)
            snapshot.close()

    async def _until_dropped(self, group_commit: GroupCommit, space: int) -> None:
        """Return when the drop of a space is durable."""
        pending = group_commit.until_durable((), space)
        if pending is not None:
            await pending

    # --- writing

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        """Commit rows of one partition, see `Engine.commit`."""
        keys = encode_keys(space, partition, commit.rows)
        database = self._lifecycle.writable()
        if database.group_commit.full:
            await database.group_commit.wait_for_room()
            database = self._lifecycle.writable()
        current = database.latest_of(keys)
        if current is None:
            result, durable = await self._read_and_join(database, space, commit, keys)
        else:
            result, durable = self._join(database, space, commit, keys, current)
            del current  # While the commit waits, the old values need not be kept.
        if durable is not None:
            await durable
        if isinstance(result, Exception):
            raise result
        if isinstance(result, Needs):
            return await commit_prepared(self, space, partition, commit, result)
        return result

    async def _read_and_join(
        self, database: OpenDatabase, space: int, commit: Commit[T], keys: Sequence[bytes]
    ) -> Outcome[T]:
        """Read the rows in several steps, then decide and join the open commit group in one."""
        group_commit = database.group_commit
        with group_commit.read_ahead() as reads:
            for _ in database.read_ahead(keys, reads):
                await asyncio.sleep(0)
                if self._lifecycle.writable() is not database:
                    raise EngineUnavailableError("the store was opened again meanwhile")
            while group_commit.full:
                await group_commit.wait_for_room()
            self._lifecycle.writable()
            return self._join(database, space, commit, keys, reads.values(keys))

    def _join(
        self, database: OpenDatabase, space: int, commit: Commit[T], keys: Sequence[bytes], current: Values
    ) -> Outcome[T]:
        """Decide on the latest values of rows, and join the open commit group, in the step that read them last."""
        group_commit = database.group_commit
        refusal = self._refusal(space, commit)
        if refusal is not None:
            return Outcome(refusal, group_commit.until_durable((), space))
        timestamp = max(self._clock(), database.newest_timestamp + 1)
        try:
            decision = commit.decide(current, timestamp)
        except Exception as rejection:  # noqa: BLE001 - any rejection at all; it is raised once its reads are durable.
            return Outcome(rejection, group_commit.until_durable(keys, space))
        if isinstance(decision, Needs):
            return Outcome(decision, None)
        changed = changes_by_key(commit.rows, keys, current, decision.changes)
        if changed is None:
            return Outcome(commit.naming(decision.changes), None)
        if decision.companions:
            changed += self._companion_changes(database, decision.companions)
        group_commit.join(changed)
        database.newest_timestamp = timestamp
        if changed:
            return Outcome(decision.result, group_commit.until_all_durable())
        return Outcome(decision.result, group_commit.until_durable(keys, space))

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> T | Unknown:
        """Decide a commit in this step, or return `UNKNOWN`, see `Engine.commit_now`."""
        database = self._lifecycle.current
        if database is None or self._lifecycle.closing or self._refusal(space, commit) is not None:
            return UNKNOWN
        group_commit = database.group_commit
        if group_commit.failure is not None or group_commit.full:
            return UNKNOWN
        keys = encode_keys(space, partition, commit.rows)
        try:
            current = database.latest_of(keys)
            timestamp = max(self._clock(), database.newest_timestamp + 1)
            decision = None if current is None else commit.decide(current, timestamp)
        except Exception:  # noqa: BLE001 - any rejection at all; `commit` raises it once its reads are durable.
            return UNKNOWN
        if current is None or not isinstance(decision, Decision):
            return UNKNOWN
        changed = changes_by_key(commit.rows, keys, current, decision.changes)
        if not changed:
            return UNKNOWN
        if decision.companions:
            changed += self._companion_changes(database, decision.companions)
        group_commit.join(changed)
        database.newest_timestamp = timestamp
        group_commit.resolve(waiter)
        result: T = decision.result
        return result

    def fence(self, space: int, version: int) -> None:
        """Reject commits to a space of a process that knows an older version of it, from now on until the store closes.

        Once this returns, every commit that was not rejected has joined. A process that starts later knows the newest
        version.
        """
        self._fences[space] = version

    def _refusal(self, space: int, commit: Commit[T]) -> EngineError | None:
        """Return why nothing is committed to a space."""
        if space in self._dropped:
            return SpaceDroppedError(f"space {space} was dropped")
        if space in self._fences and commit.fence < self._fences[space]:
            return EngineUnavailableError("what is known of the space has changed; try again")
        return None

    def _companion_changes(self, database: OpenDatabase, writes: Sequence[CompanionWrite]) -> Iterator[KeyChange]:
        """Yield the changes of a commit's companion writes. Readers see what was before until all is durable."""
        for space, (partition, row), value, before in writes:
            if space not in self._dropped:
                key = encode_key(space, partition, row)
                yield key, database.latest(key) if before is True else before, value

    def write_now(
        self,
        space: int,
        rows: Rows,
        complete: Callable[[int, Sequence[bytes]], bytes],
        waiter: Waiter,
        *,
        together: bool,
    ) -> Written | Unknown:
        """Have conditional writes join the open commit group, each whose row is as expected, in their order.

        Args:
            space: of all rows.
            rows: the writes.
            complete: see `CommitProcedure`.
            waiter: is resolved once the writes are durable; forgotten if there are none.
            together: all of them or none, with one timestamp.

        Returns:
            `UNKNOWN` if the group is full, see `wait_for_room`. Then nothing was changed.

        Raises:
            EngineUnavailableError: nothing can be written.
        """
        database = self._lifecycle.writable()
        group_commit = database.group_commit
        if group_commit.full:
            return UNKNOWN
        if space in self._dropped or space in self._fences:
            return Written(0, range(len(rows)))
        first = max(self._clock(), database.newest_timestamp + 1)
        step = 0 if together else 1
        changed, declined = database.decide(space_prefix(space), rows, complete, first, step)
        if not changed or (together and declined):
            return Written(0, range(len(rows)))
        group_commit.join(changed)
        database.newest_timestamp = first + step * (len(rows) - 1)
        group_commit.resolve(waiter)
        return Written(first, declined)

    async def raise_format(self) -> None:
        """See `StoredFormat.raise_format`."""
        await self._lifecycle.writable().raise_format()

    async def has_raised_format(self) -> bool:
        """See `StoredFormat.has_raised_format`."""
        return self._lifecycle.opened().stored_format >= WITH_INDEXES

    async def wait_for_room(self) -> None:
        """Return when the open commit group accepts writes.

        Raises:
            EngineUnavailableError: nothing can be written.
        """
        await self._lifecycle.writable().group_commit.wait_for_room()

    async def drop(self, space: int) -> None:
        """Drop a space, see `Engine.drop`."""
        database = self._lifecycle.writable()
        if space in self._dropped:  # Were this drop to fail, the space would be open again.
            await self._until_dropped(database.group_commit, space)
            return
        database.group_commit.join_drop(space)
        self._dropped.add(space)
        await database.group_commit.until_all_durable()
        current = self._lifecycle.current
        if current is not None and not self._lifecycle.closing:
            self._reclaimer.begin(current.database, space)

    async def check_writable(self) -> None:
        """Make one durable write, see `Engine.check_writable`."""
        self._clock()  # Raises if commits could have no timestamp.
        await self._lifecycle.writable().group_commit.until_all_durable()

    async def flush(self) -> None:
        """Have files hold all changes so far, and tell the change log. Syncs wait meanwhile.

        Raises:
            EngineError: they cannot be written.
        """
        database = self._lifecycle.writable()
        await self._flusher.run(database.flush_memory)
        if self._lifecycle.writable() is database:
            database.note_flushed()

    async def checkpoint(self, path: Path) -> None:
        """Make a checkpoint of everything acknowledged so far, and of nothing undurable. Commits wait meanwhile.

        Args:
            path: a directory that does not exist, on the store's file system.

        Raises:
            EngineError: it cannot be made.
        """
        database = self._lifecycle.writable()
        async with database.group_commit.paused():
            await self._flusher.run(partial(make_checkpoint, database.database, path))

    async def reclaimed(self) -> None:
        """Return when the disk space of all spaces dropped so far is reclaimed, or when that was given up."""
        await self._reclaimer.finished()

    # --- opening and closing

    def _wrap(self, database: Rdict) -> OpenDatabase:
        directory, settings = self._directory, self._settings
        wrapped = OpenDatabase(
            database,
            directory.durable,
            directory.note_durable,
            self._flusher,
            settings,
            self._timer,
            self._failpoints,
            self._flush_observer,
        )
        wrapped.newest_timestamp = wrapped.stored_timestamp()
        wrapped.stored_format = read_format(database)
        if self._change_log is not None:
            wrapped.log_changes(self._change_log)
        wrapped.group_commit.on_rejected_drops = self._dropped.difference_update
        return wrapped

    async def _release(self, database: OpenDatabase) -> None:
        """End everything that keeps a database open."""
        for cursor in list(self._cursors):
            cursor.close()
        self._dropped -= database.group_commit.pending_drops()
        await self._reclaimer.break_off(database.database, self._flusher)

    async def close(self) -> None:
        """Close the store, see `Engine.close`. Commits are rejected from now on; those in flight are answered first."""
        await self._lifecycle.close()
        self._threads.close()
