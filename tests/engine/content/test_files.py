"""Contents as files: durability, generations, damage, the search after a crash, and one sync for all that wait."""

import asyncio
import errno
import os
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

import pytest

from lazulite.engine.content import content_file, generations, linked_file, space_files
from lazulite.engine.content.content_file import SealedFile
from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    Claim,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    ContentWriter,
    Owner,
)
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.content.inspection import read_whole
from lazulite.engine.content.space_files import GroupedSync
from lazulite.engine.contract import EngineUnavailableError

from .test_contract import OWNER, get, put, sample

Cache = Callable[[pytest.MonkeyPatch], None]


class Rows:
    """The rows of a service: the contents to which they refer, of a single owner or by their owners."""

    def __init__(self, *contents: ContentId, **owned: ContentId) -> None:
        self.contents = set(contents)
        self.owned = owned
        self.asked: list[Owner] = []

    async def references(self, owner: Owner) -> Collection[ContentId]:
        self.asked.append(owner)
        return self.contents | {content for name, content in self.owned.items() if name == owner.partition}


def reject_links(source: Path, target: Path) -> None:
    raise OSError(errno.EMLINK, "Too many links")


def reject_with(code: int) -> Callable[..., int]:
    def reject(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return reject


@pytest.fixture(name="store")
async def _store(path: Path) -> AsyncIterator[ContentFiles]:
    store = ContentFiles(path)
    yield store
    await store.close()


def files_in(path: Path) -> list[str]:
    files = (file for file in path.rglob("*") if file.is_file() and file.suffix != ".process")
    return sorted(str(file.relative_to(path)) for file in files)


def modes_in(path: Path) -> list[str]:
    return [oct(entry.stat().st_mode & 0o777) for entry in sorted(path.rglob("*"))]


def kill(store: ContentFiles) -> None:
    """Do what the end of its process does to a store: the kernel unlocks its slot."""
    for lock in store._slots._locks.values():
        os.close(lock)
    store._slots._locks.clear()


async def test_data_and_names_are_durable_before_the_content_has_a_name(
    store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def note(file: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{file}"), path.parent))

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(content_file, "sync_data", note)
    await put(store, b"abc")
    assert synced[-2:] == ["content/5/0.open/000", "content/5/0.open"]
    assert {".", "content", "content/5"} <= set(synced)


async def test_a_long_content_is_synced_on_the_way(store: ContentFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_file, "UNSYNCED_BYTES_MAX", WINDOW_BYTES)
    syncs: list[int] = []
    monkeypatch.setattr(content_file, "sync_data", syncs.append)
    await put(store, sample(4 * WINDOW_BYTES), chunk=WINDOW_BYTES)
    assert len(syncs) == 5


async def test_files_are_for_their_owner_only(store: ContentFiles, path: Path) -> None:
    await put(store, b"abc")
    assert modes_in(path) == ["0o600", "0o700", "0o700", "0o600"]


def never_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "preadv", reject_with(errno.EAGAIN))


def not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "preadv", reject_with(errno.EOPNOTSUPP))
    monkeypatch.setattr(content_file, "_fadvise", reject_with(errno.EINVAL))


def partly_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_less(file: int, buffers: Sequence[bytearray], at: int, flags: int) -> int:
        assert flags == os.RWF_NOWAIT
        buffers[0][:5] = os.pread(file, 5, at)
        return 5

    monkeypatch.setattr(os, "preadv", read_less)


def not_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_file, "_nowait", None)
    monkeypatch.setattr(content_file, "_fadvise", None)


def cached(_: pytest.MonkeyPatch) -> None:
    """Leave the kernel as it is: it has just got the bytes."""


caches = pytest.mark.parametrize("cache", [cached, never_cached, partly_cached, not_supported, not_linux])


@caches
async def test_bytes_are_read_whatever_the_kernel_has_in_memory(
    store: ContentFiles, monkeypatch: pytest.MonkeyPatch, cache: Cache
) -> None:
    data = sample(2 * WINDOW_BYTES + 11)
    content = await put(store, data)
    cache(monkeypatch)
    for start, stop in (
        (0, len(data)),
        (3, WINDOW_BYTES + 1),
        (WINDOW_BYTES, 2 * WINDOW_BYTES),
        (len(data) - 1, len(data)),
    ):
        assert await get(store, content, start, stop) == data[start:stop]


