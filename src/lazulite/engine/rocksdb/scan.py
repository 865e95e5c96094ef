"""Scans over one snapshot, a bounded slice at a time.

The snapshot is that of a RocksDB iterator: it sees the database of the moment when it was made. (Iterators of the
binding's `Snapshot` see later writes, so that class is of no use here.) The database may hold undurable writes at that
moment. The argument `durable` holds the durable values of their keys, which replace them. The database of a `Replica`
lacks writes at that moment; there the argument holds those.

A scan of keys alone reads the index of keys of a listed space (`key_encoding`), and the keys of rows in any other. The
keys of a slice may therefore be those of the index. Both are decoded alike.

An iterator keeps its database open, so all cursors must be closed before the database.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, cast

from rocksdict import Rdict, RdictIter, ReadOptions

from lazulite.engine.contract import EngineUnavailableError, JoinedKeys, Key
from lazulite.engine.key_encoding import (
    SPACE_BYTES,
    decode_key,
    decode_keys,
    encode_key,
    index_key,
    is_listed,
    join_keys,
)
from lazulite.engine.rocksdb.group_commit import STORE_ERRORS, Bounds
from lazulite.engine.rocksdb.options import RocksSettings

_Run = tuple[list[bytes], list[bytes]]
Runs = Generator[_Run, None, None]
"""Keys and values in ascending order, a few rows at a time to keep the cost of a row near the binding's own. A run may
be empty."""

SortedRows = tuple[Sequence[bytes], Sequence[bytes | None]]
"""Keys in ascending order, and their values; None: absent."""

_RUN_ROWS_MAX = 16
_RUN_KEYS_MAX = 256
_LARGE_BYTES = 16 << 10
"""A larger row ends its run."""


def sorted_rows(rows: Mapping[bytes, bytes | None]) -> SortedRows:
    """Return rows in order."""
    keys = sorted(rows)
    return keys, [rows[key] for key in keys]


class RowSlice:
    """Stored rows; a key is decoded only when it is read."""

    __slots__ = ("keys", "values")

    def __init__(self, keys: list[bytes], values: list[bytes]) -> None:
        self.keys = keys
        self.values = values

    def key(self, index: int) -> Key:
        """Return (partition, row) of `values[index]`."""
        return decode_key(self.keys[index])

    def columns(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `Slice`."""
        return decode_keys(self.keys)

    def joined(self, start: int) -> JoinedKeys:
        """See `Slice`."""
        return join_keys(self.keys[start:] if start else self.keys, SPACE_BYTES)

    def find(self, key: Key, start: int) -> int:
        """See `Slice`."""
        if start == len(self.keys):
            return start
        sought = self.keys[start][:SPACE_BYTES] + encode_key(0, *key)[SPACE_BYTES:]
        return bisect_left(self.keys, sought, start)


class Cursor:
    """A position in some ranges of a database, over a snapshot made with the cursor."""

    def __init__(
        self,
        database: Rdict,
        ranges: Sequence[Bounds],
        durable: SortedRows,
        limit: int | None,
        settings: RocksSettings,
        *,
        keys_only: bool = False,
    ) -> None:
        """Take the snapshot; `limit` bounds the rows in all. With `keys_only`, most values are empty."""
        self.done = limit == 0 or not ranges
        """Whether all rows were read."""
        self._left = limit
        self._settings = settings
        self._keys_only = keys_only
        self._rows_max = settings.slice_keys_max if keys_only else settings.slice_rows_max
        self._closed = False
        if self.done:
            return
        run_max = _RUN_KEYS_MAX if keys_only else _RUN_ROWS_MAX
        run_rows = run_max if limit is None else min(limit, run_max)
        with STORE_ERRORS:
            if keys_only:
                if is_listed(ranges[0][0]):
                    ranges = [(index_key(start), index_key(end)) for start, end in ranges]
                    durable = (list(map(index_key, durable[0])), durable[1])
                runs = _runs_of_keys([_key_range(database, *bounds) for bounds in ranges], run_rows)
            else:
                runs = _runs_of(database.iter(_options(ranges[-1][1])), ranges, run_rows)
        self._runs = replaced(runs, durable) if durable[0] else runs

    def close(self) -> None:
        """Release the database; a later `next_slice` is rejected."""
        self._closed = True
        if not self.done:
            self._runs.close()

    def next_slice(self, timer: Callable[[], float]) -> RowSlice:
        """Return the next rows, within the bounds of a slice; `timer` returns seconds."""
        if self._closed:
            raise EngineUnavailableError("the store was closed during a scan")
        settings = self._settings
        has_values = not self._keys_only
        rows_max = self._rows_max if self._left is None else min(self._left, self._rows_max)
        bytes_left = settings.slice_bytes_max
        deadline = timer() + settings.slice_seconds_max
        keys: list[bytes] = []
        values: list[bytes] = []
        for run_keys, run_values in self._runs:
            keys += run_keys
            values += run_values
            bytes_left -= sum(map(len, run_values)) if has_values else 0
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


