"""What may be made of the log of a store that was not closed: decided before anything of it is changed.

RocksDB has a mode for each habit of logs, and none for ours. A generation is written as one record, after the one
before was synced (`group_commit`). So a log may end in one record that cannot be read, and nothing acknowledged is in
it; but whatever readable follows, or whatever is missing below the mark (`durable_sequence`), was acknowledged. The
store is opened for reading, in up to three modes, and what each would recover is compared:

- `tolerate_corrupted_tail_records` takes a log that ends early, and refuses what cannot be read for another reason. But
  a record whose length is damaged looks to it as if the log ended early; hence the mark.
- `point_in_time` takes everything up to what cannot be read. `skip_any_corrupted_record` takes what follows it too. If
  they agree, nothing follows: the end is torn.

A store without a mark (new, restored, or of an older version) gets the first mode, and no more than that.
"""

from pathlib import Path

from rocksdict import AccessType, DBRecoveryMode, Rdict

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.rocksdb.durable_sequence import read_mark
from lazulite.engine.rocksdb.options import RocksSettings, database_options
from lazulite.engine.rocksdb.options_file import refuse_damaged_options
from lazulite.engine.rocksdb.wal_frames import refuse_recycled


def recovery_mode(path: Path, settings: RocksSettings) -> DBRecoveryMode:
    """Return the mode in which a store is to be opened; what cannot be opened at all is left for that to say.

    Raises:
        StoreUnusableError: acknowledged writes are missing, or opening would never end, or end the process.
    """
    refuse_recycled(path)
    refuse_damaged_options(path)
    strict = DBRecoveryMode.tolerate_corrupted_tail_records()
    mark = read_mark(path)
    if mark is None or not (path / "CURRENT").exists():
        return strict
    number = _recovered(path, settings, strict)
    if number is None:
        prefix = DBRecoveryMode.point_in_time()
        number = _recovered(path, settings, prefix)
        behind = _recovered(path, settings, DBRecoveryMode.skip_any_corrupted_record())
        if number is None or number != behind:
            return strict
        strict = prefix
    if number < mark:
        raise StoreUnusableError(
            f"{path} is damaged: acknowledged writes are missing, {mark - number} of them (its log or MANIFEST ends "
            f"at {number}, {mark} was synced); restore it from a backup"
        )
    return strict


def _recovered(path: Path, settings: RocksSettings, mode: DBRecoveryMode) -> int | None:
    """Return the sequence number that a mode would recover to; None if it would refuse."""
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
