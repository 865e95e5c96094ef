"""Servers that take faults badly, for the campaign of faults to find."""

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rocksdict import WriteBatch

from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb import engine as rocksdb
from lazulite.engine.rocksdb import scan
from lazulite.engine.rocksdb.commit_group import Generation
from lazulite.engine.rocksdb.data_directory import Location
from lazulite.engine.rocksdb.database import Store
from lazulite.engine.rocksdb.errors import STORE_ERRORS
from lazulite.engine.rocksdb.options import RocksSettings


def in_a_hurry() -> None:
    """No sabotage: the store is opened again soon after a failure, so that tests are short."""
    vars(rocksdb)["RocksSettings"] = partial(RocksSettings, recovery_retry_seconds=0.05)


def acknowledge_failed_writes() -> None:
    """A write that fails is answered like one that does not."""
    in_a_hurry()
    put, sync = Store._put, Store._sync

    def put_or_not(self: Store, generation: Generation) -> None:
        with contextlib.suppress(EngineError):
            put(self, generation)

    def sync_or_not(self: Store) -> None:
        with contextlib.suppress(EngineError):
            sync(self)

    Store._put, Store._sync = put_or_not, sync_or_not  # type: ignore[method-assign]


def sync_again() -> None:
    """A sync that fails is done again until it does not, and then believed."""
    in_a_hurry()
    sync, opened = Store._sync, Location.open
    homes: list[Path] = []

    def remember(self: Location) -> object:
        assert self._path is not None
        homes.append(self._path)
        return opened(self)

    def believe(self: Store) -> None:
        try:
            sync(self)
        except EngineError:
            for log in homes[-1].glob("*.log"):
                file = os.open(log, os.O_RDWR)
                for _ in range(10):
                    with contextlib.suppress(OSError):
                        os.fdatasync(file)
                os.close(file)

    Location.open, Store._sync = remember, believe  # type: ignore[method-assign,assignment]


def stay_failed() -> None:
    """A store that has failed is never opened again."""
    rocksdb.RocksEngine._recover_soon = lambda self: None  # type: ignore[method-assign]


def write_one_by_one() -> None:
    """A transaction is written row by row, so that a disk that fills up in the middle leaves a part of it."""
    in_a_hurry()
    put = Store._put

    def piecemeal(self: Store, generation: Generation) -> None:
        for key, value in list(generation.changes.items())[:-1]:
            batch = WriteBatch(raw_mode=True)
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
            with STORE_ERRORS:
                self.database.write(batch, self._options)
        put(self, generation)

    Store._put = piecemeal  # type: ignore[method-assign]


def end_early() -> None:
    """A scan takes a row that cannot be read for the end of the table."""
    in_a_hurry()
    vars(scan)["STORE_ERRORS"] = contextlib.suppress(Exception)


SABOTAGES: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (in_a_hurry, acknowledge_failed_writes, sync_again, stay_failed, write_one_by_one, end_early)
}