async def test_only_what_would_block_is_read_by_a_thread(store: ContentFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    content = await put(store, sample(3 * WINDOW_BYTES))
    read = SealedFile.read
    waited: list[int] = []

    def read_slowly(file: SealedFile, number: int) -> bytes:
        assert threading.current_thread() is not threading.main_thread()
        waited.append(number)
        return read(file, number)

    def read_cached(file: SealedFile, number: int) -> bytearray | None:
        return bytearray(read(file, number)) if number != 1 else None

    monkeypatch.setattr(SealedFile, "read", read_slowly)
    monkeypatch.setattr(SealedFile, "read_cached", read_cached)
    await get(store, content, 0, 3 * WINDOW_BYTES)
    assert waited == [1]


@caches
async def test_no_window_is_read_before_the_caller_asks_for_it(
    store: ContentFiles, monkeypatch: pytest.MonkeyPatch, cache: Cache
) -> None:
    content = await put(store, sample(3 * WINDOW_BYTES))
    cache(monkeypatch)
    check = SealedFile._check
    checked: list[int] = []

    def note(file: SealedFile, number: int, data: bytes | bytearray) -> None:
        checked.append(number)
        check(file, number, data)

    monkeypatch.setattr(SealedFile, "_check", note)
    async with aclosing(store.read(content, 0, 3 * WINDOW_BYTES)) as windows:
        for _ in range(2):
            await anext(windows)
        await asyncio.to_thread(store._worker.close)
    assert checked == [0, 1]


@caches
@pytest.mark.parametrize("at", [0, WINDOW_BYTES - 1, WINDOW_BYTES, 2 * WINDOW_BYTES + 10, -1, -30])
async def test_each_damaged_byte_is_noticed(
    store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch, at: int, cache: Cache
) -> None:
    cache(monkeypatch)
    data = sample(2 * WINDOW_BYTES + 11)
    content = await put(store, data)
    file = path / "5/0.open/000"
    whole = bytearray(file.read_bytes())
    whole[at] ^= 1
    file.write_bytes(whole)
    with pytest.raises(ContentDamagedError):
        await get(store, content, 0, len(data))


async def test_a_range_reads_its_own_windows_only(store: ContentFiles, path: Path) -> None:
    data = sample(3 * WINDOW_BYTES)
    content = await put(store, data)
    file = path / "5/0.open/000"
    file.write_bytes(bytes([data[0] ^ 1]) + file.read_bytes()[1:])
    assert await get(store, content, WINDOW_BYTES, len(data)) == data[WINDOW_BYTES:]


async def test_what_a_crash_left_undecided_goes_unless_a_row_refers_to_it(path: Path) -> None:
    crashed = ContentFiles(path)
    unwanted = await put(crashed, b"a", Owner(5, "one"))
    wanted = await put(crashed, b"b", Owner(5, "two"))
    kept = await put(crashed, b"c", Owner(5, "three"))
    crashed.keep(kept)
    unsealed = await crashed.create(Owner(5, "four"))
    await unsealed.write(sample(2 * WINDOW_BYTES))

    kill(crashed)
    store, rows = ContentFiles(path), Rows(two=wanted, three=kept)
    fresh = await put(store, b"new")
    assert await store.sweep(rows.references) == 2
    assert [owner.partition for owner in sorted(rows.asked)] == ["one", "three", "two"]
    assert [await get(store, content, 0, 1) for content in (wanted, kept, fresh)] == [b"b", b"c", b"n"]
    with pytest.raises(ContentMissingError):
        await get(store, unwanted, 0, 1)
    assert await store.sweep(rows.references) == 0
    assert files_in(path) == ["5/0/001", "5/0/002", "5/1.open/000"]
    await store.close()
    await unsealed.discard()
    await crashed.close()


async def test_a_process_that_ended_in_order_leaves_nothing_to_search(path: Path) -> None:
    store = ContentFiles(path)
    store.keep(await put(store, b"a"))
    await store.close()
    store, rows = ContentFiles(path), Rows()
    assert await store.sweep(rows.references) == 0
    assert rows.asked == []
    await store.close()


async def test_a_content_whose_fate_is_open_is_searched_after_an_orderly_end(path: Path) -> None:
    store = ContentFiles(path)
    content = await put(store, b"a")
    await store.close()
    store, rows = ContentFiles(path), Rows(content)
    assert await store.sweep(rows.references) == 0
    assert rows.asked == [OWNER]
    await store.close()


async def test_a_damaged_content_is_not_swept(path: Path) -> None:
    crashed = ContentFiles(path)
    await put(crashed, b"abc")
    file = path / "5/0.open/000"
    file.write_bytes(file.read_bytes().replace(OWNER.partition.encode(), b"?" * 6))
    kill(crashed)
    store = ContentFiles(path)
    assert await store.sweep(Rows().references) == 0
    assert files_in(path) == ["5/0/000"]
    await store.close()
    await crashed.close()


async def test_a_full_generation_is_settled_when_all_is_decided(
    store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (generations, space_files):
        monkeypatch.setattr(module, "FILES_MAX", 3)
    contents = [await put(store, bytes([index])) for index in range(4)]
    for content in contents[:2]:
        store.keep(content)
    await store.delete(contents[2:3])
    await store.close()
    assert files_in(path) == ["5/0/000", "5/0/001", "5/1024.open/000"]


async def test_a_full_generation_stays_open_while_a_fate_is_open(
    store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (generations, space_files):
        monkeypatch.setattr(module, "FILES_MAX", 2)
    contents = [await put(store, b"a") for _ in range(2)]
    store.keep(contents[0])
    await store.close()
    assert files_in(path) == ["5/0.open/000", "5/0.open/001"]


async def test_numbers_are_not_used_again_by_the_next_process(path: Path) -> None:
    names = set()
    for _ in range(3):
        store = ContentFiles(path)
        content = await put(store, b"a")
        assert content not in names
        names.add(content)
        await store.delete([content])
        await store.close()
    assert modes_in(path) == ["0o700", "0o700"]


async def test_a_drop_that_a_crash_interrupted_is_finished(path: Path) -> None:
    store = ContentFiles(path)
    await put(store, b"a")
    await store.close()
    (path / "5").rename(path / "5.dropped")
    store = ContentFiles(path)
    assert await store.sweep(Rows().references) == 0
    await store.close()
    assert modes_in(path) == []


async def fill(writer: ContentWriter) -> None:
    await writer.write(sample(WINDOW_BYTES))
    await writer.seal()


async def test_a_full_disk_rejects_the_content_and_leaves_nothing(
    store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(file: object, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = await store.create(OWNER)
    await writer.write(sample(WINDOW_BYTES))
    monkeypatch.setattr(content_file, "write_all", reject)
    with pytest.raises(EngineUnavailableError, match="No space left"):
        await fill(writer)
    await writer.discard()
    assert files_in(path) == []


async def test_a_failed_sync_of_the_name_is_no_success(store: ContentFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = await store.create(OWNER)

    def reject(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", reject)
    with pytest.raises(EngineUnavailableError, match="Input/output"):
        await writer.seal()
    await writer.discard()


async def test_a_copy_shares_its_bytes_on_the_disk(store: ContentFiles, path: Path) -> None:
    content = await put(store, b"abc")
    await store.copy(content, Owner(6, "a"))
    assert (path / "5/0.open/000").samefile(path / "6/0.open/000")


async def test_a_file_that_cannot_have_another_name_is_copied(
    store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sample(2 * WINDOW_BYTES + 3)
    first = await put(store, data)
    monkeypatch.setattr(os, "link", reject_links)
    second = await store.copy(first, Owner(6, "a"))
    await store.delete([first])
    assert await get(store, second, 0, len(data)) == data
    assert files_in(path) == ["6/0.open/000"]


async def test_a_copy_is_durable_before_it_has_a_name(
    store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = await put(store, b"abc")
    synced: list[str] = []

    def note(file: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{file}"), path))

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(linked_file, "sync_data", note)
    await store.copy(content, OWNER)
    assert synced == ["5/0.open/001.owner", "5/0.open"]


@pytest.mark.parametrize("linked", [True, False])
async def test_a_copy_that_a_crash_left_is_its_new_owners(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, linked: bool
) -> None:
    crashed = ContentFiles(path)
    content = await put(crashed, b"a", Owner(5, "old"))
    crashed.keep(content)
    if not linked:
        monkeypatch.setattr(os, "link", reject_links)
    wanted, unwanted = [await crashed.copy(content, Owner(6, name)) for name in ("wanted", "unwanted")]
    kill(crashed)
    store, rows = ContentFiles(path), Rows(old=content, wanted=wanted)
    assert await store.sweep(rows.references) == 1
    assert sorted(owner.partition for owner in rows.asked) == ["old", "unwanted", "wanted"]
    assert await get(store, wanted, 0, 1) == b"a"
    with pytest.raises(ContentMissingError):
        await get(store, unwanted, 0, 1)
    assert len(files_in(path)) == 2 + linked
    for each in (store, crashed):
        await each.close()


async def test_a_copy_whose_owner_is_damaged_is_not_swept(path: Path) -> None:
    crashed = ContentFiles(path)
    copy = await crashed.copy(await put(crashed, b"a"), OWNER)
    (path / "5/0.open/001.owner").write_bytes(b"other")
    kill(crashed)
    store = ContentFiles(path)
    assert await store.sweep(Rows().references) == 1
    assert await get(store, copy, 0, 1) == b"a"
    for each in (store, crashed):
        await each.close()


async def test_a_failed_copy_leaves_nothing(store: ContentFiles, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    content = await put(store, b"a")
    monkeypatch.setattr(os, "link", reject)
    with pytest.raises(EngineUnavailableError, match="No space left"):
        await store.copy(content, OWNER)
    monkeypatch.undo()
    await store.delete([content])
    with pytest.raises(ContentMissingError):
        await store.copy(content, OWNER)
    assert files_in(path) == []


def exchange(one: Path, other: Path) -> None:
    """Let two files lie under each other's name, as a repair of the file system may leave them."""
    spare = one.with_name("spare")
    one.rename(spare)
    other.rename(one)
    spare.rename(other)


@pytest.mark.parametrize("lengths", [(100, 100), (100, 60), (WINDOW_BYTES, WINDOW_BYTES)])
async def test_exchanged_files_are_not_read_as_each_other(
    store: ContentFiles, path: Path, lengths: tuple[int, int]
) -> None:
    owners = Owner(5, "mine"), Owner(5, "yours")
    contents = [await put(store, bytes(length), owner) for length, owner in zip(lengths, owners, strict=True)]
    claims = [Claim(owner.partition, length) for length, owner in zip(lengths, owners, strict=True)]
    for content, claim in zip(contents, claims, strict=True):
        assert await store.length(content, claim) == read_whole(path, content, claim) == claim.length
    exchange(*(path / name for name in files_in(path)))
    for content, claim in zip(contents, claims, strict=True):
        for call in (store.length(content, claim), store.copy(content, OWNER, claim), first(store, content, claim)):
            with pytest.raises(ContentDamagedError):
                await call
        with pytest.raises(ContentDamagedError):
            read_whole(path, content, claim)


async def test_the_length_tells_contents_of_one_owner_apart(store: ContentFiles, path: Path) -> None:
    old, new = await put(store, b"a" * 10), await put(store, b"b" * 20)
    exchange(*(path / name for name in files_in(path)))
    for content, length in ((old, 10), (new, 20)):
        with pytest.raises(ContentDamagedError, match=f"its row says {length}"):
            await first(store, content, Claim(OWNER.partition, length))
        assert await first(store, content, Claim(OWNER.partition)) in b"ab", "pages do not tell the length"


async def test_the_sweep_keeps_exchanged_files(path: Path) -> None:
    crashed = ContentFiles(path)
    rows = Rows(**{name: await put(crashed, name.encode(), Owner(5, name)) for name in ("mine", "yours")})
    await put(crashed, b"garbage", Owner(5, "none"))
    kill(crashed)
    names = files_in(path)
    exchange(path / names[0], path / names[1])
    store = ContentFiles(path)
    assert await store.sweep(rows.references) == 0
    assert files_in(path) == names
    await store.close()
    exchange(path / names[0], path / names[1])
    repaired = ContentFiles(path)
    assert await repaired.sweep(rows.references) == 1
    assert [await get(repaired, content, 0, 4) for content in rows.owned.values()] == [b"mine", b"your"]
    for each in (repaired, crashed):
        await each.close()


async def test_exchanged_copies_are_not_read_as_each_other(store: ContentFiles, path: Path) -> None:
    sources = [await put(store, data, Owner(5, name)) for name, data in (("s", b"1"), ("t", b"2"))]
    copies = [await store.copy(source, Owner(6, f"copy of {source.number}")) for source in sources]
    claims = [Claim(f"copy of {source.number}", 1) for source in sources]
    assert [await first(store, *each) for each in zip(copies, claims, strict=True)] == [b"1", b"2"]
    one, other = (path / "6/0.open" / f"{copy.number:03x}" for copy in copies)
    exchange(one, other)
    for copy, claim in zip(copies, claims, strict=True):
        with pytest.raises(ContentDamagedError, match="another content"):
            await first(store, copy, claim)


async def test_copies_of_earlier_versions_are_read(store: ContentFiles, path: Path) -> None:
    copy = await store.copy(await put(store, b"a"), Owner(5, "copy"))
    (path / "5/0.open/001.owner").write_bytes(b"copy" + zlib.crc32(b"copy").to_bytes(4, "big"))
    assert await first(store, copy, Claim("copy", 1)) == b"a"
    again = await store.copy(copy, Owner(5, "again"), Claim("copy", 1))
    assert await first(store, again, Claim("again", 1)) == b"a"
    with pytest.raises(ContentDamagedError):
        await first(store, copy, Claim("other", 1))


async def first(store: ContentFiles, content: ContentId, claim: Claim) -> bytes:
    """Return the first byte of a content."""
    async with aclosing(store.read(content, 0, 1, claim)) as pieces:
        return b"".join([bytes(piece) async for piece in pieces])


class Pause:
    """Holds a thread until its reader has left."""

    def __init__(self) -> None:
        self._entered, self._left = threading.Event(), threading.Event()

    def hold(self) -> None:
        """Wait; for the thread."""
        self._entered.set()
        self._left.wait()

    async def leave(self, store: ContentFiles, content: ContentId) -> None:
        """Read until a thread is held, leave, and wait for the thread."""
        reading = asyncio.create_task(get(store, content, 0, 1))
        await asyncio.to_thread(self._entered.wait)
        reading.cancel()
        await asyncio.wait([reading])
        self._left.set()
        await asyncio.to_thread(store._worker.close)
        await asyncio.sleep(0)


async def test_a_reader_that_leaves_while_a_file_is_opened_leaves_it_closed(
    store: ContentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, pause = await put(store, b"abc"), Pause()
    opened: list[SealedFile] = []

    def open_late(files: space_files.SpaceFiles, number: int, claim: Claim | None) -> SealedFile:
        pause.hold()
        opened.append(open_file(files, number, claim))
        return opened[0]

    open_file = space_files.SpaceFiles.open_file
    monkeypatch.setattr(space_files.SpaceFiles, "open_file", open_late)
    await pause.leave(store, content)
    assert opened[0]._file.closed


async def test_a_reader_that_leaves_while_a_thread_reads_leaves_the_file_closed_after_it(
    store: ContentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, pause = await put(store, b"abc"), Pause()
    never_cached(monkeypatch)
    read_open: list[SealedFile] = []

    def read_late(file: SealedFile, number: int) -> bytes:
        pause.hold()
        if not file._file.closed:
            read_open.append(file)
        return read(file, number)

    read = SealedFile.read
    monkeypatch.setattr(SealedFile, "read", read_late)
    await pause.leave(store, content)
    assert [file._file.closed for file in read_open] == [True]


@pytest.fixture(name="worker")
def _worker() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as worker:
        yield worker


async def test_calls_during_a_sync_share_the_next_one(worker: ThreadPoolExecutor) -> None:
    began: asyncio.Queue[None] = asyncio.Queue()
    loop, go_on, count = asyncio.get_running_loop(), threading.Semaphore(0), 0

    def sync() -> None:
        nonlocal count
        count += 1
        loop.call_soon_threadsafe(began.put_nowait, None)
        go_on.acquire()

    grouped = GroupedSync(sync, worker)
    first = asyncio.create_task(grouped())
    await began.get()
    others = [asyncio.create_task(grouped()) for _ in range(10)]
    go_on.release()
    await first
    await began.get()
    assert not any(other.done() for other in others)
    go_on.release()
    await asyncio.gather(*others)
    assert count == 2


async def test_a_failure_reaches_its_callers_and_ends_there(worker: ThreadPoolExecutor) -> None:
    fails = True

    def sync() -> None:
        if fails:
            raise OSError("no")

    grouped = GroupedSync(sync, worker)
    found = await asyncio.gather(grouped(), grouped(), return_exceptions=True)
    assert [str(error) for error in found] == ["no", "no"]
    fails = False
    await grouped()
