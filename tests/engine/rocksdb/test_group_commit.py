"""What a group shows while a group is on its way to the disk: `durable_within` against `durable`, key by key.

Commits that read in several steps decide on the latest values all the same. The binding's errors are the contract's.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from lazulite.engine.commit import Change, changing
from lazulite.engine.contract import EngineError, EngineUnavailableError, SpaceDroppedError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import (
    STORE_ERRORS,
    UNCHANGED,
    Bounds,
    CommitGroup,
    GroupCommit,
    StalledError,
    WorkerThread,
    changes_by_key,
)
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.protocol.clock import system_clock

from .failing import Failpoints, writable_again

KEYS = [b"a", b"b", b"b\0", b"c", b"d", b"e"]
FLUSHING = [(b"a", b"1", b"2"), (b"b", None, b"new"), (b"c", b"3", None), (b"e", b"5", b"6")]
OPEN = [(b"c", None, b"open"), (b"d", b"4", b"open")]

SMALL = RocksSettings(
    read_bytes_max=100, recovery_retry_seconds=0.001, stall_retry_seconds=0.001, stall_seconds_max=0.01
)
ROWS = ["a", "b", "c", "d", "e"]
OLD = b"old" * 50


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"a": b"1", "b": b"2"}, [(b"ka", None, b"1"), (b"kb", b"old", b"2")]),
        ({"b": b"2", "a": b"1"}, [(b"ka", None, b"1"), (b"kb", b"old", b"2")]),
        ({"b": None}, [(b"kb", b"old", None)]),
        ({}, []),
        ({"a": b"1", "c": b"3"}, None),
        ({"a": b"1", "b": b"2", "c": b"3"}, None),
    ],
)
def test_changes_go_to_the_keys_of_their_rows(
    changes: Mapping[str, bytes | None], expected: list[tuple[bytes, bytes | None, bytes | None]] | None
) -> None:
    assert changes_by_key(["a", "b"], [b"ka", b"kb"], [None, b"old"], changes) == expected


@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param([], id="no range"),
        pytest.param([(b"a", b"f")], id="one range"),
        pytest.param([(b"b", b"d")], id="a range in the middle"),
        pytest.param([(b"a", b"b"), (b"c", b"d")], id="two ranges with a key between them"),
        pytest.param([(b"a", b"b"), (b"b", b"c")], id="two ranges side by side"),
        pytest.param([(b"b", b"b\0"), (b"d", b"e"), (b"e", b"f")], id="three ranges"),
        pytest.param([(b"0", b"1"), (b"e", b"f")], id="a range before all keys"),
        pytest.param([(b"a", b"b"), (b"x", b"z")], id="a range after all keys"),
    ],
)
async def test_ranges_show_what_their_keys_show(ranges: list[Bounds]) -> None:
    writing, over = asyncio.Event(), asyncio.Event()

    async def write(group: CommitGroup) -> None:
        writing.set()
        await over.wait()

    with WorkerThread("test") as worker:
        group = GroupCommit(write, lambda: None, worker)
        group.join(FLUSHING)
        flushed = group.until_all_durable()
        await writing.wait()
        group.join(OPEN)
        inside = [key for key in KEYS if any(start <= key < end for start, end in ranges)]
        expected = {key: value for key in inside if (value := group.durable(key)) is not UNCHANGED}
        found = group.durable_within(ranges)
        over.set()
        await flushed
        assert found == expected
        assert group.durable_within(ranges) == {}


@pytest.fixture(name="failpoints")
def _failpoints() -> Failpoints:
    return Failpoints()


@pytest.fixture(name="engine")
async def _engine(tmp_path: Path, failpoints: Failpoints) -> AsyncIterator[RocksEngine]:
    engine = RocksEngine.open(tmp_path / "store", system_clock, SMALL, failpoints=failpoints)
    for row in ROWS:
        await engine.commit(1, "p", changing([row], write({row: OLD})))
    yield engine
    failpoints.armed.clear()
    await engine.close()


def write(changes: Mapping[str, bytes | None]) -> Change:
    return lambda current, timestamp: changes


class Seen:
    """Notes what it is shown, and writes the first row."""

    def __init__(self) -> None:
        self.values: list[list[bytes | None]] = []

    def __call__(self, current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        self.values.append(list(current))
        return {"a": b"seen"}


async def begun(engine: RocksEngine, decide: Change, rows: Sequence[str] = ROWS) -> asyncio.Task[int]:
    """Return a commit that has read its first row, and not its last."""
    commit = asyncio.create_task(engine.commit(1, "p", changing(rows, decide)))
    await asyncio.sleep(0)
    return commit


async def test_a_commit_of_large_rows_lets_others_run_between_its_reads(engine: RocksEngine) -> None:
    iterations, seen = 0, Seen()

    async def count() -> None:
        nonlocal iterations
        while not seen.values:
            iterations += 1
            await asyncio.sleep(0)

    await asyncio.gather(engine.commit(1, "p", changing(ROWS, seen)), count())
    assert seen.values == [[OLD] * 5]
    assert iterations >= len(ROWS)
    assert await engine.get(1, "p", "a") == b"seen"


async def test_a_commit_of_small_rows_is_one_step(engine: RocksEngine) -> None:
    seen = Seen()
    await begun(engine, seen, ["x", "y", "z"])
    assert seen.values == [[None] * 3]


async def test_a_change_that_is_durable_before_the_last_read_is_seen(
    engine: RocksEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, durable = Seen(), asyncio.Event()
    sleep = asyncio.sleep

    async def held(seconds: float) -> None:
        await (durable.wait() if asyncio.current_task() is commit else sleep(seconds))

    monkeypatch.setattr(asyncio, "sleep", held)
    commit = asyncio.create_task(engine.commit(1, "p", changing(ROWS, seen)))
    await sleep(0)
    await engine.commit(1, "p", changing(["a"], write({"a": b"new"})))
    await engine.commit(1, "p", changing(["a"], write({"a": b"newer"})))
    durable.set()
    await commit
    assert seen.values == [[b"newer", OLD, OLD, OLD, OLD]]


async def test_a_row_named_twice_is_shown_twice(engine: RocksEngine) -> None:
    seen = Seen()
    await engine.commit(1, "p", changing(["a", "b", "a"], seen))
    assert seen.values == [[OLD] * 3]


async def test_a_drop_between_two_reads_rejects_the_commit(engine: RocksEngine) -> None:
    seen = Seen()
    commit = await begun(engine, seen)
    drop = asyncio.create_task(engine.drop(1))
    with pytest.raises(SpaceDroppedError):
        await commit
    await drop
    assert seen.values == []


async def test_a_commit_that_read_what_was_rejected_is_rejected(engine: RocksEngine, failpoints: Failpoints) -> None:
    failpoints.fail("before_write", "Result incomplete: Write stall")
    seen = Seen()
    first = asyncio.create_task(engine.commit(1, "p", changing(["a"], write({"a": bytes(200)}))))
    await asyncio.sleep(0)
    with engine._lifecycle.opened().group_commit.read_ahead() as reads:
        reads.add(b"key", b"never")
        with pytest.raises(EngineUnavailableError):
            await first
        with pytest.raises(EngineUnavailableError):
            reads.values([b"key"])
    failpoints.armed.clear()
    await writable_again(engine)
    await engine.commit(1, "p", changing(ROWS, seen))
    assert seen.values == [[OLD] * 5]


async def test_a_closing_store_rejects_a_commit_between_its_reads(engine: RocksEngine) -> None:
    seen = Seen()
    commit = await begun(engine, seen)
    close = asyncio.create_task(engine.close())
    with pytest.raises(EngineUnavailableError):
        await commit
    await close
    assert seen.values == []


class PanicException(BaseException):
    """The binding's, which cannot be imported, has this name."""


@pytest.mark.parametrize(
    ("raised", "meant"),
    [
        (Exception("IO error: No space left on device"), EngineUnavailableError),
        (Exception("Result incomplete: Write stall"), StalledError),
        (Exception("Corruption: block checksum mismatch"), EngineError),
        (PanicException("Python API call failed"), EngineUnavailableError),
        (KeyError("ours"), KeyError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_errors_are_translated(raised: BaseException, meant: type[BaseException]) -> None:
    caught: BaseException | None = None
    try:
        with STORE_ERRORS:
            raise raised
    except BaseException as error:  # noqa: BLE001 - the type is the question
        caught = error
    assert type(caught) is meant
