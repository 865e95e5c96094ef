"""Reading runs of rows as of one moment, a bounded slice at a time.

The moment is that of a RocksDB iterator's making: it sees the database as it was then, wherever it is sent later. (The
binding's `Snapshot` would be the obvious thing, but its iterators see what was written after it.) The database may
hold writes that are not durable at that moment; for their keys the durable values are handed in (`durable`), and take
their place.

An iterator keeps its database open, so whoever closes the database closes the cursors first.
"""

from collections.abc import Callable, Generator, Mapping, Sequence

from rocksdict import Rdict, RdictIter, ReadOptions

from lazulite.engine.contract import EngineUnavailableError, Key
from lazulite.engine.group_commit import Bounds
from lazulite.engine.keys import decode_key
from lazulite.engine.rocks_errors import STORE_ERRORS
from lazulite.engine.rocks_options import RocksSettings

_Rows = Generator[tuple[bytes, bytes] | None, None, None]
"""Rows in ascending order, and a None now and then where much work found no row."""


class RowSlice:
    """Rows as they were stored; keys are decoded only when asked for."""

    __slots__ = ("_keys", "values")

    def __init__(self, keys: list[bytes], values: list[bytes]) -> None:
        self._keys = keys
        self.values = values

    def key(self, index: int) -> Key:
        """Return (partition, row) of `values[index]`."""
        return decode_key(self._keys[index])


class Cursor:
    """A place in some ranges of a database as it was when the cursor was made."""

    def __init__(
        self,
        database: Rdict,
        ranges: Sequence[Bounds],
        durable: Mapping[bytes, bytes | None],
        limit: int | None,
        settings: RocksSettings,
    ) -> None:
        """`limit` bounds the rows in all."""
        self.done = limit == 0 or not ranges
        """Nothing is left to read."""
        self._left = limit
        self._settings = settings
        self._closed = False
        if self.done:
            return
        options = ReadOptions()
        options.set_iterate_upper_bound(ranges[-1][1])
        with STORE_ERRORS:
            rows = _read(database.iter(options), ranges)
        self._rows = _replaced(rows, durable) if durable else rows

    def close(self) -> None:
        """Let go of the database; a later `read` is refused."""
        self._closed = True
        if not self.done:
            self._rows.close()

    def read(self, timer: Callable[[], float]) -> RowSlice:
        """Return the next rows, as many as one slice may hold and take; `timer` counts seconds."""
        if self._closed:
            raise EngineUnavailableError("the store was closed during a scan")
        settings = self._settings
        rows_max = settings.slice_rows_max if self._left is None else min(self._left, settings.slice_rows_max)
        bytes_left = settings.slice_bytes_max
        deadline = timer() + settings.slice_seconds_max
        keys: list[bytes] = []
        values: list[bytes] = []
        for row in self._rows:
            if row is not None:
                keys.append(row[0])
                values.append(row[1])
                bytes_left -= len(row[1])
            if len(values) >= rows_max or bytes_left <= 0 or timer() >= deadline:
                break
        else:
            self.done = True
        if self._left is not None:
            self._left -= len(values)
            if self._left == 0:
                self._rows.close()
                self.done = True
        return RowSlice(keys, values)


def _read(iterator: RdictIter, ranges: Sequence[Bounds]) -> _Rows:
    """Yield the rows of the ranges, and None after each range."""
    valid, key, value, step = iterator.valid, iterator.key, iterator.value, iterator.next
    for start, end in ranges:
        iterator.seek(start)
        while valid() and (found := key()) < end:
            yield found, value()
            step()
        if not valid():
            with STORE_ERRORS:
                iterator.status()  # A damaged block ends an iterator as the last row does, but for this.
        yield None


def _replaced(rows: _Rows, durable: Mapping[bytes, bytes | None]) -> _Rows:
    """Yield rows with those keys' rows replaced, put in, or left out (None) as `durable` says."""
    waiting = sorted(durable, reverse=True)
    for row in rows:
        if row is None:
            yield None
            continue
        while waiting and waiting[-1] < row[0]:
            yield from _present(waiting.pop(), durable)
        if waiting and waiting[-1] == row[0]:
            yield from _present(waiting.pop(), durable)
        else:
            yield row
    while waiting:
        yield from _present(waiting.pop(), durable)


def _present(key: bytes, durable: Mapping[bytes, bytes | None]) -> _Rows:
    value = durable[key]
    yield None if value is None else (key, value)
