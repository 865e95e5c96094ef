"""A worker's replica of the store: the files of RocksDB, and the changes that are not in them yet.

    files     RocksDB opens them as a *secondary*: it follows the list of files in the primary's MANIFEST, and changes
              none. It gets an empty directory of logs: what it would read of the primary's is incomplete at times,
              while the primary flushes its memory. (The binding writes its own notes, `rocksdict-config.json`, which
              nothing reads.)
    changes   those of the change log (`change_log`) that the files may lack; a row among them replaces that of the
              files

Invariants: a reader sees the state after the newest record of the change log, which is that of the last commit group
that was acknowledged. Let *known* be the number of that record. The replica answers only while

1. the files, with the changes in memory, hold all changes up to *known*: none was lost between both;
2. the files hold no change after *known*: RocksDB flushes what is not synced, too;
3. the primary lives: else another process may have the store, and change it.

Otherwise a read asks the primary. After each flush of the primary, the replica catches up with its files, and forgets
the changes that they hold. A replica that lost a record opens the files again, once the primary has flushed.
"""

import asyncio
import shutil
import tempfile
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from rocksdict import AccessType, Rdict

from lazulite.engine.contract import UNKNOWN, EngineError, KeyRange, Unknown
from lazulite.engine.key_encoding import encode_key, range_bounds
from lazulite.engine.rocksdb.change_log import ChangeLogReader, ChangeRecord, Changes, LostError
from lazulite.engine.rocksdb.group_commit import STORE_ERRORS, UNCHANGED, Bounds, Unchanged
from lazulite.engine.rocksdb.options import RocksSettings, replica_options
from lazulite.engine.rocksdb.scan import Cursor, SortedRows
from lazulite.engine.rocksdb.snapshot import StoreSnapshot

CHANGED_BYTES_MAX = 128 << 20
"""Changes in memory beyond this are forgotten, and the primary is asked to flush. RocksDB's own limit is 96 MiB."""
_RECENT_MAX = 256
"""A scan looks through so many rows that are not sorted."""
_UNSORTED_MAX = 8192
"""More rows are sorted at once, so that no scan has to sort them all."""
_CHANGE_BYTES = 256
"""What a change takes in memory beside its bytes."""


class _Group(NamedTuple):
    number: int
    changes: Changes
    dropped: Collection[int]
    size_bytes: int


class ChangedRows:
    """The changes that the files may lack, of all groups of commits in order."""

    def __init__(self) -> None:
        self.size_bytes = 0
        """What they take in memory, roughly."""
        self._groups: deque[_Group] = deque()
        self._rows: dict[bytes, bytes | None] = {}
        self._dropped: set[int] = set()
        self._sorted: SortedRows = ([], [])
        self._recent: dict[bytes, bytes | None] = {}
        """Those that are not sorted yet."""

    def add(self, number: int, changes: Changes, dropped: Collection[int], size_bytes: int) -> None:
        """Add the changes of the next group, whose keys and values have this size."""
        if not changes and not dropped:
            return
        size_bytes += _CHANGE_BYTES * len(changes)
        self._groups.append(_Group(number, changes, dropped, size_bytes))
        self.size_bytes += size_bytes
        self._rows.update(changes)
        self._recent.update(changes)
        self._dropped.update(dropped)
        if len(self._recent) > _UNSORTED_MAX:
            self._sort()

    def forget(self, number: int) -> None:
        """Forget the groups up to a number."""
        while self._groups and self._groups[0].number <= number:
            self.size_bytes -= self._groups.popleft().size_bytes
        self._rows, self._recent, self._sorted, self._dropped = {}, {}, ([], []), set()
        for group in self._groups:
            self._rows.update(group.changes)
            self._dropped.update(group.dropped)
        self._recent.update(self._rows)

    def has_dropped(self, space: int) -> bool:
        """Tell whether a space was dropped."""
        return space in self._dropped

    def get(self, key: bytes) -> bytes | Unchanged | None:
        """Return the value of a key, or UNCHANGED."""
        return self._rows.get(key, UNCHANGED)

    def rows(self) -> dict[bytes, bytes | None]:
        """Return a copy of all rows."""
        return dict(self._rows)

    def within(self, ranges: Sequence[Bounds]) -> SortedRows:
        """Return the rows in some ranges (ascending, disjoint). They are those of this moment."""
        if len(self._recent) > _RECENT_MAX:
            self._sort()
        keys: list[bytes] = []
        values: list[bytes | None] = []
        all_keys, all_values = self._sorted
        for start, end in ranges:
            span = slice(bisect_left(all_keys, start), bisect_left(all_keys, end))
            keys += all_keys[span]
            values += all_values[span]
        starts = [start for start, _ in ranges]
        for key, value in self._recent.items():
            index = bisect_right(starts, key) - 1
            if index >= 0 and key < ranges[index][1]:
                _put(keys, values, key, value)
        return keys, values

    def _sort(self) -> None:
        """Sort all rows; of the keys, most are in order already."""
        before = self._sorted[0]
        known = self._recent.keys() & before
        keys = sorted([*before, *sorted(self._recent.keys() - known)])
        self._sorted = keys, [self._rows[key] for key in keys]
        self._recent = {}


def _put(keys: list[bytes], values: list[bytes | None], key: bytes, value: bytes | None) -> None:
    at = bisect_left(keys, key)
    if at < len(keys) and keys[at] == key:
        values[at] = value
    else:
        keys.insert(at, key)
        values.insert(at, value)


