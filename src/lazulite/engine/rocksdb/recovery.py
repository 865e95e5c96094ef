"""The checks of a store's files before RocksDB reads them, and the choice of its recovery mode for the log.

None of RocksDB's modes fits. A commit group is written as one record, or as several (`rollback_journal`). Each record
is written after the one before was synced (`group_commit`). So the last record of a log may be unreadable: none of it
was acknowledged. But a readable record after it, or a missing one below the durable-sequence marker, was acknowledged.
The store is opened read-only, in up to three modes, and the sequence numbers that they recover to are compared:

- `tolerate_corrupted_tail_records` accepts a log that ends early, and rejects other damage. But a record with a damaged
  length looks like an early end; hence the marker.
- `point_in_time` recovers everything before the damage, `skip_any_corrupted_record` also everything after it. If they
  agree, nothing follows the damage: the tail is torn.

A store without a marker (new, restored, or of an older version) gets the first mode.

The binding reads the newest options file when it opens a store, though it is given every option again. If the name of a
section is damaged, the process ends with a segmentation fault. The store needs none of these files.

A log or a MANIFEST is blocks of 32 KiB. A record, or a piece of one, has a header of seven bytes: a checksum (4), the
length (2) and the type (1), both little endian; none crosses a block's end. Lazulite's stores have types 1 to 4. Types
5 to 8 belong to recycled logs, which Lazulite does not use: RocksDB reads such a record forever and never opens. A
flipped bit turns a 1 into a 5.

The check of frames visits at least the records that RocksDB visits: it uses the same lengths, and goes on with the next
block after a record that cannot be read.

The durable-sequence marker is RocksDB's sequence number of the last write that was synced.

    lazulite.mark   two slots, at 0 and 512: the number (8 bytes, big endian), then a CRC-32 of these (4 bytes)

At startup this distinguishes a torn, unacknowledged log tail from loss of acknowledged writes. RocksDB alone cannot:
both are unreadable bytes at the end of its log. Writes up to the marker may have been acknowledged, so a store that
recovers to less than its marker has lost acknowledged writes.

Invariants of the marker: it is never above what is durable, because it is written after the sync. It is not synced
itself: after a power cut it may be some seconds old, after the death of a process alone it is exact. Writes alternate
between the slots, so a torn write leaves the other slot. A torn slot is repaired and synced before the other one is
written.
"""

import contextlib
import os
import re
import struct
import zlib
from pathlib import Path

from rocksdict import AccessType, DBRecoveryMode, Rdict

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.durable_files import sync_directory
from lazulite.engine.rocksdb.options import RocksSettings, database_options

NAME = "lazulite.mark"
_SLOTS = (0, 512)
_NUMBER_BYTES = 8
_SLOT_BYTES = _NUMBER_BYTES + 4
_BINARY: int = getattr(os, "O_BINARY", 0)
"""Windows writes CR LF without it."""

_NAME = re.compile(r"OPTIONS-(\d+)")
_SECTIONS = [b"[Version]", b"[DBOptions]", b'[CFOptions "default"]', b'[TableOptions/BlockBasedTable "default"]']

_BLOCK_BYTES = 32 << 10
_HEADER = struct.Struct("<IHB")
_RECYCLED = range(5, 9)


class DurableSequenceMarker:
    """The durable-sequence marker of an open store."""

    def __init__(self, path: Path, number: int) -> None:
        """Open the marker of a store in a directory, and set it. Raises OSError."""
        new = not (path / NAME).exists()
        self._file = os.open(path / NAME, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)
        self._writes = 0
        try:
            for slot in sorted(_SLOTS, key=self._is_good):
                _write(self._file, _encode(number), slot)
                os.fsync(self._file)
            if new:
                sync_directory(path)
        except OSError:
            self.close()
            raise

    def _is_good(self, slot: int) -> bool:
        content = _read(self._file, _SLOT_BYTES, slot)
        return content == _encode(int.from_bytes(content[:_NUMBER_BYTES], "big"))

    def advance(self, number: int) -> None:
        """Record that all writes up to a number are durable. If that fails, the marker stays, which is true as well."""
        slot = _SLOTS[self._writes % len(_SLOTS)]
        self._writes += 1
        with contextlib.suppress(OSError):
            _write(self._file, _encode(number), slot)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_marker(path: Path) -> int | None:
    """Return the marker of the store in a directory; None if it has none yet.

    Raises:
        StoreUnusableError: the marker is damaged.
    """
    try:
        content = (path / NAME).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnusableError(f"{path / NAME} cannot be read: {error.strerror}") from error
    slots = [content[at : at + _SLOT_BYTES] for at in _SLOTS]
    numbers = [int.from_bytes(slot[:_NUMBER_BYTES], "big") for slot in slots if slot]
    known = [number for number in numbers if _encode(number) in slots]
    if not known and not all(any(content[at : at + _SLOT_BYTES]) for at in _SLOTS):
        return None  # The power was cut before the new file was wholly written.
    if not known:
        raise StoreUnusableError(
            f"{path / NAME} is damaged; restore the store from a backup, or remove that file to do without"
        )
    return max(known)


