"""RocksDB's options: the engine's tunables, and the settings that the engine's guarantees require."""

from dataclasses import dataclass, replace
from pathlib import Path

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    ChecksumType,
    CompactOptions,
    DBCompressionType,
    DBRecoveryMode,
    Env,
    Options,
    WriteOptions,
)

try:
    import resource
except ImportError:  # Windows has no limit of open files that could be asked for.
    resource = None  # type: ignore[assignment]  # mypy knows the module of this platform only

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class RocksSettings:
    """Tunables, with their units last in the name."""

    block_cache_bytes: int = 128 * MIB
    replica_cache_bytes: int = 32 * MIB
    """The block cache of a worker's replica. The kernel's cache of the files is behind it."""
    block_bytes: int = 16 << 10
    """The unit of a read from a file. With half of it, a range of 100 entities of 1 KB takes 1.3 times the processor
    time, and a single row 0.95 times."""
    write_buffer_bytes: int = 32 * MIB
    write_buffers_max: int = 3
    open_files_max: int = 4096
    """A file (up to 64 MiB) that is not kept open is opened, and read in part, for each row looked up in it."""
    write_bytes_max: int = 2 * MIB
    """A larger commit group is written as several batches, see `rollback_journal`."""
    read_bytes_max: int = 2 * MIB
    """A commit that reads more does so in several steps, see `group_commit`."""
    slice_rows_max: int = 256
    slice_keys_max: int = 1024
    """A list reads up to so many keys in vain before it jumps over the rest of a long prefix."""
    slice_bytes_max: int = MIB
    slice_seconds_max: float = 0.001
    stall_seconds_max: float = 5.0
    """Bound on the retries of a write while RocksDB stalls."""
    stall_retry_seconds: float = 0.01
    recovery_retry_seconds: float = 1.0
    """Time between a failed write and an attempt to open the store again, and between attempts; of a replica, too."""
    replica_follow_seconds: float = 0.05
    """How often an idle replica follows the change log, which goes round within 0.3 s at the fastest."""


_OPEN_FILES_MIN = 256


def open_files(settings: RocksSettings) -> int:
    """Return how many files a store may keep open: a quarter of the process's limit, as connections need some too."""
    if resource is None:
        return _OPEN_FILES_MIN
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return settings.open_files_max
    return min(settings.open_files_max, max(_OPEN_FILES_MIN, allowed // 4))


def database_options(settings: RocksSettings, env: Env | None) -> Options:
    """Return the options to open a store with; `env` stands in for the disk."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    if env is not None:
        options.set_env(env)
    _protect(options)
    options.set_write_buffer_size(settings.write_buffer_bytes)
    options.set_max_write_buffer_number(settings.write_buffers_max)
    # Most inserts look for a row that is not there: a filter spares them the search.
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(0.05)
    options.set_max_open_files(open_files(settings))
    options.set_max_background_jobs(2)
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_compression_type(DBCompressionType.lz4())
    # Scans step over deleted rows one by one: a file that is half deletions is compacted without being asked.
    options.add_compact_on_deletion_collector_factory(16384, 8192, 0.5)
    # No periodic statistics, and small logs and preallocations.
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_keep_log_file_num(4)
    options.set_max_log_file_size(4 * MIB)
    options.set_manifest_preallocation_size(64 << 10)
    options.set_block_based_table_factory(_tables(settings))
    return options


def replica_options(settings: RocksSettings, logs: Path) -> Options:
    """Return the options of a replica, which looks for RocksDB's logs in `logs`."""
    options = database_options(replace(settings, block_cache_bytes=settings.replica_cache_bytes), None)
    options.set_wal_dir(str(logs))
    options.set_keep_log_file_num(1)
    options.set_max_log_file_size(64 << 10)  # A line for each flush of the primary.
    return options


def _protect(options: Options) -> None:
    """Detect damage and reject it. `recovery` chooses the log's recovery mode store by store.

    RocksDB flushes what it recovered from the log into synced files before it has opened (its default,
    `avoid_flush_during_recovery = false`), so a store just opened holds nothing that is not durable.
    """
    options.set_paranoid_checks(True)
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())


def _tables(settings: RocksSettings) -> BlockBasedOptions:
    tables = BlockBasedOptions()
    tables.set_block_size(settings.block_bytes)
    tables.set_checksum_type(ChecksumType.xxh3())
    tables.set_bloom_filter(10, block_based=False)  # Over whole keys, for point reads.
    # Indexes and filters live in the cache, so that its size bounds them too; in pieces, because a file's whole index
    # is a good part of a megabyte and a few of them would push one another out (measured: 80 times slower reads).
    # The LRU cache is split into shards that suffer the same, hence the other one.
    tables.set_block_cache(Cache.new_hyper_clock_cache(settings.block_cache_bytes, 0))
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    tables.set_index_type(BlockBasedIndexType.two_level_index_search())
    tables.set_partition_filters(True)
    tables.set_metadata_block_size(16 << 10)
    # Keys of an index that share their beginnings are stored without it, but for one in so many: rows of a partition
    # have long ones. An index is a sixth of what it was, and a row that is not in the cache takes 0.9 of the time.
    tables.set_index_block_restart_interval(16)
    tables.set_pin_top_level_index_and_filter(True)
    tables.set_format_version(6)  # Checksums of footers too, and of each block at its own place.
    return tables


def synced_write_options(to_disk: bool) -> WriteOptions:
    """Return the options of a write that waits, and returns when it is durable; `to_disk`: if there is a disk."""
    options = WriteOptions()
    options.sync = to_disk
    return options


def write_options() -> WriteOptions:
    """Return the options of a commit group's write: a flush syncs the log later, and a stall rejects, never blocks."""
    options = WriteOptions()
    options.sync = False
    options.no_slowdown = True
    return options


def compact_options() -> CompactOptions:
    """Return the options of a compaction after a drop; RocksDB's own compactions may run beside it."""
    options = CompactOptions()
    options.set_exclusive_manual_compaction(False)
    return options
