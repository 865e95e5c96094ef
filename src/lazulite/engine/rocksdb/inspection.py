"""A store read from its first byte to its last, without changing anything.

Invariants: nobody else has the store open meanwhile (RocksDB's lock on the file LOCK is held, if there is that file; a
backup has none); no file of the store is written; what the log holds is replayed in memory only. Every block that is
read is verified, and is read from its file. What this does not read are the Bloom filters, a hint that RocksDB
verifies before it believes it: a damaged one slows reads and changes no answer.

Not for a process that has the same store open: closing LOCK would give up the lock of both.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from rocksdict import AccessType, Rdict, ReadOptions

from lazulite.engine.contract import LocationInUseError, StoreUnusableError
from lazulite.engine.key_encoding import META_PREFIX
from lazulite.engine.rocksdb.data_directory import FORMAT, FORMAT_KEY
from lazulite.engine.rocksdb.database import STAMP_KEY
from lazulite.engine.rocksdb.errors import STORE_ERRORS
from lazulite.engine.rocksdb.options import MIB, RocksSettings, database_options
from lazulite.engine.rocksdb.recovery import recovery_mode

_READAHEAD_BYTES = 2 * MIB


class Inspection:
    """An open store, to read all of it."""

    def __init__(self, database: Rdict) -> None:
        self._database = database

    def stamp(self) -> int:
        """Return the greatest stamp that was ever given, in ticks; 0 if there is none."""
        with STORE_ERRORS:
            return int.from_bytes(cast("bytes", self._database.get(STAMP_KEY) or b""), "big")

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and value of every row in the order of keys (`key_encoding`), the store's own facts left out.

        Raises:
            EngineError: damage; the text names it.
        """
        options = ReadOptions()
        options.set_verify_checksums(True)
        options.set_readahead_size(_READAHEAD_BYTES)
        options.set_iterate_upper_bound(META_PREFIX)
        with STORE_ERRORS:
            iterator = self._database.iter(options)
        iterator.seek_to_first()
        while iterator.valid():
            yield iterator.key(), iterator.value()
            iterator.next()
        with STORE_ERRORS:
            iterator.status()


@contextmanager
def inspect(path: Path) -> Iterator[Inspection]:
    """Open the store in a directory for reading all of it.

    Raises:
        LocationInUseError: somebody has it open.
        StoreUnusableError: there is none, it cannot be opened, or its format is not ours.
    """
    if not (path / "CURRENT").is_file():
        raise StoreUnusableError(f"{path} is no store, or a damaged one: it has no file CURRENT")
    settings = RocksSettings()
    with _locked(path):
        options = database_options(settings, None)
        options.set_wal_recovery_mode(recovery_mode(path, settings))
        try:
            database = Rdict(str(path), options, access_type=AccessType.read_only(False))
        except Exception as error:  # The binding raises nothing more precise.
            raise StoreUnusableError(f"{path} is damaged: {' '.join(str(error).split())}") from error
        try:
            _check_format(path, database)
            yield Inspection(database)
        finally:
            database.close()


def _check_format(path: Path, database: Rdict) -> None:
    with STORE_ERRORS:
        stored = database.get(FORMAT_KEY)
    if stored != b"%d" % FORMAT:
        raise StoreUnusableError(f"{path} is damaged, or of another version of Lazulite: its format is not {FORMAT}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        lock = (path / "LOCK").open("r+b")
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise StoreUnusableError(f"{path} cannot be used: {error.strerror}") from error
    with lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LocationInUseError(f"{path} is in use by another process; stop that first") from None
        yield
