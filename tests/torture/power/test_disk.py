"""The recorder misses nothing, and the disk forgets what was not synced."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .disk import SECTOR_BYTES, Disk, Tree, read_tree, write_tree
from .recorder import COMPILER, Kind, Record, Recorder, compiled, compiler_missing

SIGKILLED = -9

pytestmark = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")

EVERY_CALL = """
import mmap, os, shutil
make = lambda name, mode=os.O_RDWR: os.open(name, mode | os.O_CREAT, 0o600)
os.mkdir("d")
a = make("a")
os.write(a, b"1" * 1000)
os.pwrite(a, b"2" * 700, 5000)
os.writev(a, [b"3" * 10, b"", b"4" * 600])
os.pwritev(a, [b"5" * 3, b"6" * 2], 100)
os.ftruncate(a, 5100)
os.ftruncate(a, 9000)
os.posix_fallocate(a, 9000, 3000)
os.fsync(a)
b = make("b", os.O_WRONLY | os.O_APPEND)
os.write(b, b"7" * 20)
os.write(os.dup(b), b"8" * 20)
with open("d/c", "w+") as file:
    file.write("nine" * 5000)
with open("d/c", "wb") as file:
    file.write(b"again")
os.rename("b", "d/e")
os.write(b, b"after the new name")
os.link("a", "d/f")
os.unlink("a")
os.write(a, b"after the old name")
os.replace("d/f", "g")
shutil.copyfile("g", "copy")
at = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
os.close(os.open("relative", os.O_CREAT | os.O_WRONLY, dir_fd=at))
os.mkdir("below", dir_fd=at)
os.rename("below", "beside", src_dir_fd=at, dst_dir_fd=at)
os.makedirs("gone/deeper")
open("gone/deeper/file", "w").close()
shutil.rmtree("gone")
os.truncate("g", 8000)
os.fsync(at)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("recorder"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def recorder(library: Path, root: Path, tmp_path: Path) -> Iterator[Recorder]:
    made = Recorder(library, root, tmp_path)
    yield made
    made.close()


def work(recorder: Recorder, root: Path, program: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **recorder.variables}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def replayed(recorder: Recorder, root: Path, program: str, strict: bool = True) -> Disk:
    """The disk after a program, which worked on an empty directory."""
    for path in root.iterdir():
        path.unlink()
    disk = Disk(root, strict)
    done = work(recorder, root, program)
    assert done.returncode == 0, done.stderr
    disk.replay(recorder.records())
    return disk


def test_every_call_is_recorded(recorder: Recorder, root: Path) -> None:
    disk = replayed(recorder, root, EVERY_CALL)
    assert set(root.iterdir()) == {root / name for name in ("copy", "d", "g")}
    assert disk.now() == read_tree(root)


def test_every_call_can_be_the_last(library: Path, root: Path, tmp_path: Path) -> None:
    """Wherever the power is cut, records and directory agree."""
    calls = 1
    while True:
        recorder = Recorder(library, root, tmp_path)
        recorder.cut_after(calls)
        disk = Disk(root, strict=True)
        done = work(recorder, root, EVERY_CALL)
        disk.replay(recorder.records())
        recorder.close()
        assert disk.now() == read_tree(root), calls
        if done.returncode == 0:
            break
        assert done.returncode == SIGKILLED
        subprocess.run(["rm", "-r", str(root)], check=True)
        root.mkdir()
        calls += 3
    assert calls > 40


def test_unsynced_name_is_lost(recorder: Recorder, root: Path) -> None:
    disk = replayed(recorder, root, "open('a', 'w').write('x' * 5000)")
    assert disk.now() == {"a": b"x" * 5000}
    assert disk.synced() == {}


@pytest.mark.parametrize(
    ("sync_name", "strict", "found"),
    [(True, True, {"a": b"kept"}), (False, True, {}), (False, False, {"a": b"kept"})],
)
def test_a_new_name_needs_a_sync_of_its_own(
    recorder: Recorder, root: Path, sync_name: bool, strict: bool, found: Tree
) -> None:
    program = "import os; file = os.open('a', os.O_CREAT | os.O_RDWR); os.write(file, b'kept'); os.fdatasync(file)"
    if sync_name:
        program += "; os.fsync(os.open('.', os.O_RDONLY))"
    disk = replayed(recorder, root, f"{program}; os.write(file, b'lost')", strict)
    assert disk.synced() == found
    assert disk.now() == {"a": b"keptlost"}


def test_a_sync_that_did_not_end_makes_nothing_durable(library: Path, root: Path, tmp_path: Path) -> None:
    recorder = Recorder(library, root, tmp_path)
    disk = Disk(root, strict=False)
    recorder.cut_after(3)  # Creation, write, the begin of the sync; the cut comes before its end.
    done = work(recorder, root, "import os; f = os.open('a', 66); os.write(f, b'x'); os.fsync(f); print('done')")
    assert (done.returncode, done.stdout) == (SIGKILLED, "")
    disk.replay(recorder.records())
    recorder.close()
    assert disk.synced() == {}


def test_power_cut_ends_all_processes(recorder: Recorder, root: Path) -> None:
    recorder.cut_after(1)
    assert work(recorder, root, "open('a', 'w'); open('b', 'w')").returncode == SIGKILLED
    assert work(recorder, root, "print(open('a').read()); open('c', 'w')").returncode == SIGKILLED
    assert read_tree(root) == {"a": b""}


def test_unrecordable_call_ends_the_process(recorder: Recorder, root: Path) -> None:
    program = "import mmap; f = open('a', 'w+b'); f.write(b'x'); f.flush(); mmap.mmap(f.fileno(), 1)"
    done = work(recorder, root, program)
    assert done.returncode != 0
    assert "recorder: cannot record writes to mapped memory" in done.stderr


# --- what a cut leaves, without processes

INODE = 7


def written(disk: Disk, root: Path, *changes: tuple[int, bytes], synced: int = 0) -> None:
    """Replay the creation of a file and writes to it; after so many of them, a sync of all."""
    name = str(root / "file").encode()
    records = [Record(Kind.CREATE, INODE, 0, name, b"")]
    for count, (at, content) in enumerate(changes):
        if count == synced:
            records += _syncs(len(records))
        records.append(Record(Kind.WRITE, INODE, at, content, b""))
    if synced == len(changes):
        records += _syncs(len(records))
    disk.replay(records)


def _syncs(number: int) -> list[Record]:
    return [Record(Kind.SYNC, INODE, 0, b"", b""), Record(Kind.SYNCED, INODE, number, b"", b"")]


def outcomes(root: Path, *changes: tuple[int, bytes], synced: int, cuts: int = 300) -> set[bytes]:
    """The file's contents after many cuts, in the kind of disk that keeps its name."""
    found = set()
    for seed in range(cuts):
        disk = Disk(root, strict=False)
        written(disk, root, *changes, synced=synced)
        content = disk.after_cut(random.Random(seed))["file"]
        assert isinstance(content, bytes)
        found.add(content)
    return found


def test_synced_data_stays(root: Path) -> None:
    assert outcomes(root, (0, b"a" * 700), (700, b"b" * 700), synced=2) == {b"a" * 700 + b"b" * 700}
    assert all(content.startswith(b"a" * 700) for content in outcomes(root, (0, b"a" * 700), (700, b"b" * 9), synced=1))


def test_an_unsynced_write_is_kept_dropped_torn_or_zeros(root: Path) -> None:
    size = 3 * SECTOR_BYTES
    found = outcomes(root, (0, b"old"), (0, b"n" * size), synced=1)
    assert {b"old", b"n" * size} <= found
    assert any(content.count(0) > 0 and b"n" in content for content in found), "zeros where a sector did not come"
    assert any(content[:SECTOR_BYTES].strip(b"\0") == b"old" and b"n" in content for content in found), "out of order"
    assert any(0 < content.rfind(b"n") + 1 < size and (content.rfind(b"n") + 1) % SECTOR_BYTES for content in found)


def test_one_sector_of_the_disk_is_torn_at_most(root: Path) -> None:
    """Two places in two sectors: never are both of them half written."""
    new, old = b"n" * 12, b"o" * 12
    found = outcomes(root, (0, old), (512, old), (0, new), (512, new), synced=2, cuts=1000)
    halves = [[content[at : at + 12] not in (new, old) for at in (0, 512)] for content in found]
    assert any(any(half) for half in halves)
    assert not any(all(half) for half in halves)


def test_a_manifest_survives_as_a_first_part(root: Path) -> None:
    content = bytes(range(1, 200))
    records = [Record(Kind.CREATE, INODE, 0, str(root / "MANIFEST-000001").encode(), b"")]
    records += [Record(Kind.WRITE, INODE, at, content[at : at + 50], b"") for at in (0, 50, 100, 150)]
    found = set()
    for seed in range(300):
        disk = Disk(root, strict=False)
        disk.replay(records)
        kept = disk.after_cut(random.Random(seed)).get("MANIFEST-000001", b"")
        assert isinstance(kept, bytes)
        assert content.startswith(kept)
        found.add(len(kept))
    assert len(found) > 50


def test_tree_round_trip(root: Path, tmp_path: Path) -> None:
    tree: Tree = {"a": b"1", "d": {"b": b"2", "e": {}}}
    write_tree(root, tree)
    assert read_tree(root) == tree
