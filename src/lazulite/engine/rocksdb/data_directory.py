"""The data directory of a store, or memory in its place.

A directory is accepted only if it is missing, empty, or a store; others are rejected before a byte is written to them.
Directories are made for their owner only (0700). RocksDB's lock excludes a second process, and a second engine of this
process. The store holds its format under `FORMAT_KEY`. A commit group that a crash left unfinished is rolled back.

A checkpoint is a directory that holds the store of one moment, made quickly whatever the store's size. RocksDB links
the immutable files and copies the small others. It first flushes its memory to files, while other threads run. The
checkpoint itself keeps the interpreter's lock for a few milliseconds.
"""

import contextlib
import os
import re
import shutil
import tempfile
import uuid
from pathlib import Path

from rocksdict import Checkpoint, DBRecoveryMode, Env, Rdict

from lazulite.engine.contract import DataDirectoryInUseError, EngineError, EngineUnavailableError, StoreUnusableError
from lazulite.engine.durable_files import make_private
from lazulite.engine.rocksdb.group_commit import STORE_ERRORS
from lazulite.engine.rocksdb.options import MIB, RocksSettings, database_options, synced_write_options
from lazulite.engine.rocksdb.recovery import DurableSequenceMarker, recovery_mode
from lazulite.engine.rocksdb.rollback_journal import FORMAT, FORMAT_KEY, WITH_INDEXES, roll_back

_PROBE = "lazulite.probe"
_UNFINISHED = re.compile(
    r"LOCK|LOG(\.old\.\d+)?|IDENTITY|MANIFEST-000001|\d+\.dbtmp|rocksdict-config\.json|lazulite\.(probe|mark)"
)
"""Names of the files that RocksDB leaves if it dies before a new store is complete, that is, before CURRENT exists."""
_LOCKED = ("lock hold by current process", "While lock file")


def make_checkpoint(database: Rdict, path: Path) -> None:
    """Make a checkpoint of a database at `path`, which must not exist, on the same file system as the store.

    The caller must keep undurable writes out of the database meanwhile, or the checkpoint would contain them.

    Raises:
        EngineError: it cannot be made.
    """
    with STORE_ERRORS:
        database.flush(wait=True)
        Checkpoint(database).create_checkpoint(str(path))


