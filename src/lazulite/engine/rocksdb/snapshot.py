"""Snapshots: keys and values of any space, all of one moment.

A snapshot is one iterator of RocksDB, which sees the database of the moment when it was made. What that database had
too early, or lacked, is replaced, as in scans (see `scan`). An iterator keeps its database open, so each snapshot must
be closed before the database.
"""

from collections.abc import Mapping, Sequence

from rocksdict import Rdict, RdictIter, ReadOptions

from lazulite.engine.contract import EngineUnavailableError, Key, KeyRange
from lazulite.engine.key_encoding import decode_keys, encode_key, range_bounds
from lazulite.engine.rocksdb.group_commit import STORE_ERRORS


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
        others = {key: value for key, value in self._replaced.items() if start <= key < end}
        with STORE_ERRORS:
            found = self._between(start, end, limit + len(others))
        if others:
            present = dict.fromkeys(found, b"") | others
            found = sorted([key for key, value in present.items() if value is not None])[:limit]
        return list(zip(*decode_keys(found), strict=True))

    def _between(self, start: bytes, end: bytes, limit: int) -> list[bytes]:
        iterator = self._opened()
        read_key, step = iterator.key, iterator.next
        found: list[bytes] = []
        iterator.seek(start)
        while len(found) < limit and (key := read_key()) is not None and key < end:
            found.append(key)
            step()
        if not iterator.valid():
            iterator.status()  # Otherwise a damaged block would look like the last row.
        return found

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        """See `Snapshot`."""
        iterator, replaced = self._opened(), self._replaced
        seek, read_key, read_value = iterator.seek, iterator.key, iterator.value
        found: list[bytes | None] = []
        with STORE_ERRORS:
            for key in [encode_key(space, partition, row) for partition, row in keys]:
                if key in replaced:
                    found.append(replaced[key])
                    continue
                seek(key)
                if (at := read_key()) is None:
                    iterator.status()
                found.append(read_value() if at == key else None)
        return found

    def _opened(self) -> RdictIter:
        if self._iterator is None:
            raise EngineUnavailableError("the store was closed during a read")
        return self._iterator
