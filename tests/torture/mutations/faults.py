"""Servers that take faults badly, for the campaign of faults to find."""

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb import database, scan
from lazulite.engine.rocksdb import engine as rocksdb
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.rocksdb.rollback_journal import Batch


def in_a_hurry() -> None:
    """No mutation: the store is opened again soon after a failure, so that tests are short."""
    vars(rocksdb)["RocksSettings"] = partial(RocksSettings, recovery_retry_seconds=0.05)


def acknowledge_failed_writes() -> None:
    """A write that fails is answered like one that does not."""
    in_a_hurry()
    put, sync = OpenDatabase._put, OpenDatabase._sync

    def put_or_not(self: OpenDatabase, batch: Batch) -> None:
        with contextlib.suppress(EngineError):
            put(self, batch)

    def sync_or_not(self: OpenDatabase) -> None:
        with contextlib.suppress(EngineError):
            sync(self)

    OpenDatabase._put, OpenDatabase._sync = put_or_not, sync_or_not  # type: ignore[method-assign]


def sync_again() -> None:
    """A sync that fails is done again until it does not, and then believed."""
    in_a_hurry()
    sync, opened = OpenDatabase._sync, DataDirectory.open
    homes: list[Path] = []

    def note(self: DataDirectory) -> object:
        assert self._path is not None
        homes.append(self._path)
        return opened(self)

    def believe(self: OpenDatabase) -> None:
        try:
            sync(self)
        except EngineError:
            for log in homes[-1].glob("*.log"):
                file = os.open(log, os.O_RDWR)
                for _ in range(10):
                    with contextlib.suppress(OSError):
                        os.fdatasync(file)
                os.close(file)

    DataDirectory.open, OpenDatabase._sync = note, believe  # type: ignore[method-assign,assignment]


def stay_failed() -> None:
    """A store that has failed is never opened again."""
    database.DatabaseLifecycle._recover_soon = lambda self: None  # type: ignore[method-assign]


def write_one_by_one() -> None:
    """A transaction is written row by row, so that a disk that fills up in the middle leaves a part of it."""
    in_a_hurry()
    put = OpenDatabase._put

    def piecemeal(self: OpenDatabase, batch: Batch) -> None:
        for change in batch.changes[:-2]:
            put(self, Batch([change]))
        put(self, batch)

    OpenDatabase._put = piecemeal  # type: ignore[method-assign]


def end_early() -> None:
    """A scan takes a row that cannot be read for the end of the table."""
    in_a_hurry()
    vars(scan)["STORE_ERRORS"] = contextlib.suppress(Exception)


MUTATIONS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (in_a_hurry, acknowledge_failed_writes, sync_again, stay_failed, write_one_by_one, end_early)
}