class DataDirectory:
    """A data directory, opened once at a time."""

    def __init__(self, path: Path | None, settings: RocksSettings) -> None:
        """Name a directory; `path` None means memory."""
        self._env = Env.mem_env() if path is None else None
        self._empty = os.path.join(tempfile.gettempdir(), f"lazulite-{uuid.uuid4().hex}")
        self._path = path
        self._settings = settings
        self._marker: DurableSequenceMarker | None = None
        self.name = "memory" if path is None else str(path)
        """The directory's name in messages."""

    @property
    def durable(self) -> bool:
        """Whether there is a disk to sync."""
        return self._path is not None

    def open(self) -> Rdict:
        """Open the store, and make it if there is none.

        Raises:
            DataDirectoryInUseError: another engine has it open.
            StoreUnusableError: it cannot be opened, or holds other files.
        """
        if self._path is None:
            # The binding makes this directory on the real disk; RocksDB then finds nothing there, and leaves it empty.
            # In memory, the directory stays, with what an earlier opening has left there.
            os.mkdir(self._empty, 0o700)
            try:
                return self._open_at(os.path.join(self._empty, "memory"), DBRecoveryMode.absolute_consistency())
            finally:
                shutil.rmtree(self._empty)
        try:
            make_private(self._path.parent)
            make_private(self._path)
            _check_ours(self._path)
        except OSError as error:
            raise StoreUnusableError(f"{self.name} cannot be used: {error.strerror}") from error
        database = self._open_at(str(self._path), recovery_mode(self._path, self._settings))
        try:
            self._marker = self._set_marker(self._path, database)
        except StoreUnusableError:
            self.close(database)
            raise
        return database

    def _set_marker(self, path: Path, database: Rdict) -> DurableSequenceMarker:
        """Set the marker of a store just opened: everything that recovery leaves is durable."""
        try:
            return DurableSequenceMarker(path, database.latest_sequence_number())
        except OSError as error:
            raise StoreUnusableError(f"{self.name} cannot be used: {error.strerror}") from error

    def _open_at(self, path: str, mode: DBRecoveryMode) -> Rdict:
        options = database_options(self._settings, self._env)
        options.set_wal_recovery_mode(mode)
        try:
            # Without them, the binding takes the column family's options, cache and all, from the store's file.
            database = Rdict(path, options, {"default": options})
        except Exception as error:  # The binding raises nothing more precise.
            raise self._rejection(" ".join(str(error).split())) from error
        try:
            self._check_format(database)
            roll_back(database, synced_write_options(self.durable), self._settings.write_bytes_max)
        except StoreUnusableError:
            self.close(database)
            raise
        except EngineUnavailableError as error:
            self.close(database)
            raise StoreUnusableError(f"{self.name} cannot be opened: {error}") from error
        except EngineError as error:
            self.close(database)
            raise StoreUnusableError(f"{self.name} cannot be opened: {error}; restore it from a backup") from error
        return database

    def _rejection(self, reason: str) -> DataDirectoryInUseError | StoreUnusableError:
        if any(text in reason for text in _LOCKED):
            return DataDirectoryInUseError(f"{self.name} is in use by another process")
        if reason.startswith("Corruption"):
            return StoreUnusableError(f"{self.name} is damaged; restore it from a backup ({reason})")
        return StoreUnusableError(f"{self.name} cannot be opened: {reason}")

    def _check_format(self, database: Rdict) -> None:
        with STORE_ERRORS:
            stored = database.get(FORMAT_KEY)
        if stored is None:
            if next(iter(database.keys()), None) is not None:
                raise StoreUnusableError(f"{self.name} holds a database that is not Lazulite's; choose another")
            if self._path is not None:  # Or a format that a power cut tore would look like damage.
                self._set_marker(self._path, database).close()
            with STORE_ERRORS:
                database.put(FORMAT_KEY, b"%d" % FORMAT, synced_write_options(self.durable))
        elif not stored.isdigit():
            raise StoreUnusableError(f"{self.name} is damaged: its format is unreadable; restore it from a backup")
        elif int(stored) > WITH_INDEXES:
            raise StoreUnusableError(
                f"{self.name} has format {int(stored)}, newer than the {WITH_INDEXES} of this version of Lazulite; "
                "use a newer version"
            )

    def note_durable(self, number: int) -> None:
        """Record that all writes up to a sequence number are durable (see `recovery`)."""
        if self._marker is not None:
            self._marker.advance(number)

    def close(self, database: Rdict) -> None:
        """Close a database that `open` returned.

        Closing flushes RocksDB's memory to files so that the next opening is quick. If that fails (full disk,
        interrupted work, memory instead of a disk), the database is closed all the same. Nothing is lost: the log
        holds it.
        """
        if self._marker is not None:
            self._marker.close()
            self._marker = None
        with contextlib.suppress(EngineError), STORE_ERRORS:
            database.close()

    def has_room(self) -> bool:
        """Return whether the disk takes writes again: a probe can be written and synced, and a recovery fits."""
        if self._path is None:
            return True
        probe = self._path / _PROBE
        try:
            if shutil.disk_usage(self._path).free < 2 * self._settings.write_buffer_bytes:
                return False
            with probe.open("wb") as file:
                file.write(bytes(MIB))
                file.flush()
                os.fsync(file.fileno())
            probe.unlink()
        except OSError:
            return False
        return True


def _check_ours(path: Path) -> None:
    """Reject a directory that is neither empty nor a store, before RocksDB would begin a new one in it."""
    names = os.listdir(path)
    if "CURRENT" in names or all(_UNFINISHED.fullmatch(name) for name in names):
        return
    if any(re.fullmatch(r"MANIFEST-\d+|\d+\.(sst|log)", name) for name in names):
        raise StoreUnusableError(f"{path} is damaged: its file CURRENT is missing; restore it from a backup")
    raise StoreUnusableError(f"{path} holds other files and is no store; choose another or an empty directory")
