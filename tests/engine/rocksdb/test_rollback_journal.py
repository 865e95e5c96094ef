"""Commit groups written as several batches: whole or absent, whatever interrupts them, and unseen till then."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocksdict import Options, Rdict

from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineUnavailableError, KeyRange, SpaceDroppedError, StoreUnusableError
from lazulite.engine.rocksdb import rollback_journal
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.database import TIMESTAMP_KEY
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import CommitGroup
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.rocksdb.rollback_journal import FORMAT, FORMAT_KEY, UNFINISHED, WITH_INDEXES, batches
from lazulite.protocol.clock import system_clock

from .failing import Failpoints, writable_again

SMALL = RocksSettings(
    write_bytes_max=4096, recovery_retry_seconds=0.001, stall_retry_seconds=0.001, stall_seconds_max=0.01
)
ROWS = [f"{number:02}" for number in range(20)]
OLD = dict.fromkeys(ROWS[::2], b"old" * 300)
NEW = dict.fromkeys(ROWS[4:], b"new" * 400)
BATCHES = 13
"""Of the commit of `NEW` and of the deletion of the other rows, by `SMALL`."""


@pytest.fixture(name="failpoints")
def _failpoints() -> Failpoints:
    return Failpoints()


@pytest.fixture(name="engine")
async def _engine(tmp_path: Path, failpoints: Failpoints) -> AsyncIterator[RocksEngine]:
    engine = RocksEngine.open(tmp_path / "store", system_clock, SMALL, failpoints=failpoints)
    for row, value in OLD.items():
        await engine.commit(1, "p", changing([row], lambda current, timestamp, row=row, value=value: {row: value}))  # type: ignore[misc]  # binds
    yield engine
    failpoints.armed.clear()
    await engine.close()


def change(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
    return {row: NEW.get(row) for row in ROWS}


async def rows_of(engine: RocksEngine) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async for part in engine.scan(1, [KeyRange(("", ""), None)]):
        found |= {part.key(at)[1]: value for at, value in enumerate(part.values)}
    return found


async def rows_at(path: Path) -> dict[str, bytes]:
    engine = RocksEngine.open(path, system_clock, SMALL)
    found = await rows_of(engine)
    await engine.close()
    return found


class Counted:
    """Does something at each call of a failpoint."""

    def __init__(self, action: Callable[[int], None]) -> None:
        self.calls = 0
        self._action = action

    def __call__(self) -> None:
        self.calls += 1
        self._action(self.calls)


async def test_a_group_is_whole_or_absent_wherever_a_process_ends(
    engine: RocksEngine, failpoints: Failpoints, tmp_path: Path
) -> None:
    stores: list[Path] = []

    def keep(number: int) -> None:
        stores.append(tmp_path / f"{len(stores)}")
        shutil.copytree(tmp_path / "store", stores[-1])

    failpoints.armed = {"before_write": Counted(keep), "after_sync": Counted(keep)}
    await engine.commit(1, "p", changing(ROWS, change))
    failpoints.armed.clear()
    assert len(stores) == 2 * BATCHES
    kept = []
    for store in stores:
        with inspect(store) as inspection:
            inspected = dict(inspection.rows())
        kept.append(await rows_at(store))
        assert list(inspected.values()) == list(kept[-1].values()), "inspected otherwise than opened"
        assert kept[-1] == await rows_at(store), "changed by being opened again"
    assert kept == [OLD] * (2 * BATCHES - 1) + [NEW]


@pytest.mark.parametrize("number", range(1, BATCHES + 1))
@pytest.mark.parametrize("point", ["before_write", "before_sync", "after_sync"])
async def test_a_group_that_fails_is_whole_or_absent_and_does_no_later_harm(
    engine: RocksEngine, failpoints: Failpoints, tmp_path: Path, point: str, number: int
) -> None:
    def fail(call: int) -> None:
        if call == number:
            raise Exception("IO error: no more")

    failpoints.armed[point] = Counted(fail)
    with pytest.raises(EngineUnavailableError):
        await engine.commit(1, "p", changing(ROWS, change))
    await writable_again(engine)
    found = await rows_of(engine)
    assert found == (NEW if number == BATCHES and point != "before_write" else OLD)
    await engine.commit(1, "p", changing(["00"], lambda current, timestamp: {"00": b"later"}))
    shutil.copytree(tmp_path / "store", tmp_path / "killed")
    assert await rows_at(tmp_path / "killed") == dict(sorted({**found, "00": b"later"}.items()))


async def test_no_reader_sees_a_part_of_a_group(engine: RocksEngine, failpoints: Failpoints) -> None:
    writes = Counted(lambda _: None)
    failpoints.armed["before_write"] = writes
    seen: set[int] = set()
    commit = asyncio.create_task(engine.commit(1, "p", changing(ROWS, change)))
    while True:
        before = writes.calls
        rows = await rows_of(engine)
        values = {row: engine.get_now(1, "p", row) for row in ROWS}
        if {row: value for row, value in values.items() if value is not None} == NEW:
            break
        assert rows == OLD
        assert values == dict.fromkeys(ROWS) | OLD
        seen.add(before)
    await commit
    assert len(seen) > BATCHES // 2
    assert await rows_of(engine) == NEW


async def test_a_stall_within_a_group_rejects_it_and_does_no_harm(engine: RocksEngine, failpoints: Failpoints) -> None:
    def stall(call: int) -> None:
        if call > 5:
            raise Exception("Result incomplete: Write stall")

    failpoints.armed["before_write"] = Counted(stall)
    first = asyncio.create_task(engine.commit(1, "p", changing(ROWS, change)))
    await asyncio.sleep(0)
    builds_on_it = asyncio.create_task(
        engine.commit(1, "p", changing(["00"], lambda current, timestamp: {"00": b"later"}))
    )
    assert [type(error) for error in await asyncio.gather(first, builds_on_it, return_exceptions=True)] == [
        EngineUnavailableError
    ] * 2
    failpoints.armed.clear()
    await writable_again(engine)
    assert await rows_of(engine) == OLD


async def test_a_short_stall_within_a_group_is_waited_out(engine: RocksEngine, failpoints: Failpoints) -> None:
    def stall(call: int) -> None:
        if call in (5, 6):
            raise Exception("Result incomplete: Write stall")

    failpoints.armed["before_write"] = Counted(stall)
    await engine.commit(1, "p", changing(ROWS, change))
    assert await rows_of(engine) == NEW


async def test_a_drop_that_joins_a_large_group_is_a_part_of_it(
    engine: RocksEngine, failpoints: Failpoints, tmp_path: Path
) -> None:
    def keep(number: int) -> None:  # Later the drop's compaction deletes files.
        if number == BATCHES:
            shutil.copytree(tmp_path / "store", tmp_path / "killed")

    failpoints.armed["after_sync"] = Counted(keep)
    commit = asyncio.create_task(engine.commit(1, "p", changing(ROWS, change)))
    drop = asyncio.create_task(engine.drop(1))
    timestamp, _ = await asyncio.gather(commit, drop)
    assert await rows_of(engine) == {}
    with pytest.raises(SpaceDroppedError):
        await engine.commit(1, "p", changing(ROWS, change))
    assert await rows_at(tmp_path / "killed") == {}
    assert engine.newest_timestamp == timestamp


async def test_a_rollback_can_be_interrupted(
    engine: RocksEngine, failpoints: Failpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(number: int) -> None:
        if number == BATCHES:
            shutil.copytree(tmp_path / "store", tmp_path / "killed")

    failpoints.armed["before_write"] = Counted(keep)
    await engine.commit(1, "p", changing(ROWS, change))
    write = rollback_journal._write
    for number in range(1, 6):
        calls = 0

        def interrupted(*arguments: object, number: int = number) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                raise EngineUnavailableError
            write(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(rollback_journal, "_write", interrupted)
        with pytest.raises(Exception, match="cannot be opened"):
            DataDirectory(tmp_path / "killed", SMALL).open()
    monkeypatch.undo()
    assert await rows_at(tmp_path / "killed") == OLD


async def test_versions_without_a_journal_reject_an_unfinished_group_only(
    engine: RocksEngine, failpoints: Failpoints, tmp_path: Path
) -> None:
    stores: list[Path] = []

    def keep(number: int) -> None:
        stores.append(tmp_path / f"{len(stores)}")
        shutil.copytree(tmp_path / "store", stores[-1])

    failpoints.armed["after_sync"] = Counted(keep)
    await engine.commit(1, "p", changing(ROWS, change))
    assert [format_of(store) for store in stores] == [UNFINISHED] * (BATCHES - 1) + [FORMAT]
    assert await rows_at(stores[0]) == OLD
    assert format_of(stores[0]) == FORMAT


def format_of(store: Path) -> int:
    database = Rdict(str(store), Options(raw_mode=True))
    found = database.get(FORMAT_KEY)
    database.close()
    assert isinstance(found, bytes)
    return int(found)


async def test_an_unfinished_group_leaves_a_raised_format(
    engine: RocksEngine, failpoints: Failpoints, tmp_path: Path
) -> None:
    """Also that of the group which raises it."""
    stores: list[Path] = []

    def keep(number: int) -> None:
        stores.append(tmp_path / f"{len(stores)}")
        shutil.copytree(tmp_path / "store", stores[-1])

    failpoints.armed["after_sync"] = Counted(keep)
    raised = asyncio.create_task(engine.raise_format())
    await asyncio.gather(raised, engine.commit(1, "p", changing(ROWS, change)))
    assert len(stores) >= BATCHES
    first = len(stores)
    await engine.commit(1, "p", changing(ROWS, lambda *_: {row: OLD.get(row) for row in ROWS}))
    assert len(stores) > first + 3
    assert [format_of(store) for store in stores] == [WITH_INDEXES] * len(stores)
    for store, unfinished in ((stores[0], OLD), (stores[first], NEW)):
        with inspect(store) as inspection:
            assert len(dict(inspection.rows())) == len(unfinished)
        reopened = RocksEngine.open(store, system_clock, SMALL)
        assert await reopened.has_raised_format()
        assert await rows_of(reopened) == unfinished
        await reopened.commit(1, "p", changing(ROWS, change))
        await reopened.close()
        assert format_of(store) == WITH_INDEXES


async def test_a_format_is_raised_durably_or_not(engine: RocksEngine, failpoints: Failpoints, tmp_path: Path) -> None:
    assert not await engine.has_raised_format()

    def fail(call: int) -> None:
        if call == 1:
            raise Exception("IO error: no more")

    failpoints.armed["before_write"] = Counted(fail)
    with pytest.raises(EngineUnavailableError):
        await engine.raise_format()
    await writable_again(engine)
    assert not await engine.has_raised_format()
    await engine.commit(1, "p", changing(ROWS, change))
    failpoints.armed.clear()
    shutil.copytree(tmp_path / "store", tmp_path / "before")
    assert format_of(tmp_path / "before") == FORMAT
    await engine.raise_format()
    shutil.copytree(tmp_path / "store", tmp_path / "killed")
    assert format_of(tmp_path / "killed") == WITH_INDEXES


async def test_versions_without_indexes_reject_a_raised_format(
    engine: RocksEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.raise_format()
    await engine.close()
    monkeypatch.setattr("lazulite.engine.rocksdb.data_directory.WITH_INDEXES", FORMAT)
    with pytest.raises(StoreUnusableError, match=r"format 3, newer than the 1 of this .*; use a newer version"):
        DataDirectory(tmp_path / "store", SMALL).open()
    monkeypatch.undo()
    assert len(await rows_at(tmp_path / "store")) == len(OLD)


async def test_no_write_is_larger_than_the_bound(engine: RocksEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    encoded = rollback_journal.Batch.encoded

    def note(self: rollback_journal.Batch) -> object:
        batch = encoded(self)
        sizes.append(batch.size_in_bytes())
        return batch

    monkeypatch.setattr(rollback_journal.Batch, "encoded", note)
    await engine.commit(1, "p", changing(ROWS, change))
    assert len(sizes) == BATCHES
    assert max(sizes) <= SMALL.write_bytes_max


changes = st.dictionaries(st.binary(max_size=4), st.none() | st.binary(max_size=40), min_size=1)


@given(changes, changes, st.integers(1, 600))
def test_batches_hold_all_changes_and_their_journal_all_old_values(
    new: dict[bytes, bytes | None], old: dict[bytes, bytes | None], bytes_max: int
) -> None:
    group = CommitGroup()
    group.join((key, old.get(key), value) for key, value in new.items())
    written = [change for batch in batches(group, (TIMESTAMP_KEY, b"now"), bytes_max) for change in batch.changes]
    meta = [(key, value) for key, value in written if key.startswith(FORMAT_KEY[:8])]
    assert dict(change for change in written if change not in meta) == new
    assert written[-1] == (TIMESTAMP_KEY, b"now")
    records = [value for key, value in meta if b"journal" in key and value is not None]
    restored = [change for record in records for change in rollback_journal._decode(record)]
    if group.size_bytes > bytes_max:
        assert restored == [(key, old.get(key)) for key in new]
        assert [key for key, value in meta if value is None] == [key for key, value in meta if value in records]
    else:
        assert meta == [(TIMESTAMP_KEY, b"now")]
