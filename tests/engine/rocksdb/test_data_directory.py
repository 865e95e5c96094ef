"""A checkpoint has what was acknowledged, and waits for what is on its way to the disk."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from rocksdict import Options, Rdict

from lazulite.engine.commit import changing
from lazulite.engine.contract import DataDirectoryInUseError, EngineError, EngineUnavailableError, StoreUnusableError
from lazulite.engine.key_encoding import encode_key
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.engine.rocksdb.options import MIB, RocksSettings
from lazulite.engine.rocksdb.rollback_journal import FORMAT, FORMAT_KEY, WITH_INDEXES
from lazulite.protocol.clock import system_clock


def location(path: Path | None) -> DataDirectory:
    return DataDirectory(path, RocksSettings())


def raw(path: Path) -> Rdict:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    return Rdict(str(path), options)


def make_store(path: Path) -> None:
    home = location(path)
    home.close(home.open())


def test_a_new_store_is_its_owners_only(tmp_path: Path) -> None:
    make_store(tmp_path / "a" / "b")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_new_store_says_its_format(tmp_path: Path) -> None:
    make_store(tmp_path)
    database = raw(tmp_path)
    assert database.get(FORMAT_KEY) == b"%d" % FORMAT
    database.close()


def test_a_store_opened_again_keeps_to_the_settings(tmp_path: Path) -> None:
    # Left to itself, the binding reopens a store with a cache of 8 MiB and whatever its file of options says.
    make_store(tmp_path)
    settings = RocksSettings(block_cache_bytes=24 * MIB, write_buffer_bytes=3 * MIB)
    home = DataDirectory(tmp_path, settings)
    database = home.open()
    assert database.property_int_value("rocksdb.block-cache-capacity") == settings.block_cache_bytes
    home.close(database)
    newest = max(tmp_path.glob("OPTIONS-*"))
    assert f"write_buffer_size={settings.write_buffer_bytes}" in newest.read_text()


def rejection(path: Path) -> str:
    with pytest.raises(StoreUnusableError) as caught:
        location(path).open()
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def test_a_newer_format_is_rejected(tmp_path: Path) -> None:
    make_store(tmp_path)
    database = raw(tmp_path)
    database.put(FORMAT_KEY, b"%d" % (WITH_INDEXES + 1))
    database.close()
    assert "newer" in rejection(tmp_path)
    assert "newer" in rejection(tmp_path)  # The rejection let go of the lock.


def test_an_unreadable_format_is_rejected(tmp_path: Path) -> None:
    make_store(tmp_path)
    database = raw(tmp_path)
    database.put(FORMAT_KEY, b"one")
    database.close()
    assert "damaged" in rejection(tmp_path)


def test_somebody_elses_database_is_rejected(tmp_path: Path) -> None:
    database = raw(tmp_path)
    database.put(b"their", b"row")
    database.close()
    assert "not Lazulite's" in rejection(tmp_path)


def test_other_files_are_rejected_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert "other files" in rejection(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_an_unfinished_store_is_finished(tmp_path: Path) -> None:
    for name in ("LOCK", "LOG", "LOG.old.17", "IDENTITY", "MANIFEST-000001", "000001.dbtmp"):
        (tmp_path / name).touch()
    for name in ("rocksdict-config.json", "lazulite.probe", "lazulite.mark"):
        (tmp_path / name).touch()
    make_store(tmp_path)


@pytest.mark.parametrize("below", ["", "store"])
def test_a_file_is_no_place(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    assert "cannot be used" in rejection(tmp_path / "file" / below if below else tmp_path / "file")


def test_a_missing_current_is_damage_not_a_new_store(tmp_path: Path) -> None:
    make_store(tmp_path)
    (tmp_path / "CURRENT").unlink()
    assert "damaged" in rejection(tmp_path)


@pytest.mark.parametrize("files", ["*.sst", "MANIFEST-*"])
def test_missing_or_damaged_files_are_rejected(tmp_path: Path, files: str) -> None:
    make_store(tmp_path)
    home = location(tmp_path)
    database = home.open()
    database.put(b"\0" * 9, b"x")
    home.close(database)
    for file in tmp_path.glob(files):
        if files == "*.sst":
            file.unlink()
        else:
            content = bytearray(file.read_bytes())
            content[10:20] = bytes(10)
            file.write_bytes(content)
    assert "damaged" in rejection(tmp_path) or "cannot be opened" in rejection(tmp_path)


WRITE_AND_DIE = """
import os, sys
from pathlib import Path
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.options import MIB, RocksSettings
database = DataDirectory(Path(sys.argv[1]), RocksSettings()).open()
for number in range(500):
    database.put(b"\\0" * 8 + b"%04d" % number, bytes([number % 256]) * 1000)
