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
from lazulite.engine.key_encoding import decode_key
from lazulite.engine.rocksdb.errors import STORE_ERRORS
from lazulite.engine.rocksdb.group_commit import Bounds
from lazulite.engine.rocksdb.options import RocksSettings

_Run = tuple[list[bytes], list[bytes]]
_Runs = Generator[_Run, None, None]
"""Keys and values in ascending order, a few rows at a time, so that a row takes little beyond the binding's own work;
now and then no row, where much work found none."""

_RUN_ROWS_MAX = 16
_LARGE_BYTES = 16 << 10
"""A row of more than that ends its run."""


class RowSlice:
    """Rows as they were stored; keys are decoded only when asked for."""

    __slots__ = ("keys", "values")

    def __init__(self, keys: list[bytes], values: list[bytes]) -> None:
        self.keys = keys
        self.values = values

    def key(self, index: int) -> Key:
        """Return (partition, row) of `values[index]`."""
        return decode_key(self.keys[index])


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
            runs = _read(database.iter(options), ranges, _RUN_ROWS_MAX if limit is None else min(limit, _RUN_ROWS_MAX))
        self._runs = _replaced(runs, durable) if durable else runs

    def close(self) -> None:
        """Let go of the database; a later `read` is refused."""
        self._closed = True
        if not self.done:
            self._runs.close()

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
        for run_keys, run_values in self._runs:
            keys += run_keys
            values += run_values
            bytes_left -= sum(map(len, run_values))
            if len(values) >= rows_max or bytes_left <= 0 or timer() >= deadline:
                break
        else:
            self.done = True
        if self._left is not None:
            del keys[self._left :], values[self._left :]
            self._left -= len(values)
            if self._left == 0:
                self._runs.close()
                self.done = True
        return RowSlice(keys, values)


def _read(iterator: RdictIter, ranges: Sequence[Bounds], rows_max: int) -> _Runs:
    """Yield the rows of the ranges, at most `rows_max` in a run; the last run of a range may be empty."""
    read_key, read_value, step = iterator.key, iterator.value, iterator.next
    for start, end in ranges:
        iterator.seek(start)
        inside = True
        while inside:
            keys: list[bytes] = []
            values: list[bytes] = []
            for _ in range(rows_max):
                key = read_key()
                if key is None or key >= end:
                    inside = False
                    break
                value = read_value()
                keys.append(key)
                values.append(value)
                step()
                if len(value) > _LARGE_BYTES:
                    break
            yield keys, values
        if not iterator.valid():
            with STORE_ERRORS:
                iterator.status()  # A damaged block ends an iterator as the last row does, but for this.


def _replaced(runs: _Runs, durable: Mapping[bytes, bytes | None]) -> _Runs:
    """Yield runs with those keys' rows replaced, put in, or left out (None) as `durable` says."""
    waiting = sorted(durable, reverse=True)
    for keys, values in runs:
        if not keys or not waiting or waiting[-1] > keys[-1]:
            yield keys, values
            continue
        rows: dict[bytes, bytes | None] = dict(zip(keys, values, strict=True))
        while waiting and waiting[-1] <= keys[-1]:
            key = waiting.pop()
            rows[key] = durable[key]
        yield _present(rows)
    yield _present({key: durable[key] for key in waiting})


def _present(rows: Mapping[bytes, bytes | None]) -> _Run:
    """Return the rows that are there, in order."""
    present = sorted((key, value) for key, value in rows.items() if value is not None)
    return [key for key, _ in present], [value for _, value in present]
