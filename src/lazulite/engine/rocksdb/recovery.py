"""The checks of a store's files before RocksDB reads them, and the choice of its recovery mode for the log.

None of RocksDB's modes fits. A commit group is written as one record, or as several (`rollback_journal`). Each record
is written after the one before was synced (`group_commit`).
So the last record of a log may be unreadable: none of it was acknowledged. But a readable record after it, or a missing
one below the durable-sequence marker (`durable_sequence`), was acknowledged. The store is opened read-only, in up to
three modes, and the sequence numbers that they recover to are compared:

- `tolerate_corrupted_tail_records` accepts a log that ends early, and rejects other damage. But a record with a damaged
  length looks like an early end; hence the marker.
- `point_in_time` recovers everything before the damage, `skip_any_corrupted_record` also everything after it. If they
  agree, nothing follows the damage: the tail is torn.

A store without a marker (new, restored, or of an older version) gets the first mode.

The binding reads the newest options file when it opens a store, though it is given every option anew. If the name of a
section is damaged, the process ends with a segmentation fault. The store needs none of these files.

A log or a MANIFEST is blocks of 32 KiB. A record, or a piece of one, has a header of seven bytes: a checksum (4), the
length (2) and the type (1), both little endian; none crosses a block's end. Lazulite's stores have types 1 to 4. Types
5 to 8 belong to recycled logs, which Lazulite does not use: RocksDB reads such a record for ever and never opens. A
flipped bit turns a 1 into a 5.

The check of frames visits at least the records that RocksDB visits: it uses the same lengths, and goes on with the next
block after a record that cannot be read.
"""

import re
import struct
from pathlib import Path

from rocksdict import AccessType, DBRecoveryMode, Rdict

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.rocksdb.durable_sequence import read_marker
from lazulite.engine.rocksdb.options import RocksSettings, database_options

_NAME = re.compile(r"OPTIONS-(\d+)")
_SECTIONS = [b"[Version]", b"[DBOptions]", b'[CFOptions "default"]', b'[TableOptions/BlockBasedTable "default"]']

_BLOCK_BYTES = 32 << 10
_HEADER = struct.Struct("<IHB")
_RECYCLED = range(5, 9)


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