class Replica:
    """See above.

    Args:
        log: the change log.
        store: the directory of the store.
        directory: where RocksDB may write what it notes about the replica; made if missing.
        primary_lives: tells whether the primary's process has not ended.
        settings: RocksDB's tunables; None for the defaults.
    """

    def __init__(
        self,
        log: ChangeLogReader,
        store: Path,
        directory: Path,
        primary_lives: Callable[[], bool],
        settings: RocksSettings | None = None,
    ) -> None:
        self._log = log
        self._store = store
        self._directory = directory
        self._primary_lives = primary_lives
        self._settings = settings or RocksSettings()
        self._notes: Path | None = None
        self._database: Rdict | None = None
        self._changed = ChangedRows()
        self._known = 0
        self._flushed = 0
        self._in_files = 0
        """The files hold all changes up to this number."""
        self._files_end = 0
        """The files hold no change after this number."""
        self._usable = False

    # --- reading

    def get(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        """Return a row's value; `UNKNOWN` if the primary must be asked."""
        key = encode_key(space, partition, row)
        if not self._is_current():
            return UNKNOWN
        changed = self._changed
        value = changed.get(key)
        if changed.has_dropped(space):
            return None
        if value is not UNCHANGED:
            return value
        try:
            return self._database.get(key)  # type: ignore[union-attr]  # it is open, as the replica is current
        except Exception:  # noqa: BLE001 - the binding raises nothing more precise; the primary tells what it is
            self._lose()
            return UNKNOWN

    def cursor(self, space: int, ranges: Sequence[KeyRange], limit: int | None, *, keys_only: bool) -> Cursor | None:
        """Return a cursor over the ranges, which must be closed; None if the primary must be asked."""
        bounds = [range_bounds(space, key_range) for key_range in ranges]
        if not self._is_current():
            return None
        if self._changed.has_dropped(space):
            bounds = []
        try:
            rows = self._changed.within(bounds)
            assert self._database is not None
            return Cursor(self._database, bounds, rows, limit, self._settings, keys_only=keys_only)
        except EngineError:
            self._lose()
            return None

    def snapshot(self) -> StoreSnapshot | None:
        """Return a snapshot, which must be closed; None if the primary must be asked."""
        if not self._is_current():
            return None
        try:
            assert self._database is not None
            return StoreSnapshot(self._database, self._changed.rows())
        except EngineError:
            self._lose()
            return None

    def _is_current(self) -> bool:
        if self._database is not None and self._log.is_behind:
            self.follow()
        return self._usable and self._primary_lives()

    # --- following

    async def run(self, flush: Callable[[], Awaitable[None]]) -> None:
        """Follow the change log, forever; `flush` has the primary write all changes to files."""
        while True:
            await asyncio.sleep(self._settings.replica_follow_seconds)
            if self._database is not None:
                self.follow()
            elif not await self.open(flush):
                await asyncio.sleep(self._settings.recovery_retry_seconds)

    async def open(self, flush: Callable[[], Awaitable[None]]) -> bool:
        """Open the files; return whether that was done."""
        try:
            begin = self._log.begin()
            self._changed, self._known, self._flushed = ChangedRows(), begin.number, begin.flushed
            await flush()
            self._read()
            if self._flushed < begin.number:
                return False
            self._open_files()
        except (EngineError, LostError, OSError):
            self._lose()
            return False
        self._judge()
        return True

    def follow(self) -> None:
        """Read the change log to its end, and catch up with the files if there are new ones."""
        try:
            self._read()
            database = self._database
            if database is not None and self._flushed > self._in_files:
                with STORE_ERRORS:
                    database.try_catch_up_with_primary()
                self._note_files(database)
        except (EngineError, LostError):
            self._lose()
        self._judge()

    def close(self) -> None:
        """Release the files."""
        self._lose()

    def _read(self) -> None:
        for record in self._log.read():
            self._add(record)

    def _add(self, record: ChangeRecord) -> None:
        if record.changes is None:
            raise LostError("the primary has not told the changes")
        self._known, self._flushed = record.number, record.flushed
        self._changed.add(record.number, record.changes, record.dropped, record.size_bytes)
        if self._changed.size_bytes > CHANGED_BYTES_MAX:
            raise LostError("too many changes are not flushed")

    def _note_files(self, database: Rdict) -> None:
        """Note what the files hold at least and at most, after the replica has caught up with them."""
        self._in_files, self._files_end = self._flushed, database.latest_sequence_number()
        self._changed.forget(self._in_files)

    def _judge(self) -> None:
        self._usable = self._database is not None and self._files_end <= self._known

    def _open_files(self) -> None:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._notes = notes = Path(tempfile.mkdtemp(dir=self._directory))
        logs = notes / "logs"
        logs.mkdir()
        with STORE_ERRORS:
            options = replica_options(self._settings, logs)
            access = AccessType.secondary(str(notes))
            database = Rdict(str(self._store), options, {"default": options}, access_type=access)
        self._database = database
        self._note_files(database)

    def _lose(self) -> None:
        """Use the files no more, until they are opened again. Cursors go on with what they have."""
        self._usable, self._database, self._changed = False, None, ChangedRows()
        if self._notes is not None:
            shutil.rmtree(self._notes, ignore_errors=True)
            self._notes = None
