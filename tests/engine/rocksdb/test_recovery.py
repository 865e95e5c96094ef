"""The end of a log that was torn by a power cut opens with all before it; damage to what was acknowledged does not.

RocksDB's file of options is looked at before the binding does; the binding itself, in test_corruption.py.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from lazulite.engine.contract import EngineError, StoreUnusableError
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.rocksdb.recovery import NAME, DurableSequenceMarker, read_marker, reject_damaged_options

from .damage import contents, copied, cut, flip, log_of, make_died

GOOD = """
[Version]
  rocksdb_version=10.4.2

[DBOptions]
  wal_dir=/data/[1]/store

  [CFOptions "default"]
  ttl=2592000

[TableOptions/BlockBasedTable "default"]
  block_size=4096
"""

Harm = Callable[[bytearray], None]

UNACKNOWLEDGED_BYTES = 440
"""Less than the last group's record in the log."""


def test_there_need_be_none(tmp_path: Path) -> None:
    reject_damaged_options(tmp_path)
    reject_damaged_options(tmp_path / "missing")


@pytest.mark.parametrize(
    ("old", "new", "good"),
    [
        ("", "", True),
        ("ttl=", "tt|=", True),
        ("[Version]", "[Wersion]", False),
        ("[DBOptions]\n", "", False),
        ('CFOptions "default"', 'CFOptions "defau|t"', False),
        ('ble "default"]\n', 'ble "default"|\n', False),
        ("[TableOptions", "[TableOptionz", False),
    ],
)
def test_the_names_of_sections_must_be_whole(tmp_path: Path, old: str, new: str, good: bool) -> None:
    (tmp_path / "OPTIONS-000007").write_text(GOOD.replace(old, new))
    if good:
        reject_damaged_options(tmp_path)
        return
    with pytest.raises(StoreUnusableError, match=r"OPTIONS-000007 is damaged; .*remove that file"):
        reject_damaged_options(tmp_path)


def test_the_newest_one_counts(tmp_path: Path) -> None:
    (tmp_path / "OPTIONS-999999").write_text("damaged")
    (tmp_path / "OPTIONS-1000001.dbtmp").write_text("no file of options")
    (tmp_path / "OPTIONS-1000000").write_text(GOOD)
    reject_damaged_options(tmp_path)
    (tmp_path / "OPTIONS-1000000").unlink()
    with pytest.raises(StoreUnusableError, match="OPTIONS-999999 is damaged"):
        reject_damaged_options(tmp_path)


def test_one_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "OPTIONS-000007").mkdir()
    with pytest.raises(StoreUnusableError, match="cannot be read: Is a directory"):
        reject_damaged_options(tmp_path)


@pytest.fixture(name="died", scope="module")
def _died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_died(tmp_path_factory.mktemp("died") / "store")


def zeros(log: bytearray) -> None:
    log[-300:] = bytes(300)


def more_zeros(log: bytearray) -> None:
    log[-UNACKNOWLEDGED_BYTES:] = bytes(UNACKNOWLEDGED_BYTES + 100_000)


def garbage(log: bytearray) -> None:
    log[-300:] = random.Random(1).randbytes(300)


def more_garbage(log: bytearray) -> None:
    log[-UNACKNOWLEDGED_BYTES:] = random.Random(2).randbytes(70_000)


def short(log: bytearray) -> None:
    del log[-100:]


TEARS: list[Harm] = [zeros, more_zeros, garbage, more_garbage, short]


def harmed(died: Path, target: Path, harm: Harm) -> Path:
    store = copied(died, target)
    log = bytearray(log_of(store).read_bytes())
    harm(log)
    log_of(store).write_bytes(log)
    return store


def set_mark(store: Path, number: int) -> None:
    (store / NAME).unlink()
    DurableSequenceMarker(store, number).close()


def reopened(store: Path) -> list[tuple[bytes, bytes]]:
    home = DataDirectory(store, RocksSettings())
    home.close(home.open())
    return contents(store)


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_end_that_nobody_was_reported_of_opens_with_all_before_it(
    died: Path, tmp_path: Path, tear: Harm
) -> None:
    whole = contents(died)
    store = harmed(died, tmp_path / "store", tear)
    mark = read_marker(store)
    assert mark is not None
    set_mark(store, mark - 2)  # A group here is a row and the timestamp: the last one was not synced.
    assert contents(store) == whole[:-1]
    assert reopened(store) == whole[:-1]


