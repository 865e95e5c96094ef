"""An open database and its group commit, which begin and end together."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from rocksdict import Rdict, WriteBatch

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.key_encoding import META_PREFIX, space_end, space_prefix
from lazulite.engine.rocksdb.commit_group import Generation
from lazulite.engine.rocksdb.errors import STORE_ERRORS
from lazulite.engine.rocksdb.flush_stats import Meter, MeteredFlush
from lazulite.engine.rocksdb.group_commit import GroupCommit
from lazulite.engine.rocksdb.options import RocksSettings, write_options
from lazulite.engine.rocksdb.write_stall import unstalled

Failpoints = Mapping[str, Callable[[], None]]
"""Functions called at named moments, for tests: `before_write` (on the loop, before a batch is written), `before_sync`
and `after_sync` (in the worker thread). What they raise counts as the failure of that step."""

STAMP_KEY = META_PREFIX + b"stamp"
"""The greatest stamp given so far: 8 bytes, big endian."""

STATISTICS = {
    "file_bytes": "rocksdb.total-sst-files-size",
    "memtable_bytes": "rocksdb.cur-size-all-mem-tables",
    "cache_bytes": "rocksdb.block-cache-usage",
    "keys_estimate": "rocksdb.estimate-num-keys",
    "compactions": "rocksdb.num-running-compactions",
    "compaction_debt_bytes": "rocksdb.estimate-pending-compaction-bytes",
    "writes_stopped": "rocksdb.is-write-stopped",
}
"""What `Store.statistics` tells, and RocksDB's name for it. Indexes, filters and the log are not among the bytes."""


class Store:
    """Writes to a database and makes the writes durable, until one of either fails."""

    __slots__ = (
        "_failpoints",
        "_note_synced",
        "_options",
        "_settings",
        "_timer",
        "_to_disk",
        "database",
        "group",
        "stamp",
    )

    def __init__(
        self,
        database: Rdict,
        to_disk: bool,
        note_synced: Callable[[int], None],
        worker: Executor,
        settings: RocksSettings,
        timer: Callable[[], float],
        failpoints: Failpoints,
        meter: Meter | None = None,
    ) -> None:
        """Nothing in `database` may be undurable. `to_disk` says whether there is a disk to sync, in `worker`.

        `note_synced` is told the sequence number up to which all is durable.
        """
        self.database = database
        if meter is None:
            self.group = GroupCommit(self._write, self._sync, worker)
        else:
            metered = MeteredFlush(self._write, self._sync, meter, timer)
            self.group = GroupCommit(metered.write, metered.sync, worker)
        self.stamp = 0
        """The greatest stamp given so far."""
        self._to_disk = to_disk
        self._note_synced = note_synced
        self._settings = settings
        self._timer = timer
        self._options = write_options()
        self._failpoints = failpoints

    def read(self, key: bytes) -> bytes | None:
        """Return what the database holds."""
        try:
            return self.database.get(key)
        except BaseException:
            with STORE_ERRORS:  # Only now: the reads that succeed, which are all but a few, do not pay for it.
                raise

    def last_stamp(self) -> int:
        """Return the greatest stamp that the database knows, 0 at first."""
        return int.from_bytes(self.read(STAMP_KEY) or b"", "big")

    def statistics(self) -> dict[str, int]:
        """Return the values of `STATISTICS`, which RocksDB keeps anyway, and `writable`, 0 after a failure, else 1."""
        database = self.database
        with STORE_ERRORS:
            known = {name: database.property_int_value(asked) or 0 for name, asked in STATISTICS.items()}
        return known | {"writable": int(self.group.failure is None)}

    def check_writable(self) -> None:
        """Raise EngineUnavailableError after a failure."""
        if self.group.failure is not None:
            raise EngineUnavailableError("the store could not write and waits for the disk to recover")

    async def _write(self, generation: Generation) -> None:
        """Put a generation and the stamp into the database in one batch, undurable as yet.

        Raises:
            StalledError: nothing was written.
            EngineError: it failed, and no more may be written here.
        """
        await unstalled(self._settings, self._timer, lambda: self._put(generation))

    def _put(self, generation: Generation) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in generation.changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        for space in generation.dropped:
            batch.delete_range(space_prefix(space), space_end(space))
        batch.put(STAMP_KEY, self.stamp.to_bytes(8, "big"))
        with STORE_ERRORS:
            self._fail_at("before_write")
            self.database.write(batch, self._options)

    def _sync(self) -> None:
        """Make all that was written durable; runs in the worker's thread."""
        with STORE_ERRORS:
            self._fail_at("before_sync")
            number = self.database.latest_sequence_number()
            self.database.flush_wal(sync=self._to_disk)
            self._note_synced(number)
            self._fail_at("after_sync")

    def _fail_at(self, name: str) -> None:
        failpoint = self._failpoints.get(name)
        if failpoint is not None:
            failpoint()
