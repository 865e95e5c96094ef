"""The log of durable changes, in memory that the process of a store shares with its workers.

The process of the store appends a record for each commit group before it acknowledges the group. Workers only read. So
a worker that has read to the end of the log knows every change that was acknowledged, and none that is not durable.

    word      8 bytes at 0: the position of the newest record
    ring      behind the first 64 bytes: the byte of position `p` is at `p` modulo the size of the ring
    record    position (8 bytes), number (8), flushed (8), length of the body (4), checksum (4), all little endian;
              then the body: the changes and the dropped spaces, as `marshal` writes them
    number    RocksDB's sequence number of the last write in the changes up to here
    flushed   RocksDB's files hold all changes up to this sequence number; the files may hold later ones

Positions grow forever, and a record begins where the one before ends. A record is written first, and then the word, in
one store: 8 aligned bytes, which no processor that Python runs on divides. So readers see a commit group as a whole.

A reader copies a record and then compares its position and its checksum, an unsigned CRC-32 of all else. If the ring
has gone round meanwhile, one of both is wrong: the reader is *lost*. It begins again at the newest record, and needs
files that hold all changes up to there.

A record without changes (None) says the same to all readers: the store was opened again, and a failed group may be
part of it, or the group was too large for the ring.
"""

import marshal
import mmap
import os
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from isal.isal_zlib import crc32

from lazulite.engine.commit import Plain

RING_BYTES = 16 << 20
_RING_START = 64
_HEAD = struct.Struct("<QQQII")
_MARSHAL_VERSION = 2  # Later versions look each object up to write it once only.
_SHARE_MAX = 4
"""A record takes at most such a part of the ring."""
_DAMAGED = "a record of the change log was overwritten"

Changes: TypeAlias = Mapping[bytes, bytes | None]
"""Keys with their new values; None: absent."""


class ChangeRecord(NamedTuple):
    """The changes of one commit group."""

    number: int
    """See the module."""
    flushed: int
    """See the module."""
    changes: Changes | None
    """None: unknown."""
    dropped: Collection[int]
    """The spaces that were dropped, after the changes."""
    size_bytes: int
    """The size of its body."""
    end: int
    """The position of the record behind it."""


class LostError(Exception):
    """The record was overwritten."""


def can_share_memory() -> bool:
    """Tell whether this platform has memory to share by a descriptor."""
    return hasattr(os, "memfd_create")


class ChangeLog:
    """The log, as the process of the store has it.

    Args:
        ring_bytes: the size of the ring.
        before_word: called between the two steps of an append, for tests.
    """

    def __init__(self, ring_bytes: int = RING_BYTES, before_word: Callable[[], None] = lambda: None) -> None:
        self.descriptor = os.memfd_create("lazulite-changes", os.MFD_CLOEXEC)
        """The file descriptor of the memory, to be inherited by workers."""
        os.truncate(self.descriptor, _RING_START + ring_bytes)
        # All pages are allocated now: a page that is missing later would end the process.
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        self._memory = memoryview(mmap.mmap(self.descriptor, _RING_START + ring_bytes, flags))
        self._word = self._memory[:8].cast("Q")
        self._ring = self._memory[_RING_START:]
        self._before_word = before_word
        self._end = ring_bytes  # No record is at 0, the word of a log without records.
        self._number = 0

    def append(self, number: int, flushed: int, changes: Changes | None, dropped: Collection[int] = ()) -> None:
        """Append the changes of a commit group, all of them durable; None: they are unknown."""
        told: Plain = (changes, tuple(dropped))
        body = b"" if changes is None else marshal.dumps(told, _MARSHAL_VERSION)
        if len(body) > len(self._ring) // _SHARE_MAX:
            body = b""
        position, self._number = self._end, number
        checksum = crc32(body, crc32(_HEAD.pack(position, number, flushed, len(body), 0)))
        self._write(position, _HEAD.pack(position, number, flushed, len(body), checksum))
        self._write(position + _HEAD.size, body)
        self._end = position + _HEAD.size + len(body)
        self._before_word()
        self._word[0] = position

    def note_flushed(self, flushed: int) -> None:
        """Append that RocksDB's files hold all changes up to a sequence number."""
        self.append(self._number, flushed, {})

    def close(self) -> None:
        """Release the memory; readers keep it."""
        os.close(self.descriptor)

    def _write(self, position: int, data: bytes) -> None:
        start = position % len(self._ring)
        room = len(self._ring) - start
        if len(data) <= room:
            self._ring[start : start + len(data)] = data
        else:
            self._ring[start:] = data[:room]
            self._ring[: len(data) - room] = data[room:]


class ChangeLogReader:
    """The log, as a worker reads it.

    Args:
        descriptor: of the memory. The caller may close it afterwards.
    """

    def __init__(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        memory = memoryview(mmap.mmap(descriptor, size, prot=mmap.PROT_READ))
        self.word = memory[:8].cast("Q")
        """Its one value is the position of the newest record; it changes with each append."""
        self._ring = memory[_RING_START:]
        self._read_to = 0
        self._next = 0

    @property
    def is_behind(self) -> bool:
        """Whether there are records that were not read."""
        return self.word[0] != self._read_to

    def begin(self) -> ChangeRecord:
        """Read the newest record. `read` goes on behind it.

        Raises:
            LostError: it was overwritten meanwhile.
        """
        newest = self.word[0]
        record = self._record(newest)
        self._read_to, self._next = newest, record.end
        return record

    def read(self) -> Iterator[ChangeRecord]:
        """Yield the records that were not read, up to the newest one.

        Raises:
            LostError: one of them was overwritten.
        """
        newest = self.word[0]
        while self._next <= newest:
            record = self._record(self._next)
            self._next = record.end
            yield record
        self._read_to = newest

    def _record(self, position: int) -> ChangeRecord:
        head = self._copy(position, _HEAD.size)
        found, number, flushed, length, checksum = _HEAD.unpack(head)
        if found != position or length > len(self._ring) // _SHARE_MAX:
            raise LostError(_DAMAGED)
        body = self._copy(position + _HEAD.size, length)
        if checksum != crc32(body, crc32(_HEAD.pack(position, number, flushed, length, 0))):
            raise LostError(_DAMAGED)
        # Only the process of the store writes to the memory; both are the same program (see `remote.channel`).
        changes, dropped = marshal.loads(body) if body else (None, ())  # noqa: S302
        return ChangeRecord(number, flushed, changes, dropped, length, position + _HEAD.size + length)

    def _copy(self, position: int, size: int) -> bytes:
        start = position % len(self._ring)
        first = bytes(self._ring[start : start + size])
        return first if len(first) == size else first + bytes(self._ring[: size - len(first)])