database.flush_wal(sync=True)
os._exit(1)
"""


@pytest.fixture(name="died", scope="module")
def _died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose process ended without closing it: 500 rows of 1,000 bytes, all in the log."""
    path = tmp_path_factory.mktemp("died") / "store"
    subprocess.run([sys.executable, "-c", WRITE_AND_DIE, path], check=False)
    return path


def log_of(path: Path) -> Path:
    return max(path.glob("*.log"), key=lambda file: file.stat().st_size)


@pytest.mark.parametrize("cut", [1, 500, 5000])
def test_a_torn_end_of_the_log_opens_with_all_before_it(died: Path, tmp_path: Path, cut: int) -> None:
    path = Path(shutil.copytree(died, tmp_path / "store"))
    os.truncate(log_of(path), log_of(path).stat().st_size - cut)
    home = location(path)
    database = home.open()
    found = [key for key in list(database.keys()) if isinstance(key, bytes) and key.startswith(b"\0" * 8)]
    assert found == [b"\0" * 8 + b"%04d" % number for number in range(len(found))]
    assert 490 <= len(found) < 500
    home.close(database)


def test_damage_within_the_log_is_rejected(died: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(died, tmp_path / "store"))
    with log_of(path).open("r+b") as log:
        log.seek(log_of(path).stat().st_size // 2)
        log.write(b"damaged")
    assert "damaged" in rejection(path)


def test_rows_recovered_from_the_log_are_in_synced_files(died: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(died, tmp_path / "store"))
    home = location(path)
    database = home.open()
    assert sum(file.stat().st_size for file in path.glob("*.sst")) > 0
    assert log_of(path).stat().st_size == 0
    home.close(database)


HOLD = """
import sys
from pathlib import Path
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.options import MIB, RocksSettings
database = DataDirectory(Path(sys.argv[1]), RocksSettings()).open()
print("open", flush=True)
sys.stdin.read()
"""


def test_another_process_keeps_a_location(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "store"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(DataDirectoryInUseError, match="in use by another process"):
            location(tmp_path / "store").open()
        holder.stdin.close()
        holder.wait()
    make_store(tmp_path / "store")


def test_another_engine_of_this_process_keeps_a_location(tmp_path: Path) -> None:
    home = location(tmp_path)
    database = home.open()
    with pytest.raises(DataDirectoryInUseError, match="in use by another process"):
        location(tmp_path).open()
    home.close(database)
    make_store(tmp_path)


def test_a_closed_location_keeps_no_file_open(tmp_path: Path) -> None:
    make_store(tmp_path)
    before = os.listdir("/proc/self/fd")
    make_store(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_memory_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = location(None)
    home.close(home.open())
    assert list(tmp_path.iterdir()) == []


def test_room_is_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    sync = os.fsync

    def fsync(file: int) -> None:
        synced.append(os.fstat(file).st_size)
        sync(file)

    make_store(tmp_path)
    monkeypatch.setattr(os, "fsync", fsync)
    assert location(tmp_path).has_room()
    assert synced == [MIB]
    assert location(None).has_room()
    assert not location(tmp_path / "missing").has_room()
    assert not (tmp_path / "lazulite.probe").exists()


@pytest.mark.parametrize(("missing", "enough"), [(0, True), (1, False)])
def test_room_is_for_a_recovery_and_the_writes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int, enough: bool
) -> None:
    settings = RocksSettings(write_buffer_bytes=8 * MIB)
    free = SimpleNamespace(free=(16 - missing) * MIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    assert DataDirectory(tmp_path, settings).has_room() is enough


def failing(monkeypatch: pytest.MonkeyPatch, method: str, error: str) -> None:
    """Make a method of the databases that are opened from now on fail."""

    class Failing:
        def __init__(self, path: str, options: Options, columns: dict[str, Options] | None = None) -> None:
            self._real = Rdict(path, options, columns)

        def __getattr__(self, name: str) -> object:
            return self._fail if name == method else getattr(self._real, name)

        def _fail(self, *_: object) -> None:
            raise Exception(error)

    monkeypatch.setattr("lazulite.engine.rocksdb.data_directory.Rdict", Failing)


@pytest.mark.parametrize(
    ("method", "error", "reported"),
    [
        ("put", "IO error: While fdatasync: Input/output error", r"cannot be opened: .*Input/output error$"),
        ("get", "Corruption: block checksum mismatch", r"cannot be opened: .*restore it from a backup$"),
    ],
)
def test_a_store_that_is_rejected_after_its_opening_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, error: str, reported: str
) -> None:
    """The rejection is held on to: were its frames gone, they would have let go of the store as well."""
    home = location(tmp_path / "store")
    with monkeypatch.context() as patched:
        failing(patched, method, error)
        with pytest.raises(StoreUnusableError, match=reported) as rejected:
            home.open()
    home.close(home.open())
    assert rejected.value


def test_a_store_whose_mark_cannot_be_set_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    make_store(tmp_path)
    home = location(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("lazulite.engine.rocksdb.data_directory.DurableSequenceMarker", fail)
        with pytest.raises(StoreUnusableError, match="cannot be used: No space left") as rejected:
            home.open()
    home.close(home.open())
    assert rejected.value


async def put(engine: RocksEngine, row: str) -> None:
    await engine.commit(5, "p", changing([row], lambda current, timestamp: {row: row.encode()}))


def rows_of(store: Path) -> dict[bytes, bytes]:
    with inspect(store) as inspection:
        assert inspection.newest_timestamp() > 0
        return dict(inspection.rows())


async def test_a_checkpoint_is_made_between_two_commit_groups(tmp_path: Path) -> None:
    entered, let_go = threading.Event(), threading.Event()
    failpoints: dict[str, Callable[[], None]] = {"after_sync": lambda: None}
    engine = RocksEngine.open(tmp_path / "store", system_clock, failpoints=failpoints)
    await put(engine, "acknowledged")

    def hold() -> None:
        entered.set()
        assert let_go.wait(30)

    failpoints["before_sync"] = hold
    flushing = asyncio.create_task(put(engine, "flushing"))
    assert await asyncio.to_thread(entered.wait, 30)
    checkpoint = asyncio.create_task(engine.checkpoint(tmp_path / "checkpoint"))
    for _ in range(20):
        await asyncio.sleep(0)
    open_group = asyncio.create_task(put(engine, "open"))
    await asyncio.sleep(0)
    assert not (await asyncio.to_thread((tmp_path / "checkpoint").exists)), "it would have what is not durable"
    let_go.set()
    await asyncio.gather(flushing, checkpoint, open_group)
    await engine.close()
    names = ("acknowledged", "flushing")
    assert rows_of(tmp_path / "checkpoint") == {encode_key(5, "p", name): name.encode() for name in names}
    assert len(rows_of(tmp_path / "store")) == 3


async def test_a_store_that_failed_or_closed_gives_none(tmp_path: Path) -> None:
    def fail() -> None:
        raise Exception("IO error: made up")

    failpoints: dict[str, Callable[[], None]] = {"after_sync": lambda: None}
    engine = RocksEngine.open(tmp_path / "store", system_clock, failpoints=failpoints)
    failpoints["before_sync"] = fail
    with pytest.raises(EngineError):
        await put(engine, "row")
    with pytest.raises(EngineUnavailableError):
        await engine.checkpoint(tmp_path / "checkpoint")
    failpoints.clear()
    await engine.close()
    with pytest.raises(EngineUnavailableError):
        await engine.checkpoint(tmp_path / "checkpoint")
