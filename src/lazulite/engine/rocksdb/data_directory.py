"""Where a store lives: a directory that is ours alone, or memory.

A directory is taken only if it is missing, empty, or a store; anything else is refused before a byte is written to it.
Directories are made for their owner only (0700). RocksDB's own lock keeps a second process (or a second engine of this
one) away. The store's format stands in the store under `format`; see FORMAT.
"""

import contextlib
import os
import re
import shutil
import tempfile
import uuid
from pathlib import Path

from rocksdict import DBRecoveryMode, Env, Rdict, WriteBatch, WriteOptions

from lazulite.engine.contract import EngineError, EngineUnavailableError, LocationInUseError, StoreUnusableError
from lazulite.engine.durable_files import make_private
from lazulite.engine.key_encoding import META_PREFIX
from lazulite.engine.rocksdb.durable_sequence import Mark
from lazulite.engine.rocksdb.errors import STORE_ERRORS
from lazulite.engine.rocksdb.options import MIB, RocksSettings, database_options
from lazulite.engine.rocksdb.recovery import recovery_mode

FORMAT = 1
"""The format of the keys (see `key_encoding`) and of the store's own facts. A store of a greater one is not ours to
open."""

FORMAT_KEY = META_PREFIX + b"format"
"""The store's format, in decimal digits."""

_PROBE = "lazulite.probe"
_UNFINISHED = re.compile(
    r"LOCK|LOG(\.old\.\d+)?|IDENTITY|MANIFEST-000001|\d+\.dbtmp|rocksdict-config\.json|lazulite\.(probe|mark)"
)
"""What RocksDB leaves behind when it dies before a new store is whole (which is when CURRENT is there)."""
_LOCKED = ("lock hold by current process", "While lock file")


class Location:
    """A store's home, opened once at a time."""

    def __init__(self, path: Path | None, settings: RocksSettings) -> None:
        """`path` None means memory."""
        self._env = Env.mem_env() if path is None else None
        self._empty = os.path.join(tempfile.gettempdir(), f"lazulite-{uuid.uuid4().hex}")
        self._path = path
        self._settings = settings
        self._mark: Mark | None = None
        self.name = "memory" if path is None else str(path)
        """How messages call it."""

    @property
    def durable(self) -> bool:
        """Whether there is a disk to sync."""
        return self._path is not None

    def open(self) -> Rdict:
        """Open the store, and make it if there is none.

        Raises:
            LocationInUseError: somebody else has it open.
            StoreUnusableError: it cannot be opened, or should not be.
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
            self._mark = self._marked(self._path, database)
        except StoreUnusableError:
            self.close(database)
            raise
        return database

    def _marked(self, path: Path, database: Rdict) -> Mark:
        """Set the mark of a store just opened: recovery leaves nothing undurable."""
        try:
            return Mark(path, database.latest_sequence_number())
        except OSError as error:
            raise StoreUnusableError(f"{self.name} cannot be used: {error.strerror}") from error

    def _open_at(self, path: str, mode: DBRecoveryMode) -> Rdict:
        options = database_options(self._settings, self._env)
        options.set_wal_recovery_mode(mode)
        try:
            # Unless told again, the binding takes the column family's options, cache and all, from the store's file.
            database = Rdict(path, options, {"default": options})
        except Exception as error:  # The binding raises nothing more precise.
            raise self._refusal(" ".join(str(error).split())) from error
        try:
            self._check_format(database)
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

    def _refusal(self, reason: str) -> LocationInUseError | StoreUnusableError:
        if any(text in reason for text in _LOCKED):
            return LocationInUseError(f"{self.name} is in use by another process")
        if reason.startswith("Corruption"):
            return StoreUnusableError(f"{self.name} is damaged; restore it from a backup ({reason})")
        return StoreUnusableError(f"{self.name} cannot be opened: {reason}")

    def _check_format(self, database: Rdict) -> None:
        with STORE_ERRORS:
            stored = database.get(FORMAT_KEY)
        if stored is None:
            if next(iter(database.keys()), None) is not None:
                raise StoreUnusableError(f"{self.name} holds a database that is not Lazulite's; choose another")
            if self._path is not None:  # Lest a format that a power cut tore be taken for damage.
                self._marked(self._path, database).close()
            batch = WriteBatch(raw_mode=True)
            batch.put(FORMAT_KEY, b"%d" % FORMAT)
            options = WriteOptions()
            options.sync = self.durable
            with STORE_ERRORS:
                database.write(batch, options)
        elif not stored.isdigit():
            raise StoreUnusableError(f"{self.name} is damaged: its format is unreadable; restore it from a backup")
        elif int(stored) > FORMAT:
            raise StoreUnusableError(
                f"{self.name} has format {int(stored)}, newer than the {FORMAT} of this version of Lazulite; "
                "use a newer version"
            )

    def note_synced(self, number: int) -> None:
        """Note that all writes up to a sequence number are durable (see `durable_sequence`)."""
        if self._mark is not None:
            self._mark.move(number)

    def close(self, database: Rdict) -> None:
        """Close a database that `open` returned.

        Closing flushes RocksDB's memory to files so that the next opening is quick. Where that fails (a full disk,
        work broken off, memory instead of a disk) the database is closed all the same and nothing is lost: the
        log has it.
        """
        if self._mark is not None:
            self._mark.close()
            self._mark = None
        with contextlib.suppress(EngineError), STORE_ERRORS:
            database.close()

    def has_room(self) -> bool:
        """Say whether the disk takes writes again: a probe is written and synced, and a recovery would fit."""
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
    """Refuse a directory that is neither empty nor a store, before RocksDB would begin a new one in it."""
    names = os.listdir(path)
    if "CURRENT" in names or all(_UNFINISHED.fullmatch(name) for name in names):
        return
    if any(re.fullmatch(r"MANIFEST-\d+|\d+\.(sst|log)", name) for name in names):
        raise StoreUnusableError(f"{path} is damaged: its file CURRENT is missing; restore it from a backup")
    raise StoreUnusableError(f"{path} holds other files and is no store; choose another or an empty directory")
