"""The choice of RocksDB's recovery mode for the log of a store, made before the store is changed.

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
"""

from pathlib import Path

from rocksdict import AccessType, DBRecoveryMode, Rdict

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.rocksdb.durable_sequence import read_marker
from lazulite.engine.rocksdb.options import RocksSettings, database_options
from lazulite.engine.rocksdb.options_file import reject_damaged_options
from lazulite.engine.rocksdb.wal_frames import reject_recycled


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
