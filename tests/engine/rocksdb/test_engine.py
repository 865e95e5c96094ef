"""What only the embedded engine can be asked: its flush is held back, made to fail, and its files are damaged."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from lazulite.engine.commit import Before, Commit, CompanionWrite, Decision, changing
from lazulite.engine.contract import (
    UNKNOWN,
    DataDirectoryInUseError,
    EngineError,
    EngineUnavailableError,
    Key,
    KeyRange,
    SpaceDroppedError,
)
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import GROUP_BYTES_MAX
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.protocol.clock import system_clock

from .failing import QUICK, Failpoints, writable_again

ALL = KeyRange(("", ""), None)
SMALL = RocksSettings(write_buffer_bytes=64 << 10, write_buffers_max=2)


class RejectionError(Exception):
    pass


class HeldFlush:
    """Holds every flush back until let go."""

    def __init__(self, failpoints: Failpoints) -> None:
        self._entered = threading.Event()
        self._let_go = threading.Event()
        self._failpoints = failpoints
        failpoints.armed["before_sync"] = self._hold

    def _hold(self) -> None:
        self._entered.set()
        assert self._let_go.wait(30)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._entered.wait, 30)

    def let_go(self) -> None:
        self._failpoints.armed.pop("before_sync", None)
        self._let_go.set()


@pytest.fixture(name="failpoints")
def _failpoints() -> Failpoints:
    return Failpoints()


@pytest.fixture(name="engine")
async def _engine(tmp_path: Path, failpoints: Failpoints) -> AsyncIterator[RocksEngine]:
    engine = RocksEngine.open(tmp_path / "store", system_clock, QUICK, failpoints=failpoints)
    yield engine
    failpoints.armed.clear()
    await engine.close()


async def put(engine: RocksEngine, row: str, value: bytes | None, space: int = 1) -> int:
    return await engine.commit(space, "p", changing([row], lambda current, timestamp: {row: value}))


async def rows_of(engine: RocksEngine, space: int = 1) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async for part in engine.scan(space, [ALL]):
        found |= {part.key(at)[1]: value for at, value in enumerate(part.values)}
    return found


async def iterations() -> None:
    """Let everything that can run on the loop run."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_no_reader_sees_a_write_before_it_is_durable(engine: RocksEngine, failpoints: Failpoints) -> None:
    for row in ("changed", "deleted", "untouched"):
        await put(engine, row, b"old")
    held = HeldFlush(failpoints)
    before = {"changed": b"old", "deleted": b"old", "untouched": b"old"}
    work = [asyncio.create_task(put(engine, "changed", b"flushing"))]
    await held.reached()
    # These come while a flush is under way, and wait for the next one.
    work += [asyncio.create_task(put(engine, row, value)) for row, value in (("changed", b"open"), ("deleted", None))]
    work += [asyncio.create_task(put(engine, "added", b"new"))]
    await iterations()
    assert not any(task.done() for task in work)
    assert await rows_of(engine) == before
    assert {row: await engine.get(1, "p", row) for row in before} == before
    assert {row: engine.get_now(1, "p", row) for row in before} == before
    assert await engine.get(1, "p", "added") is None
    assert engine.get_now(1, "p", "added") is None
    held.let_go()
    await asyncio.gather(*work)
    assert await rows_of(engine) == {"added": b"new", "changed": b"open", "untouched": b"old"}
    assert await engine.get(1, "p", "deleted") is None


@pytest.mark.parametrize(
    ("rows", "durable"),
    [
        pytest.param("ac", ["a", "c"], id="two partitions"),
        pytest.param("bc", ["c"], id="one of them without a durable row"),
        pytest.param("abcd", ["a", "c", "d"], id="four partitions"),
    ],
)
async def test_a_scan_of_several_ranges_shows_only_what_is_durable(
    engine: RocksEngine, failpoints: Failpoints, rows: str, durable: list[str]
) -> None:
    ranges = [KeyRange((partition, ""), (f"{partition}\0", "")) for partition in rows]

    async def found() -> list[tuple[Key, bytes]]:
        scanned = [part async for part in engine.scan(1, ranges)]
        return [(part.key(at), value) for part in scanned for at, value in enumerate(part.values)]

    async def write(partition: str, value: bytes | None) -> None:
        await engine.commit(1, partition, changing(["r"], lambda current, timestamp: {"r": value}))

    await asyncio.gather(*(write(partition, b"old") for partition in "acd"))
    held = HeldFlush(failpoints)
    work = [
        asyncio.create_task(write(partition, value)) for partition, value in (("a", b"x"), ("b", b"x"), ("c", None))
    ]
    await held.reached()
    shown = await found()
    held.let_go()
    await asyncio.gather(*work)
    assert shown == [((partition, "r"), b"old") for partition in durable]
    after = {"a": b"x", "b": b"x", "d": b"old"}
    assert await found() == [((partition, "r"), after[partition]) for partition in rows if partition in after]


