"""The open database of a data directory with its group commit; opened again after failures.

A write is tried again while RocksDB stalls writes, bounded in time and off the event loop.

After a failed write or sync the content of the disk is unknown: the kernel may have discarded what it could not write,
and the next sync may still succeed. So nothing more is written to that database. Readers keep the last durable state.
Once the disk takes writes again, the database is closed and opened again. RocksDB then replays its log into new, synced
files. A rejected commit may or may not be there afterwards, but as a whole, and durable if it is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from rocksdict import Rdict

from lazulite.engine.commit import Expected
from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.key_encoding import META_PREFIX
from lazulite.engine.rocksdb.change_log import ChangeLog
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.flush_stats import FlushObserver, ObservedFlush
from lazulite.engine.rocksdb.group_commit import (
    STORE_ERRORS,
    UNCHANGED,
    CommitGroup,
    GroupCommit,
    KeyChange,
    ReadAhead,
    StalledError,
    WorkerThread,
    unavailable,
)
from lazulite.engine.rocksdb.options import RocksSettings, write_options
from lazulite.engine.rocksdb.rollback_journal import FORMAT, FORMAT_KEY, WITH_INDEXES, Batch, batches

T = TypeVar("T")

Rows: TypeAlias = Sequence[tuple[bytes, Expected, Sequence[bytes] | None]]
"""Conditional writes: the key without the space, what is expected of the row, and the parts of its new value."""

Failpoints = Mapping[str, Callable[[], None]]
"""Functions to call at the failpoints that `group_commit` names, for tests: `before_write` on the event loop,
`before_sync` and `after_sync` in the worker thread. An exception counts as the failure of that step."""

TIMESTAMP_KEY = META_PREFIX + b"stamp"
"""The greatest commit timestamp so far: 8 bytes, big endian."""

STATISTICS = {
    "file_bytes": "rocksdb.total-sst-files-size",
    "memtable_bytes": "rocksdb.cur-size-all-mem-tables",
    "cache_bytes": "rocksdb.block-cache-usage",
    "keys_estimate": "rocksdb.estimate-num-keys",
    "compactions": "rocksdb.num-running-compactions",
    "compaction_debt_bytes": "rocksdb.estimate-pending-compaction-bytes",
    "writes_stopped": "rocksdb.is-write-stopped",
}
"""The names in `OpenDatabase.statistics`, and RocksDB's. Indexes, filters and the log are not among the bytes."""


_UNFLUSHED = ("rocksdb.num-entries-active-mem-table", "rocksdb.num-entries-imm-mem-tables")
"""Each entry has a sequence number of its own, and memory has the last ones."""


def flushed_number(database: Rdict) -> int:
    """Return the sequence number up to which a database's files hold all writes."""
    with STORE_ERRORS:
        unflushed = sum(database.property_int_value(name) or 0 for name in _UNFLUSHED)
    return database.latest_sequence_number() - unflushed


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


