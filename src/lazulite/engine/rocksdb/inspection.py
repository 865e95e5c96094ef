"""A read-only inspection of a whole store.

Invariants: no other process has the store open meanwhile (this one holds RocksDB's lock on the file LOCK, if there is
one; a backup has none). No file of the store is written; the log is replayed in memory. A commit group that a crash
left unfinished is not shown. Each block is read from its file and verified. Bloom filters are not read: RocksDB
verifies their hints, so a damaged one only slows reads.

Do not use it in a process that has the same store open: closing LOCK would release the lock of both.
"""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from rocksdict import AccessType, Rdict, RdictIter, ReadOptions

from lazulite.engine.contract import DataDirectoryInUseError, EngineError, StoreUnusableError
from lazulite.engine.key_encoding import INDEX_START, META_PREFIX, index_key, is_listed
from lazulite.engine.rocksdb.database import TIMESTAMP_KEY
from lazulite.engine.rocksdb.group_commit import STORE_ERRORS
from lazulite.engine.rocksdb.options import MIB, RocksSettings, database_options
from lazulite.engine.rocksdb.recovery import recovery_mode
from lazulite.engine.rocksdb.rollback_journal import FORMAT, FORMAT_KEY, UNFINISHED, WITH_INDEXES, journal
from lazulite.engine.rocksdb.scan import Runs, replaced, sorted_rows

_READAHEAD_BYTES = 2 * MIB


class Inspection:
    """A store that is open for inspection."""

    def __init__(self, database: Rdict) -> None:
        self._database = database

    def newest_timestamp(self) -> int:
        """Return the greatest commit timestamp ever given, in ticks; 0 if there is none."""
        with STORE_ERRORS:
            return int.from_bytes(cast("bytes", self._database.get(TIMESTAMP_KEY) or b""), "big")

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and value of every row in the order of keys (`key_encoding`), without the store's metadata.

        Raises:
            EngineError: the store is damaged, or the index of keys is not that of the rows; the text says where.
        """
        before = dict(journal(self._database))
        index = self._read(INDEX_START, META_PREFIX, {index_key(key): before[key] for key in filter(is_listed, before)})
        for key, value in self._read(b"", INDEX_START, before):
            if is_listed(key):
                _compare(index_key(key), next(index, (None, b""))[0])
            yield key, value
        _compare(None, next(index, (None, b""))[0])

    def _read(self, start: bytes, end: bytes, before: Mapping[bytes, bytes | None]) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values within bounds, with the values before an unfinished group."""
        options = ReadOptions()
        options.set_verify_checksums(True)
        options.set_readahead_size(_READAHEAD_BYTES)
        options.set_iterate_upper_bound(end)
        with STORE_ERRORS:
            iterator = self._database.iter(options)
        within = sorted_rows({key: value for key, value in before.items() if start <= key < end})
        for keys, values in replaced(_runs(iterator, start), within):
            yield from zip(keys, values, strict=True)


def _compare(expected: bytes | None, found: bytes | None) -> None:
    if expected != found:
        keys = " instead of ".join("nothing" if key is None else key.hex() for key in (found, expected))
        raise EngineError(f"the store is damaged: its index of keys has {keys}")


def _runs(iterator: RdictIter, start: bytes) -> Runs:
    iterator.seek(start)
    while iterator.valid():
        yield [iterator.key()], [iterator.value()]
        iterator.next()
    with STORE_ERRORS:
        iterator.status()


@contextmanager
def inspect(path: Path) -> Iterator[Inspection]:
    """Open the store in a directory for inspection.

    Raises:
        DataDirectoryInUseError: a process has it open.
        StoreUnusableError: there is none, it cannot be opened, or it has another format.
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
    if stored not in (b"%d" % FORMAT, b"%d" % UNFINISHED, b"%d" % WITH_INDEXES):
        raise StoreUnusableError(
            f"{path} is damaged, or of another version of Lazulite: its format is not {FORMAT} to {WITH_INDEXES}"
        )


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
            raise DataDirectoryInUseError(f"{path} is in use by another process; stop that first") from None
        yield
