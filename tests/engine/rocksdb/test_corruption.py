"""One flipped bit in any file of a store is named, or changes nothing; what is read is what was written, or an error.

`LAZULITE_FLIPS` sets how many bits of each file are tried.
"""

import os
from pathlib import Path
from random import Random

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import LISTED, EngineError, KeyRange, StoreUnusableError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

from .damage import contents, copied, flip, log_of, make_died, some_bits

FLIPS = int(os.environ.get("LAZULITE_FLIPS", "12"))
SPACE = LISTED | 2000
READ = ("*.sst", "*.log", "MANIFEST-*", "CURRENT", "rocksdict-config.json", "lazulite.mark")
NOT_READ = ("OPTIONS-*", "IDENTITY")
"""Nothing that is served depends on these."""


@pytest.fixture(name="died", scope="module")
def _died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_died(tmp_path_factory.mktemp("died") / "store", SPACE)


def newest(store: Path, pattern: str) -> str:
    return max(store.glob(pattern)).name


async def served(store: Path) -> list[bytes]:
    """What a service reads, by scan and by key."""
    engine = RocksEngine.open(store, system_clock)
    try:
        values: list[bytes] = []
        async for part in engine.scan(SPACE, [KeyRange(("", ""), None)]):
            for index, value in enumerate(part.values):
                assert await engine.get(SPACE, *part.key(index)) == value
                values.append(value)
        return values
    finally:
        await engine.close()


@pytest.mark.parametrize("pattern", READ + NOT_READ)
async def test_a_flipped_bit_is_named_or_changes_nothing(died: Path, tmp_path: Path, pattern: str) -> None:
    whole = contents(died)
    values = [value for _, value in whole]
    name = newest(died, pattern)
    named = 0
    for count, bit in enumerate(some_bits(died / name, FLIPS)):
        store = copied(died, tmp_path / "store")
        flip(store / name, bit)
        try:
            assert contents(store) == whole
        except EngineError:
            named += 1
        if count < FLIPS // 3:
            try:
                assert await served(store) == values
            except EngineError:
                continue
    assert named > 0 or pattern in (*NOT_READ, "rocksdict-config.json", "lazulite.mark")


async def test_keys_that_are_read_alone_are_all_of_them_or_damage_is_named(tmp_path: Path) -> None:
    """The binding's iterator of keys does not tell why it ended."""
    whole, named = tmp_path / "whole", 0
    rows = [Random(number).randbytes(20).hex() for number in range(3000)]
    engine = RocksEngine.open(whole, system_clock)
    await engine.commit(SPACE, "p", changing(rows, lambda *_: dict.fromkeys(rows, b"")))
    await engine.close()
    table = newest(whole, "*.sst")
    size = (whole / table).stat().st_size
    for at in range(100, size * 9 // 10, size // 40):
        store = copied(whole, tmp_path / "store")
        flip(store / table, at * 8)
        engine = RocksEngine.open(store, system_clock)
        try:
            parts = [part async for part in engine.scan(SPACE, [KeyRange(("", ""), None)], keys_only=True)]
            assert sum(len(part.values) for part in parts) == len(rows)
        except EngineError:
            named += 1
        finally:
            await engine.close()
    assert named > 5


async def test_a_damaged_filter_hides_no_row(died: Path, tmp_path: Path) -> None:
    """Reading row after row does not see it. A service refuses to start, or finds every row by its key."""
    whole = contents(died)
    table = newest(died, "*.sst")
    size = (died / table).stat().st_size
    silent = rejected = 0
    for at in range(size - 1800, size - 1100, 10):
        store = copied(died, tmp_path / "store")
        flip(store / table, at * 8)
        try:
            assert contents(store) == whole
        except EngineError:
            continue
        silent += 1
        try:
            assert await served(store) == [value for _, value in whole]
        except EngineError:
            rejected += 1
    assert 0 < rejected < silent, "few of these bits are in the filter"


def test_damage_to_the_stores_own_facts_is_a_rejection_to_start(died: Path, tmp_path: Path) -> None:
    """They are in the last block of rows."""
    store = copied(died, tmp_path / "store")
    table = store / newest(store, "*.sst")
    flip(table, table.stat().st_size * 95 // 100 * 8)
    with pytest.raises(StoreUnusableError, match=r"block checksum mismatch.*restore it"):
        RocksEngine.open(store, system_clock)


def test_a_missing_log_is_missed(died: Path, tmp_path: Path) -> None:
    store = copied(died, tmp_path / "store")
    log_of(store).unlink()
    with pytest.raises(EngineError, match="acknowledged writes are missing"):
        RocksEngine.open(store, system_clock)


def test_a_rejection_changes_nothing(died: Path, tmp_path: Path) -> None:
    """The rest may help a repair."""
    store = copied(died, tmp_path / "store")
    log_of(store).write_bytes(log_of(store).read_bytes()[:30_000])
    before = {file.name: file.read_bytes() for file in store.iterdir()}
    with pytest.raises(EngineError, match="acknowledged writes are missing"):
        RocksEngine.open(store, system_clock)
    assert {file.name: file.read_bytes() for file in store.iterdir()} == before


@pytest.mark.parametrize("section", [b"[TableOptions", b"ableOptions", b'"default"', b"]\n", b"[Version"])
def test_options_that_would_crash_the_binding_are_rejected(died: Path, tmp_path: Path, section: bytes) -> None:
    store = copied(died, tmp_path / "store")
    options = store / newest(store, "OPTIONS-*")
    flip(options, options.read_bytes().rindex(section) * 8 + 1)
    for read in (contents, lambda path: RocksEngine.open(path, system_clock)):
        with pytest.raises(StoreUnusableError, match=r"OPTIONS-\d+ is damaged"):
            read(store)
    options.unlink()
    assert contents(store) == contents(died)


@pytest.mark.parametrize("pattern", ["*.log", "MANIFEST-*"])
def test_a_record_that_seems_recycled_is_rejected_and_keeps_nobody_waiting(
    died: Path, tmp_path: Path, pattern: str
) -> None:
    """RocksDB would read it over and over, in every recovery mode."""
    store = copied(died, tmp_path / "store")
    flip(max(store.glob(pattern)), 6 * 8 + 2)
    with pytest.raises(EngineError, match=r"an impossible type at byte 0\b"):
        RocksEngine.open(store, system_clock)
    with pytest.raises(EngineError, match=r"an impossible type at byte 0\b"):
        contents(store)
