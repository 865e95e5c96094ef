"""Snapshots: keys and values of any space, all of one moment.

A snapshot is one iterator of RocksDB, which sees the database of the moment when it was made. What that database had
too early, or lacked, is replaced, as in scans (see `scan`). An iterator keeps its database open, so each snapshot must
be closed before the database.
"""

from collections.abc import Iterator, Mapping, Sequence

from rocksdict import Rdict, RdictIter, ReadOptions

from lazulite.engine.contract import EngineUnavailableError, Key, KeyRange
from lazulite.engine.key_encoding import decode_key, encode_key, range_bounds
from lazulite.engine.rocksdb.group_commit import STORE_ERRORS, UNCHANGED, Unchanged


class StoreSnapshot:
    """A `Snapshot` of a database.

    Args:
        database: the database.
        replaced: the values of keys that replace those of the database; None: absent. They must not change.
    """

    def __init__(self, database: Rdict, replaced: Mapping[bytes, bytes | None]) -> None:
        with STORE_ERRORS:
            self._iterator: RdictIter | None = database.iter(ReadOptions())
        self._replaced = replaced

    def close(self) -> None:
        """Release the database; a later call is rejected."""
        self._iterator = None

    async def keys(self, space: int, key_range: KeyRange, limit: int) -> list[Key]:
        """See `Snapshot`."""
        start, end = range_bounds(space, key_range)
        others = sorted(key for key in self._replaced if start <= key < end)
        found: list[bytes] = []
        with STORE_ERRORS:
            for key in self._between(start, end):
                while others and others[0] <= key:
                    other = others.pop(0)
                    if other != key and self._replaced[other] is not None:
                        found.append(other)
                if self._replaced.get(key, UNCHANGED) is not None:
                    found.append(key)
                if len(found) >= limit:
                    break
        found += [key for key in others if self._replaced[key] is not None]
        return [decode_key(key) for key in found[:limit]]

    def _between(self, start: bytes, end: bytes) -> Iterator[bytes]:
        iterator = self._opened()
        iterator.seek(start)
        while (key := iterator.key()) is not None and key < end:
            yield key
            iterator.next()
        if not iterator.valid():
            iterator.status()  # Otherwise a damaged block would look like the last row.

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        """See `Snapshot`."""
        with STORE_ERRORS:
            return [self._value(encode_key(space, *key)) for key in keys]

    def _value(self, key: bytes) -> bytes | None:
        replaced: bytes | Unchanged | None = self._replaced.get(key, UNCHANGED)
        if replaced is not UNCHANGED:
            return replaced
        iterator = self._opened()
        iterator.seek(key)
        if iterator.key() == key:
            value: bytes | None = iterator.value()
            return value
        if not iterator.valid():
            iterator.status()
        return None

    def _opened(self) -> RdictIter:
        if self._iterator is None:
            raise EngineUnavailableError("the store was closed during a read")
        return self._iterator