def _read(file: int, count: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, count, offset)
    os.lseek(file, offset, os.SEEK_SET)  # Windows.
    return os.read(file, count)


def _write(file: int, content: bytes, offset: int) -> None:
    if hasattr(os, "pwrite"):
        os.pwrite(file, content, offset)
    else:
        os.lseek(file, offset, os.SEEK_SET)  # Windows.
        os.write(file, content)


def _encode(number: int) -> bytes:
    encoded = number.to_bytes(_NUMBER_BYTES, "big")
    return encoded + zlib.crc32(encoded).to_bytes(4, "big")


def reject_damaged_options(path: Path) -> None:
    """Check the newest options file of the store in a directory.

    Raises:
        StoreUnusableError: it is damaged such that opening would end the process, or cannot be read.
    """
    try:
        numbers = [(int(match[1]), file) for file in path.iterdir() if (match := _NAME.fullmatch(file.name))]
        if not numbers:
            return
        newest = max(numbers)[1]
        sections = [line.strip() for line in newest.read_bytes().split(b"\n") if b"[" in line[:3]]
    except FileNotFoundError:
        return  # No store yet.
    except OSError as error:
        raise StoreUnusableError(f"{path} cannot be read: {error.strerror}") from error
    if sections != _SECTIONS:
        raise StoreUnusableError(f"{newest} is damaged; the store does not need it, so remove that file")


def reject_recycled(path: Path) -> None:
    """Check the logs and MANIFESTs of the store in a directory.

    Raises:
        StoreUnusableError: one cannot be read, or is damaged such that RocksDB would never return.
    """
    try:
        for file in sorted([*path.glob("*.log"), *path.glob("MANIFEST-*")]):
            at = recycled_at(file)
            if at is not None:
                raise StoreUnusableError(
                    f"{path} is damaged: {file.name} has a record of an impossible type at byte {at}; "
                    "restore it from a backup"
                )
    except OSError as error:
        raise StoreUnusableError(f"{path} cannot be read: {error.strerror}") from error


def recycled_at(file: Path) -> int | None:
    """Return where the first record of a recycled log is in a file, None if there is none."""
    start = 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            at = 0
            while at + _HEADER.size <= len(block):
                _, length, kind = _HEADER.unpack_from(block, at)
                if kind in _RECYCLED:
                    return start + at
                step = _HEADER.size + length
                at += step if 0 < kind < 5 and step <= _BLOCK_BYTES - at else _BLOCK_BYTES
            start += len(block)
    return None


def recovery_mode(path: Path, settings: RocksSettings) -> DBRecoveryMode:
    """Return the mode in which to open a store. A store that no mode can open gets one whose error says so.

    Raises:
        StoreUnusableError: acknowledged writes are missing, or opening would never return, or would crash.
    """
    reject_recycled(path)
    reject_damaged_options(path)
    strict = DBRecoveryMode.tolerate_corrupted_tail_records()
    marker = read_marker(path)
    if marker is None or not (path / "CURRENT").exists():
        return strict
    number = _recovered(path, settings, strict)
    if number is None:
        prefix = DBRecoveryMode.point_in_time()
        number = _recovered(path, settings, prefix)
        behind = _recovered(path, settings, DBRecoveryMode.skip_any_corrupted_record())
        if number is None or number != behind:
            return strict
        strict = prefix
    if number < marker:
        raise StoreUnusableError(
            f"{path} is damaged: acknowledged writes are missing, {marker - number} of them (its log or MANIFEST ends "
            f"at {number}, {marker} was synced); restore it from a backup"
        )
    return strict


def _recovered(path: Path, settings: RocksSettings, mode: DBRecoveryMode) -> int | None:
    """Return the sequence number that a mode recovers to; None if it rejects the store."""
    options = database_options(settings, None)
    options.set_wal_recovery_mode(mode)
    try:
        database = Rdict(str(path), options, access_type=AccessType.read_only(False))
    except Exception:  # noqa: BLE001 - the binding raises nothing more precise.
        return None
    try:
        return database.latest_sequence_number()
    finally:
        database.close()
