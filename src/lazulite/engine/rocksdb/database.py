"""An open database with its group commit. Both have the same lifetime.

A write is tried again while RocksDB stalls writes, bounded in time and off the event loop.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from rocksdict import Rdict

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.key_encoding import META_PREFIX
from lazulite.engine.rocksdb.commit_group import UNCHANGED, CommitGroup
from lazulite.engine.rocksdb.errors import STORE_ERRORS, StalledError, unavailable
from lazulite.engine.rocksdb.flush_stats import FlushObserver, ObservedFlush
from lazulite.engine.rocksdb.group_commit import GroupCommit, ReadAhead
from lazulite.engine.rocksdb.options import RocksSettings, write_options
from lazulite.engine.rocksdb.rollback_journal import Batch, batches
from lazulite.engine.rocksdb.worker_thread import WorkerThread

T = TypeVar("T")

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
        if flush_observer is None:
            self.group_commit = GroupCommit(self._write, self._sync, worker)
        else:
            observed = ObservedFlush(self._write, self._sync, flush_observer, timer)
            self.group_commit = GroupCommit(observed.write, observed.sync, worker)
        self.newest_timestamp = 0
        """The greatest commit timestamp so far, in ticks."""
        self._to_disk = to_disk
        self._worker = worker
        self._note_durable = note_durable
        self._settings = settings
        self._timer = timer
        self._options = write_options()
        self._failpoints = failpoints

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
        latest, left_bytes = self.latest, self._settings.read_bytes_max
        found: list[bytes | None] = []
        for key in keys:
            value = latest(key)
            found.append(value)
            if value is not None:
                left_bytes -= len(value)
                if left_bytes < 0 and len(keys) > 1:
                    return None
        return found

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

    def statistics(self) -> dict[str, int]:
        """Return the values of `STATISTICS`, and `writable`: 0 after a failure, else 1."""
        database = self.database
        with STORE_ERRORS:
            known = {name: database.property_int_value(asked) or 0 for name, asked in STATISTICS.items()}
        return known | {"writable": int(self.group_commit.failure is None)}

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
        for batch in batches(group, newest, self._settings.write_bytes_max):
            if written:
                await self._worker.run(self._sync)
            try:
                await retry_while_stalled(self._settings, self._timer, partial(self._put, batch))
            except StalledError as error:
                if written:  # What was written can be undone only by opening the database anew.
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