class OpenDatabase:
    """Writes to a database and makes the writes durable, until a write or a sync fails."""

    __slots__ = (
        "_change_log",
        "_failpoints",
        "_note_durable",
        "_options",
        "_settings",
        "_timer",
        "_to_disk",
        "_worker",
        "database",
        "group_commit",
        "newest_timestamp",
        "stored_format",
    )

    def __init__(
        self,
        database: Rdict,
        to_disk: bool,
        note_durable: Callable[[int], None],
        worker: WorkerThread,
        settings: RocksSettings,
        timer: Callable[[], float],
        failpoints: Failpoints,
        flush_observer: FlushObserver | None = None,
    ) -> None:
        """Wrap a database in which everything is durable.

        Args:
            database: the database.
            to_disk: whether there is a disk to sync.
            note_durable: receives the sequence number up to which all writes are durable.
            worker: runs the syncs.
            settings: bounds of a write, and of the retries while RocksDB stalls.
            timer: returns seconds.
            failpoints: see `Failpoints`.
            flush_observer: receives each flush that succeeds.
        """
        self.database = database
        self._change_log: ChangeLog | None = None
        if flush_observer is None:
            self.group_commit = GroupCommit(self._write, self._sync, worker)
        else:
            observed = ObservedFlush(self._write, self._sync, flush_observer, timer)
            self.group_commit = GroupCommit(observed.write, observed.sync, worker)
        self.newest_timestamp = 0
        """The greatest commit timestamp so far, in ticks."""
        self.stored_format = FORMAT
        """The store's format between two groups."""
        self._to_disk = to_disk
        self._worker = worker
        self._note_durable = note_durable
        self._settings = settings
        self._timer = timer
        self._options = write_options()
        self._failpoints = failpoints

    def log_changes(self, change_log: ChangeLog) -> None:
        """Append each commit group that is durable to a change log, which does not know what was before."""
        self._change_log = change_log
        change_log.append(self.database.latest_sequence_number(), flushed_number(self.database), None)
        self.group_commit.on_durable = partial(self._log, change_log)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key in the database, durable or not; None if it is absent."""
        try:
            return self.database.get(key)
        except BaseException:
            with STORE_ERRORS:  # Entered only here, so that reads that succeed do not pay for it.
                raise

    def latest(self, key: bytes) -> bytes | None:
        """Return the latest value of a key, for commits; None if it is absent."""
        value = self.group_commit.latest(key)
        return self.get(key) if value is UNCHANGED else value

    def latest_of(self, keys: Sequence[bytes]) -> list[bytes | None] | None:
        """Return the latest values of keys; None if they are too large to be read in one step."""
        first, second = self.group_commit.pending_changes()
        get, left_bytes = self.database.get, self._settings.read_bytes_max
        found: list[bytes | None] = []
        try:
            for key in keys:  # As `latest` does, without a call for each key.
                value = first[key] if key in first else second[key] if key in second else get(key)
                found.append(value)
                if value is not None:
                    left_bytes -= len(value)
                    if left_bytes < 0 and len(keys) > 1:
                        return None
        except BaseException:
            with STORE_ERRORS:  # As in `get`.
                raise
        return found

    def decide(
        self, prefix: bytes, rows: Rows, complete: Callable[[int, Sequence[bytes]], bytes], first: int, step: int
    ) -> tuple[list[KeyChange], list[int]]:
        """Decide conditional writes in their order. Each sees those before it.

        Args:
            prefix: of the keys of their space.
            rows: the writes.
            complete: see `CommitProcedure`.
            first: the timestamp of the first write.
            step: how much later the timestamp of each next one is.

        Returns:
            The changes of the writes whose rows are as expected, and the numbers of the others. If the rows are too
            large to be read in one step, the rest of the writes are among these.
        """
        opened, flushing = self.group_commit.pending_changes()
        get, left_bytes = self.database.get, self._settings.read_bytes_max
        written: dict[bytes, bytes | None] = {}
        changed: list[KeyChange] = []
        declined: list[int] = []
        with STORE_ERRORS:
            for number, (suffix, expected, parts) in enumerate(rows):
                key = prefix + suffix
                if left_bytes < 0:
                    declined.append(number)
                    continue
                if key in written:
                    value = written[key]
                else:
                    value = opened[key] if key in opened else flushing[key] if key in flushing else get(key)
                if value is None:
                    met = expected is None or expected is True
                else:
                    left_bytes -= len(value)
                    met = expected is True or (expected is not None and value.startswith(expected))
                if met:
                    written[key] = after = None if parts is None else complete(first + step * number, parts)
                    changed.append((key, value, after))
                else:
                    declined.append(number)
        return changed, declined

    def read_ahead(self, keys: Sequence[bytes], reads: ReadAhead) -> Iterator[None]:
        """Read the latest values of keys in steps, and yield between them."""
        left_bytes = self._settings.read_bytes_max
        for key in keys:
            value = self.latest(key)
            reads.add(key, value)
            left_bytes -= 0 if value is None else len(value)
            if left_bytes < 0:
                left_bytes = self._settings.read_bytes_max
                del value
                yield

    def stored_timestamp(self) -> int:
        """Return the greatest commit timestamp in the database, in ticks; 0 in a new one."""
        return int.from_bytes(self.get(TIMESTAMP_KEY) or b"", "big")

    def raise_format(self) -> asyncio.Future[None]:
        """Raise the store's format to `WITH_INDEXES`, and return a future of the moment when that is durable.

        What the key was before is noted as the new value too: a group that is rolled back leaves the format raised.
        """
        self.stored_format = WITH_INDEXES
        value = b"%d" % WITH_INDEXES
        self.group_commit.join([(FORMAT_KEY, value, value)])
        return self.group_commit.until_all_durable()

    def statistics(self) -> dict[str, int]:
        """Return the values of `STATISTICS`, and `writable`: 0 after a failure, else 1."""
        database = self.database
        with STORE_ERRORS:
            known = {name: database.property_int_value(asked) or 0 for name, asked in STATISTICS.items()}
        return known | {"writable": int(self.group_commit.failure is None)}

    def flush_memory(self) -> None:
        """Write to files what RocksDB holds in memory; runs in the worker's thread."""
        with STORE_ERRORS:
            self.database.flush(wait=True)

    def note_flushed(self) -> None:
        """Tell the change log, if there is one, what the files hold."""
        if self._change_log is not None:
            self._change_log.note_flushed(flushed_number(self.database))

    def _log(self, change_log: ChangeLog, group: CommitGroup) -> None:
        """Append a group to the change log. It is the last one that the database has."""
        database = self.database
        change_log.append(database.latest_sequence_number(), flushed_number(database), group.changes, group.dropped)

    def check_writable(self) -> None:
        """Raise EngineUnavailableError after a failure."""
        if self.group_commit.failure is not None:
            raise EngineUnavailableError("the store could not write and waits for the disk to recover")

    async def _write(self, group: CommitGroup) -> None:
        """Put a group and the newest timestamp into the database, in one unsynced batch if they are not too large.

        Raises:
            StalledError: nothing was written.
            EngineError: the write failed; nothing more may be written to this database.
        """
        newest = (TIMESTAMP_KEY, self.newest_timestamp.to_bytes(8, "big"))
        written = False
        for batch in batches(group, newest, self._settings.write_bytes_max, self.stored_format):
            if written:
                await self._worker.run(self._sync)
            try:
                await retry_while_stalled(self._settings, self._timer, partial(self._put, batch))
            except StalledError as error:
                if written:  # What was written can be undone only by opening the database again.
                    raise unavailable(error) from None
                raise
            written = True

    def _put(self, batch: Batch) -> None:
        with STORE_ERRORS:
            self._fail_at("before_write")
            self.database.write(batch.encoded(), self._options)

    def _sync(self) -> None:
        """Make all writes so far durable; runs in the worker's thread."""
        with STORE_ERRORS:
            self._fail_at("before_sync")
            number = self.database.latest_sequence_number()
            self.database.flush_wal(sync=self._to_disk)
            self._note_durable(number)
            self._fail_at("after_sync")

    def _fail_at(self, name: str) -> None:
        failpoint = self._failpoints.get(name)
        if failpoint is not None:
            failpoint()