def _runs_of(iterator: RdictIter, ranges: Sequence[Bounds], rows_max: int) -> Runs:
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
                iterator.status()  # Otherwise a damaged block would look like the last row.


class _Keys(NamedTuple):
    """The keys of a range. Its two iterators see one snapshot: no write comes between them."""

    start: bytes
    end: bytes
    keys: Iterable[bytes]
    """Iterated over by the binding; it ends where a block cannot be read, too, and does not tell."""
    witness: RdictIter
    """Tells whether they ended where the range does."""


def _key_range(database: Rdict, start: bytes, end: bytes) -> _Keys:
    options = _options(end)
    witness = database.iter(options)
    keys = cast("Iterable[bytes]", database.keys(from_key=start, read_opt=options))
    return _Keys(start, end, keys, witness)


def _runs_of_keys(ranges: Sequence[_Keys], rows_max: int) -> Runs:
    """Yield the keys of the ranges with empty values, at most `rows_max` in a run."""
    for start, end, keys, witness in ranges:
        behind = start
        while run := list(islice(keys, rows_max)):
            behind = run[-1] + b"\0"
            yield run, [b""] * len(run)
        witness.seek(behind)
        with STORE_ERRORS:
            witness.status()
        if (key := witness.key()) is not None and key < end:
            raise EngineUnavailableError("the store could not be read to the end of a range")


def _options(end: bytes) -> ReadOptions:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    return options


def replaced(runs: Runs, durable: SortedRows) -> Runs:
    """Yield runs with those keys' rows replaced, put in, or left out (None) as `durable` says."""
    others, values_of_others = durable
    at = 0

    def mixed(keys: Sequence[bytes], values: Sequence[bytes], end: int) -> _Run:
        rows: dict[bytes, bytes | None] = dict(zip(keys, values, strict=True))
        rows.update(zip(others[at:end], values_of_others[at:end], strict=True))
        present = sorted((key, value) for key, value in rows.items() if value is not None)
        return [key for key, _ in present], [value for _, value in present]

    def end_of_run(start: int, end: int) -> int:
        for index in range(start, min(end, start + _RUN_ROWS_MAX)):
            if len(values_of_others[index] or b"") > _LARGE_BYTES:
                return index + 1
        return min(end, start + _RUN_ROWS_MAX)

    for keys, values in runs:
        behind = bisect_right(others, keys[-1], at) if keys else at
        while (end := end_of_run(at, behind)) < behind:
            cut = bisect_right(keys, others[end - 1])
            yield mixed(keys[:cut], values[:cut], end)
            keys, values, at = keys[cut:], values[cut:], end  # noqa: PLW2901
        yield mixed(keys, values, behind) if behind > at else (keys, values)
        at = behind
    while at < len(others):
        end = end_of_run(at, len(others))
        yield mixed([], [], end)
        at = end