@pytest.mark.parametrize("tear", TEARS)
def test_the_same_end_of_an_acknowledged_write_is_rejected(died: Path, tmp_path: Path, tear: Harm) -> None:
    store = harmed(died, tmp_path / "store", tear)
    for read in (contents, reopened):
        with pytest.raises(EngineError, match="acknowledged writes are missing, 2 of them"):
            read(store)


def test_an_old_mark_does_not_excuse_damage_that_readable_writes_follow(died: Path, tmp_path: Path) -> None:
    """After a power cut the mark may be of a while ago."""

    def hole(log: bytearray) -> None:
        log[10_000:10_100] = bytes(100)

    store = harmed(died, tmp_path / "store", hole)
    set_mark(store, 1)
    for read in (contents, reopened):
        with pytest.raises(EngineError, match="damaged"):
            read(store)


def test_without_a_mark_only_a_short_log_opens(died: Path, tmp_path: Path) -> None:
    whole = contents(died)
    store = harmed(died, tmp_path / "store", zeros)
    (store / NAME).unlink()
    with pytest.raises(EngineError, match="damaged"):
        reopened(store)
    store = copied(died, tmp_path / "store")
    (store / NAME).unlink()
    cut(log_of(store), 100)
    assert reopened(store) == whole[:-1]


def test_the_mark_is_the_greater_slot_that_is_whole(tmp_path: Path) -> None:
    assert read_marker(tmp_path) is None
    mark = DurableSequenceMarker(tmp_path, 5)
    mark.advance(6)
    mark.advance(7)
    mark.close()
    assert read_marker(tmp_path) == 7
    flip(tmp_path / NAME, 512 * 8)
    assert read_marker(tmp_path) == 6
    flip(tmp_path / NAME, 0)
    with pytest.raises(EngineError, match="damaged"):
        read_marker(tmp_path)


def test_a_mark_is_its_owners_only_and_stays_where_it_was_if_it_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    mark = DurableSequenceMarker(tmp_path, 5)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", fail)
        mark.advance(6)
    assert read_marker(tmp_path) == 5
    mark.advance(7)
    mark.close()
    assert read_marker(tmp_path) == 7


def test_a_mark_that_cannot_be_set_lets_go_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        DurableSequenceMarker(tmp_path, 5)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_mark_that_was_never_written_says_nothing(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    assert read_marker(tmp_path) is None
    (tmp_path / NAME).unlink()
    os.mkdir(tmp_path / NAME)
    with pytest.raises(EngineError, match="cannot be read"):
        read_marker(tmp_path)


@pytest.mark.parametrize("torn", [0, 512])
def test_a_torn_slot_is_made_good_before_the_other_is_touched(
    tmp_path: Path, torn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cut of power tears one slot, the next one the other: there is always a whole one."""
    DurableSequenceMarker(tmp_path, 5).close()
    with (tmp_path / NAME).open("r+b") as file:
        file.seek(torn)
        file.write(b"torn")
    calls: list[int | str] = []
    pwrite, fsync = os.pwrite, os.fsync

    def note_write(file: int, content: bytes, at: int) -> int:
        calls.append(at)
        return pwrite(file, content, at)

    def note_sync(file: int) -> None:
        calls.append("sync")
        fsync(file)

    monkeypatch.setattr(os, "pwrite", note_write)
    monkeypatch.setattr(os, "fsync", note_sync)
    DurableSequenceMarker(tmp_path, 6).close()
    assert calls == [torn, "sync", 512 - torn, "sync"]
    assert read_marker(tmp_path) == 6


@pytest.mark.parametrize(
    "written", [b"", bytes(12), b"\x00" * 7 + b"\x05\x12", bytes(600), bytes(7) + b"\x05" + bytes(600)]
)
def test_a_mark_that_was_never_wholly_written_is_none(tmp_path: Path, written: bytes) -> None:
    (tmp_path / NAME).write_bytes(written)
    assert read_marker(tmp_path) is None