class DatabaseLifecycle:
    """Keeps the database open as far as the disk allows.

    Args:
        directory: where the database lives.
        wrap: wraps a database that was just opened.
        release: ends all uses of a database that is about to be closed.
        retry_seconds: time between a failure and an attempt to open the database again, and between attempts.
        worker: runs what blocks.

    Raises:
        DataDirectoryInUseError: another engine has the directory open.
        StoreUnusableError: the database cannot be opened.
    """

    def __init__(
        self,
        directory: DataDirectory,
        wrap: Callable[[Rdict], OpenDatabase],
        release: Callable[[OpenDatabase], Awaitable[None]],
        retry_seconds: float,
        worker: WorkerThread,
    ) -> None:
        self._directory = directory
        self._wrap_database = wrap
        self._release_database = release
        self._retry_seconds = retry_seconds
        self._worker = worker
        self._closing = asyncio.Event()
        self._recovery: asyncio.Task[None] | None = None
        self.current: OpenDatabase | None = None
        """The open database; None while there is none."""
        self._use(directory.open())

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
        if self._closing.is_set():
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

    # --- opening again

    def _use(self, database: Rdict) -> None:
        wrapped = self._wrap_database(database)
        wrapped.group_commit.on_failure = self._recover_soon
        self.current = wrapped

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
        """Try to open the database again until that succeeds or the engine closes."""
        while not await self._closes_meanwhile():
            try:
                if await self._reopen():
                    return
            except (EngineError, OSError, MemoryError):
                continue

    async def _reopen(self) -> bool:
        """Close the database, if the disk takes writes again, and open it again; return whether that was done."""
        if self.current is not None:
            if not await self._worker.run(self._directory.has_room):
                return False
            await self._release()
        database = await self._worker.run(self._directory.open)
        try:
            self._use(database)
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