async def test_a_scan_begun_before_a_flush_keeps_to_what_was_durable(
    engine: RocksEngine, failpoints: Failpoints
) -> None:
    rows = [f"{n:04}" for n in range(600)]
    await engine.commit(1, "p", changing(rows, lambda current, timestamp: dict.fromkeys(rows, b"old")))
    held = HeldFlush(failpoints)
    work = asyncio.create_task(
        engine.commit(1, "p", changing(rows, lambda current, timestamp: dict.fromkeys(rows[1:], b"new")))
    )
    await held.reached()
    scan = engine.scan(1, [ALL])
    values = list((await anext(scan)).values)
    held.let_go()
    await work
    values += [value async for part in scan for value in part.values]
    assert values == [b"old"] * 600


async def test_a_rejection_waits_for_what_it_was_shown(engine: RocksEngine, failpoints: Failpoints) -> None:
    def reject(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        assert current in ([b"unsynced"], [None])
        raise RejectionError

    held = HeldFlush(failpoints)
    work = asyncio.create_task(put(engine, "r", b"unsynced"))
    await held.reached()
    rejection = asyncio.create_task(engine.commit(1, "p", changing(["r"], reject)))
    nothing = asyncio.create_task(engine.commit(1, "p", changing(["r"], lambda current, timestamp: {})))
    await iterations()
    assert not rejection.done()
    assert not nothing.done()
    with pytest.raises(RejectionError):  # It was shown nothing that is not durable.
        await engine.commit(1, "p", changing(["other"], reject))
    held.let_go()
    with pytest.raises(RejectionError):
        await rejection
    await asyncio.gather(work, nothing)


async def test_a_drop_shows_once_it_is_durable(engine: RocksEngine, failpoints: Failpoints) -> None:
    await put(engine, "r", b"x")
    held = HeldFlush(failpoints)
    drop = asyncio.create_task(engine.drop(1))
    await held.reached()
    readers = [asyncio.create_task(engine.get(1, "p", "r")), asyncio.create_task(rows_of(engine))]
    late = asyncio.create_task(put(engine, "r", b"late"))
    await iterations()
    assert not any(task.done() for task in (*readers, late))
    assert engine.get_now(1, "p", "r") is UNKNOWN
    held.let_go()
    await drop
    assert await asyncio.gather(*readers) == [None, {}]
    with pytest.raises(SpaceDroppedError):
        await late


@pytest.mark.parametrize("point", ["before_sync", "after_sync"])
async def test_a_failed_flush_acknowledges_nothing_and_shows_nothing(
    engine: RocksEngine, failpoints: Failpoints, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(engine, "r", b"durable")
    monkeypatch.setattr("lazulite.engine.rocksdb.data_directory.DataDirectory.has_room", lambda self: False)
    failpoints.fail(point, "IO error: No space left on device")
    results = await asyncio.gather(
        put(engine, "r", b"lost"), put(engine, "s", b"lost"), engine.drop(2), return_exceptions=True
    )
    assert [type(result) for result in results] == [EngineUnavailableError] * 3
    failpoints.armed.clear()
    for _ in range(3):
        with pytest.raises(EngineUnavailableError):
            await put(engine, "t", b"rejected")
        with pytest.raises(EngineUnavailableError):
            await engine.check_writable()
        assert await engine.get(1, "p", "r") == b"durable"
        assert await rows_of(engine) == {"r": b"durable"}


async def test_commits_that_wait_behind_a_failing_flush_are_rejected(
    engine: RocksEngine, failpoints: Failpoints
) -> None:
    held = HeldFlush(failpoints)
    work = [asyncio.create_task(put(engine, "a", b""))]
    await held.reached()
    work += [asyncio.create_task(put(engine, "b", b""))]
    await iterations()
    failpoints.fail("after_sync", "IO error: Input/output error")
    held.let_go()
    results = await asyncio.gather(*work, return_exceptions=True)
    assert [type(result) for result in results] == [EngineUnavailableError] * 2


@pytest.mark.parametrize("point", ["before_write", "before_sync", "after_sync"])
async def test_the_engine_recovers_by_itself(engine: RocksEngine, failpoints: Failpoints, point: str) -> None:
    timestamp = await put(engine, "r", b"durable")
    scan = engine.scan(1, [ALL])
    failpoints.fail(point, "IO error: No space left on device")
    with pytest.raises(EngineUnavailableError):
        await put(engine, "s", b"unknown")
    failpoints.armed.clear()
    await writable_again(engine)
    assert await put(engine, "t", b"after") > timestamp
    rows = await rows_of(engine)
    assert rows.pop("s", b"unknown") == b"unknown"
    assert rows == {"r": b"durable", "t": b"after"}
    assert [part async for part in scan]


@pytest.mark.parametrize("error", [EngineUnavailableError("unreadable"), OSError(5, "I/O error"), MemoryError()])
@pytest.mark.parametrize("step", ["has_room", "open", "stored_timestamp"])
async def test_a_recovery_that_fails_is_tried_again(
    engine: RocksEngine, failpoints: Failpoints, monkeypatch: pytest.MonkeyPatch, step: str, error: Exception
) -> None:
    owner = OpenDatabase if step == "stored_timestamp" else DataDirectory
    real, left = getattr(owner, step), [error] * 3

    def fails_at_first(self: object) -> object:
        if left:
            raise left.pop()
        return real(self)

    await put(engine, "r", b"durable")
    monkeypatch.setattr(owner, step, fails_at_first)
    failpoints.fail("before_sync", "IO error: Input/output error")
    with pytest.raises(EngineUnavailableError):
        await put(engine, "s", b"unknown")
    failpoints.armed.clear()
    await writable_again(engine)
    assert not left
    assert (await rows_of(engine))["r"] == b"durable"


async def test_a_drop_that_failed_leaves_the_space_usable(engine: RocksEngine, failpoints: Failpoints) -> None:
    failpoints.fail("before_sync", "IO error: No space left on device")
    with pytest.raises(EngineUnavailableError):
        await engine.drop(1)
    failpoints.armed.clear()
    await writable_again(engine)
    await put(engine, "r", b"x")


async def test_a_scan_under_way_ends_with_an_error_when_the_store_is_closed(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "store", system_clock)
    rows = [f"{n:04}" for n in range(600)]
    await engine.commit(1, "p", changing(rows, lambda current, timestamp: dict.fromkeys(rows, b"")))
    scan = engine.scan(1, [ALL])
    await anext(scan)
    await engine.close()
    with pytest.raises(EngineUnavailableError):
        await anext(scan)
    await RocksEngine.open(tmp_path / "store", system_clock).close()


async def test_a_stall_is_waited_out(tmp_path: Path, failpoints: Failpoints) -> None:
    engine = RocksEngine.open(tmp_path / "store", system_clock, QUICK, failpoints=failpoints, timer=lambda: 1.0)
    tries: list[None] = []

    def stall() -> None:
        if len(tries) < 3:
            tries.append(None)
            raise Exception("Result incomplete: Write stall")

    failpoints.armed["before_write"] = stall
    await put(engine, "r", b"x")
    assert len(tries) == 3
    await engine.close()


async def test_real_stalls_lose_nothing(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "store", system_clock, SMALL)
    rows = {f"{n:04}": n.to_bytes(4, "big") * 2000 for n in range(1000)}
    await asyncio.gather(*(put(engine, row, value) for row, value in rows.items()))
    assert await rows_of(engine) == rows
    await engine.close()


async def test_a_long_stall_rejects_and_does_no_harm(engine: RocksEngine, failpoints: Failpoints) -> None:
    failpoints.fail("before_write", "Result incomplete: Write stall")
    with pytest.raises(EngineUnavailableError, match="behind"):
        await put(engine, "r", b"x")
    with pytest.raises(EngineUnavailableError, match="behind"):
        await engine.drop(2)
    with pytest.raises(EngineUnavailableError, match="behind"):
        await engine.check_writable()
    failpoints.armed.clear()
    assert await rows_of(engine) == {}
    await put(engine, "r", b"y")
    assert await rows_of(engine) == {"r": b"y"}


async def test_a_stall_rejects_what_builds_on_the_rejected(engine: RocksEngine, failpoints: Failpoints) -> None:
    failpoints.fail("before_write", "Result incomplete: Write stall")
    seen: list[bytes | None] = []

    def look(current: Sequence[bytes | None], timestamp: int) -> dict[str, bytes | None]:
        seen.extend(current)
        return {"s": b"built on it"}

    first = asyncio.create_task(put(engine, "r", b"never"))
    await iterations()
    results = await asyncio.gather(
        first, engine.commit(1, "p", changing(["r", "s"], look)), engine.drop(2), return_exceptions=True
    )
    assert [type(result) for result in results] == [EngineUnavailableError] * 3
    assert seen == [b"never", None]
    failpoints.armed.clear()
    assert await rows_of(engine) == {}
    assert await put(engine, "t", b"goes on")
    await engine.commit(2, "p", changing(["r"], lambda current, timestamp: {"r": b"was not dropped"}))


async def test_a_commit_sees_what_waits_for_its_flush_and_what_is_in_it(
    engine: RocksEngine, failpoints: Failpoints
) -> None:
    held = HeldFlush(failpoints)
    seen: list[Sequence[bytes | None]] = []

    def look(current: Sequence[bytes | None], timestamp: int) -> dict[str, bytes | None]:
        seen.append(current)
        return {"b": b"third"}

    work = [asyncio.create_task(put(engine, "a", b"first"))]
    await held.reached()
    work += [asyncio.create_task(put(engine, "b", b"second"))]
    await iterations()
    last = asyncio.create_task(engine.commit(1, "p", changing(["a", "b", "c"], look)))
    await iterations()
    assert seen == [[b"first", b"second", None]]
    assert await rows_of(engine) == {}
    held.let_go()
    await asyncio.gather(*work, last)
    assert await rows_of(engine) == {"a": b"first", "b": b"third"}


async def test_a_reader_sees_what_was_before_all_changes_of_a_commit_group(
    engine: RocksEngine, failpoints: Failpoints
) -> None:
    await put(engine, "r", b"durable")
    held = HeldFlush(failpoints)
    work = [asyncio.create_task(put(engine, "r", value)) for value in (b"first", b"second")]
    await held.reached()
    assert await engine.get(1, "p", "r") == b"durable"
    assert await rows_of(engine) == {"r": b"durable"}
    held.let_go()
    await asyncio.gather(*work)
    assert await engine.get(1, "p", "r") == b"second"


async def test_commit_that_read_an_undurable_value_waits_for_its_flush(
    engine: RocksEngine, failpoints: Failpoints
) -> None:
    held = HeldFlush(failpoints)
    work = [asyncio.create_task(put(engine, "other", b""))]
    await held.reached()
    work += [asyncio.create_task(put(engine, "r", b"x"))]
    await iterations()
    looked = asyncio.create_task(engine.commit(1, "p", changing(["r"], lambda current, timestamp: {})))
    await iterations()
    assert not looked.done()
    held.let_go()
    await asyncio.gather(*work, looked)


async def test_commit_group_is_bounded_in_size(engine: RocksEngine, failpoints: Failpoints) -> None:
    """What is written to the database in one go holds the event loop meanwhile."""
    held = HeldFlush(failpoints)
    sizes: list[int] = []
    work = [asyncio.create_task(put(engine, "first", b""))]
    await held.reached()
    big = bytes(GROUP_BYTES_MAX // 4)

    def write(row: str) -> Callable[[Sequence[bytes | None], int], dict[str, bytes | None]]:
        def decide(current: Sequence[bytes | None], timestamp: int) -> dict[str, bytes | None]:
            sizes.append(timestamp)
            return {row: big}

        return decide

    work += [asyncio.create_task(engine.commit(1, "p", changing([str(n)], write(str(n))))) for n in range(10)]
    await iterations()
    assert len(sizes) == 4
    held.let_go()
    await asyncio.gather(*work)
    assert len(await rows_of(engine)) == 11


async def test_a_cancelled_commit_leaves_the_others_alone(engine: RocksEngine, failpoints: Failpoints) -> None:
    held = HeldFlush(failpoints)
    first = asyncio.create_task(put(engine, "a", b"1"))
    second = asyncio.create_task(put(engine, "b", b"2"))
    await held.reached()
    first.cancel()
    await iterations()
    held.let_go()
    await second
    assert first.cancelled()
    assert await rows_of(engine) == {"a": b"1", "b": b"2"}


async def test_damage_is_noticed_by_gets_and_scans(tmp_path: Path) -> None:
    path = tmp_path / "store"
    engine = RocksEngine.open(path, system_clock)
    rows = [f"{n:04}" for n in range(2000)]
    await engine.commit(1, "p", changing(rows, lambda current, timestamp: {row: row.encode() * 50 for row in rows}))
    await engine.close()
    table = max(path.glob("*.sst"), key=lambda file: file.stat().st_size)
    content = bytearray(table.read_bytes())
    content[len(content) // 4 : len(content) // 4 + 16] = b"damaged damaged!"
    table.write_bytes(content)
    engine = RocksEngine.open(path, system_clock)
    with pytest.raises(EngineError, match="damaged"):
        await rows_of(engine)
    with pytest.raises(EngineError, match="damaged"):
        await asyncio.gather(*(engine.get(1, "p", row) for row in rows))
    assert {engine.get_now(1, "p", row) for row in rows} > {UNKNOWN, rows[-1].encode() * 50}
    await engine.close()


async def test_a_drop_gives_its_room_back(tmp_path: Path) -> None:
    path = tmp_path / "store"
    engine = RocksEngine.open(path, system_clock)
    for n in range(8):
        await put(engine, str(n), (b"%d" % n).join([n.to_bytes(4, "big")] * 100_000))
    await engine.close()
    engine = RocksEngine.open(path, system_clock)
    used = sum(file.stat().st_size for file in path.glob("*.sst"))
    await engine.drop(1)
    await engine.reclaimed()
    await engine.close()
    assert sum(file.stat().st_size for file in path.glob("*.sst")) < used / 10


async def test_a_location_is_for_one_engine_until_it_is_closed(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "store", system_clock)
    assert engine.name == str(tmp_path / "store")
    with pytest.raises(DataDirectoryInUseError, match="in use"):
        RocksEngine.open(tmp_path / "store", system_clock)
    await put(engine, "r", b"x")
    await engine.close()
    await RocksEngine.open(tmp_path / "store", system_clock).close()


async def test_a_store_in_memory_keeps_its_rows_over_a_failed_write() -> None:
    failpoints = Failpoints()
    engine = RocksEngine.open(None, system_clock, QUICK, failpoints=failpoints)
    await engine.commit(1, "p", changing(["r"], lambda _, __: {"r": b"kept"}))
    failpoints.fail("before_write", "IO error: no memory")
    with pytest.raises(EngineUnavailableError):
        await engine.commit(1, "p", changing(["s"], lambda _, __: {"s": b"rejected"}))
    failpoints.armed.clear()
    await writable_again(engine)
    assert [await engine.get(1, "p", row) for row in ("r", "s")] == [b"kept", None]
    await engine.close()


@pytest.mark.parametrize("before", [True, b"old"])
async def test_companions_that_are_not_durable_are_seen_by_no_snapshot(tmp_path: Path, before: Before) -> None:
    failpoints, reached, goes_on = Failpoints(), threading.Event(), threading.Event()
    engine = RocksEngine.open(tmp_path, system_clock, failpoints=failpoints)

    def writing(value: bytes | None, before: Before = True) -> Commit[None]:
        return Commit(["r"], lambda *_: Decision({"r": value}, None, [CompanionWrite(2, ("p", "e"), value, before)]))

    def wait() -> None:
        reached.set()
        goes_on.wait()

    await engine.commit(1, "p", writing(b"old"))
    failpoints.armed["before_sync"] = wait
    deleting = asyncio.create_task(engine.commit(1, "p", writing(None, before)))
    await asyncio.to_thread(reached.wait)
    async with engine.snapshot() as snapshot:
        assert await snapshot.values(1, [("p", "r")]) == [b"old"]
        assert await snapshot.values(2, [("p", "e")]) == [b"old"]
    goes_on.set()
    await deleting
    await engine.close()
