"""The rollback journal: makes a commit group that is too large for one write appear as a whole.

A write keeps the interpreter's lock, so that the event loop waits: some 2 ms for each MiB. A large commit group is
therefore written as several batches. Each is synced before the next one, as whole groups are (see `recovery`):

    journal  the value that each key of the group had before, and the format `UNFINISHED` if the store's is less
    rows     the group's changes
    end      removes the journal, sets the store's format back, and completes the group

A crash leaves a prefix of these batches. Without the last one the store holds the journal and a part of the group.
`roll_back` then restores the values of the journal before the store is used. It may be interrupted and repeated.

Versions without this module would take the part for the whole. The format `UNFINISHED` makes them reject the store.
All versions that know `WITH_INDEXES` have this module, so a store of that format keeps it.

A record of the journal is a sequence of entries: length of the key, key, length of the value plus 1, value. Lengths are
4 bytes, big endian; a length of 0 means that there was no value.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from rocksdict import Rdict, ReadOptions, WriteBatch, WriteOptions

from lazulite.engine.key_encoding import INDEX_START, LISTED_START, META_PREFIX, index_key, is_listed, space_bounds
from lazulite.engine.rocksdb.group_commit import STORE_ERRORS, CommitGroup

FORMAT = 1
"""The format of a new store: of its keys (see `key_encoding`) and of its metadata."""
UNFINISHED = 2
"""The format of a store with a rollback journal, in all else of `FORMAT`."""
WITH_INDEXES = 3
"""The format of a store that has, or had, a declared index. Older versions would not keep its entries, so they must
reject it. A store of a greater format is rejected."""

FORMAT_KEY = META_PREFIX + b"format"
"""The store's format, in decimal digits."""

_JOURNAL = META_PREFIX + b"journal"
_JOURNAL_END = META_PREFIX + b"journam"
_NUMBER_BYTES = 4
_LENGTH_BYTES = 4
_CHANGE_BYTES = 256
"""What a change costs beside its bytes, in bytes that take as long."""

Change = tuple[bytes, bytes | None]
"""A key and its value; None: absent."""


class Batch(NamedTuple):
    """What one write puts into the database."""

    changes: Sequence[Change]
    dropped: Collection[int] = ()
    """Spaces to empty, after the changes."""

    def encoded(self) -> WriteBatch:
        """Return RocksDB's batch, which changes the index of keys with the rows. RocksDB accepts it once."""
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for key, value in self.changes:
            if value is None:
                delete(key)
            else:
                put(key, value)
            if LISTED_START <= key < INDEX_START:  # As `is_listed`, without a call for each key.
                if value is None:
                    batch.delete(index_key(key))
                else:
                    batch.put(index_key(key), b"")
        for start, end in map(space_bounds, self.dropped):
            batch.delete_range(start, end)
            if is_listed(start):
                batch.delete_range(index_key(start), index_key(end))
        return batch


def batches(group: CommitGroup, last: Change, bytes_max: int, stored_format: int = FORMAT) -> Iterator[Batch]:
    """Yield the batches that write a commit group, each to be synced before the next.

    Args:
        group: the group. One batch is enough if its size is at most `bytes_max`.
        last: a change that completes the group.
        bytes_max: bound on the size of a batch. A single row may exceed it.
        stored_format: of the store, once the group is whole.
    """
    if group.size_bytes <= bytes_max:
        yield Batch([*group.changes.items(), last], group.dropped)
        return
    records: list[Change] = []
    for part in _parts(group.undo.items(), bytes_max):
        key = _JOURNAL + len(records).to_bytes(_NUMBER_BYTES, "big")
        records.append((key, None))
        yield Batch([(key, _encode(part)), (FORMAT_KEY, b"%d" % max(stored_format, UNFINISHED))])
    for part in _parts(group.changes.items(), bytes_max):
        yield Batch(part)
    yield Batch([*records, (FORMAT_KEY, b"%d" % stored_format), last], group.dropped)


def journal(database: Rdict) -> Iterator[Change]:
    """Yield each key of an unfinished group with its value before; nothing if all groups are whole.

    Raises:
        EngineError: the journal cannot be read.
    """
    for _, record in _records(database):
        yield from _decode(record)


def roll_back(database: Rdict, options: WriteOptions, bytes_max: int) -> None:
    """Undo the unfinished group, if there is one.

    Args:
        database: a database just opened.
        options: of a write that returns when it is durable.
        bytes_max: see `batches`.

    Raises:
        EngineError: the journal cannot be read, or the database cannot be written.
    """
    records: list[Change] = []
    for key, record in _records(database):
        records.append((key, None))
        for part in _parts(_decode(record), bytes_max):
            _write(database, Batch(part), options)
    if records:
        _write(database, Batch([*records, (FORMAT_KEY, b"%d" % read_format(database))]), options)


def read_format(database: Rdict) -> int:
    """Return the format that a database, which has one, has without a rollback journal."""
    with STORE_ERRORS:
        stored = int(cast("bytes", database.get(FORMAT_KEY)))
    return FORMAT if stored == UNFINISHED else stored


def _write(database: Rdict, batch: Batch, options: WriteOptions) -> None:
    with STORE_ERRORS:
        database.write(batch.encoded(), options)


def _records(database: Rdict) -> Iterator[tuple[bytes, bytes]]:
    options = ReadOptions()
    options.set_iterate_upper_bound(_JOURNAL_END)
    with STORE_ERRORS:
        iterator = database.iter(options)
        iterator.seek(_JOURNAL)
    while iterator.valid():
        yield cast("bytes", iterator.key()), cast("bytes", iterator.value())
        iterator.next()
    with STORE_ERRORS:
        iterator.status()


def _parts(changes: Iterable[Change], bytes_max: int) -> Iterator[list[Change]]:
    """Divide changes into parts of at most `bytes_max`, or of one change."""
    part: list[Change] = []
    size_bytes = 0
    for key, value in changes:
        added = _CHANGE_BYTES + len(key) + (0 if value is None else len(value))
        if part and size_bytes + added > bytes_max:
            yield part
            part, size_bytes = [], 0
        part.append((key, value))
        size_bytes += added
    yield part


def _encode(changes: Iterable[Change]) -> bytes:
    pieces: list[bytes] = []
    for key, value in changes:
        length = 0 if value is None else len(value) + 1
        pieces += (_length(len(key)), key, _length(length), value or b"")
    return b"".join(pieces)


def _length(number: int) -> bytes:
    return number.to_bytes(_LENGTH_BYTES, "big")


def _decode(record: bytes) -> Iterator[Change]:
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        return record[at - count : at]

    while at < len(record):
        key = take(int.from_bytes(take(_LENGTH_BYTES), "big"))
        length = int.from_bytes(take(_LENGTH_BYTES), "big")
        yield key, take(length - 1) if length else None
