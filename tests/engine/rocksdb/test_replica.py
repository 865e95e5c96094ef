"""The replica of a worker: it shows what the primary's readers see, or nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.commit import changing, put_rows
from lazulite.engine.contract import UNKNOWN, EngineUnavailableError, KeyRange
from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import UNCHANGED
from lazulite.engine.rocksdb.replica import ChangedRows, Replica
from lazulite.protocol.clock import system_clock
from tests.engine.remote.over_channel import replicated

from .failing import QUICK, Failpoints, writable_again

SPACE = 2000
ALL = KeyRange(("", ""), None)
keys = st.sampled_from([b"%02d" % number for number in range(40)])


@asynccontextmanager
async def opened(
    path: Path, *, ring_bytes: int = 1 << 20, failpoints: Failpoints | None = None
) -> AsyncIterator[tuple[RocksEngine, Replica]]:
    engine, replica = replicated(path, system_clock, QUICK, ring_bytes=ring_bytes, failpoints=failpoints)
    assert await replica.open(engine.flush)
    yield engine, replica
    replica.close()
    await engine.close()


async def put(engine: RocksEngine, **rows: bytes | None) -> None:
    await engine.commit(SPACE, "p", put_rows(rows))


def scanned(replica: Replica, limit: int | None = None) -> Mapping[str, bytes] | None:
    cursor = replica.cursor(SPACE, [ALL], limit, keys_only=False)
    if cursor is None:
        return None
    found: dict[str, bytes] = {}
    while not cursor.done:
        part = cursor.next_slice(lambda: 0.0)
        found |= {part.key(index)[1]: value for index, value in enumerate(part.values)}
    cursor.close()
    return found


def current(engine: RocksEngine) -> OpenDatabase:
    return engine._lifecycle.opened()


async def test_shows_what_was_acknowledged_before_and_after_a_flush(tmp_path: Path) -> None:
    async with opened(tmp_path) as (engine, replica):
        await put(engine, a=b"1", b=b"1")
        await engine.flush()
        await put(engine, b=b"2", c=b"2")
        for _ in range(2):
            assert [replica.get(SPACE, "p", row) for row in "abcd"] == [b"1", b"2", b"2", None]
            assert scanned(replica) == {"a": b"1", "b": b"2", "c": b"2"}
            assert scanned(replica, 1) == {"a": b"1"}
            await put(engine, d=b"3")
            await put(engine, d=None)
            await engine.flush()
        replica.follow()
        assert replica._changed.size_bytes == 0


async def test_a_group_is_in_the_log_before_readers_of_the_primary_see_it(tmp_path: Path) -> None:
    seen: list[object] = []
    async with opened(tmp_path) as (engine, _):
        append = current(engine).group_commit.on_durable

        def look(group: object) -> None:
            seen.append(engine.get_now(SPACE, "p", "r"))
            append(group)  # type: ignore[arg-type]  # it is a group

        current(engine).group_commit.on_durable = look
        await put(engine, r=b"1")
        assert seen == [None]


async def test_shows_nothing_that_is_flushed_but_not_synced(tmp_path: Path) -> None:
    failpoints, goes_on, waits = Failpoints(), threading.Event(), threading.Event()

    def hold() -> None:
        waits.set()
        goes_on.wait(30)

    async with opened(tmp_path, failpoints=failpoints) as (engine, replica):
        await put(engine, r=b"1")
        failpoints.armed["before_sync"] = hold
        commit = asyncio.create_task(put(engine, r=b"2"))
        await asyncio.to_thread(waits.wait, 30)
        current(engine).flush_memory()
        current(engine).note_flushed()
        assert replica.get(SPACE, "p", "r") in (UNKNOWN, b"1")
        assert scanned(replica) in (None, {"r": b"1"})
        goes_on.set()
        await commit
        assert replica.get(SPACE, "p", "r") == b"2"


async def test_a_store_that_was_opened_again_is_read_anew(tmp_path: Path) -> None:
    failpoints = Failpoints()
    async with opened(tmp_path, failpoints=failpoints) as (engine, replica):
        await put(engine, r=b"1")
        failpoints.fail("before_sync", "IO error: No space left on device")
        with pytest.raises(EngineUnavailableError):
            await put(engine, r=b"2")
        assert replica.get(SPACE, "p", "r") == b"1"
        failpoints.armed.clear()
        await writable_again(engine)
        assert await engine.get(SPACE, "p", "r") == b"2"
        assert replica.get(SPACE, "p", "r") is UNKNOWN
        assert scanned(replica) is None
        assert await replica.open(engine.flush)
        assert replica.get(SPACE, "p", "r") == b"2"


async def test_a_dropped_space_is_empty_before_and_after_a_flush(tmp_path: Path) -> None:
    async with opened(tmp_path) as (engine, replica):
        await put(engine, a=b"1")
        await engine.flush()
        await put(engine, b=b"1")
        await engine.drop(SPACE)
        for _ in range(2):
            assert (replica.get(SPACE, "p", "a"), replica.get(SPACE, "p", "b"), scanned(replica)) == (None, None, {})
            await engine.flush()


async def test_shows_nothing_once_the_primary_is_gone(tmp_path: Path) -> None:
    lives = True
    async with opened(tmp_path) as (engine, replica):
        await put(engine, r=b"1")
        replica._primary_lives = lambda: lives
        assert replica.get(SPACE, "p", "r") == b"1"
        lives = False
        assert replica.get(SPACE, "p", "r") is UNKNOWN
        assert scanned(replica) is None


async def test_a_replica_that_was_overtaken_reads_the_files_anew(tmp_path: Path) -> None:
    async with opened(tmp_path, ring_bytes=4096) as (engine, replica):
        for number in range(20):
            await put(engine, **{f"r{number}": bytes(500)})
        assert replica.get(SPACE, "p", "r0") is UNKNOWN
        assert await replica.open(engine.flush)
        assert scanned(replica) == {f"r{number}": bytes(500) for number in range(20)}


async def test_a_cursor_sees_the_moment_when_it_was_made(tmp_path: Path) -> None:
    async with opened(tmp_path) as (engine, replica):
        rows = [f"{number:04}" for number in range(1000)]
        await engine.commit(SPACE, "p", changing(rows, lambda _, __: dict.fromkeys(rows, b"1")))
        await engine.flush()
        await put(engine, **{"0900": b"2"})
        cursor = replica.cursor(SPACE, [ALL], None, keys_only=False)
        assert cursor is not None
        await put(engine, **{"0900": b"3", "0901": b"3"})
        await engine.drop(SPACE)
        await engine.flush()
        assert replica.get(SPACE, "p", "0900") is None
        found: list[bytes] = []
        while not cursor.done:
            found += cursor.next_slice(lambda: 0.0).values
        cursor.close()
        assert found == [b"1"] * 900 + [b"2"] + [b"1"] * 99


@given(
    st.lists(
        st.tuples(st.dictionaries(keys, st.none() | st.binary(max_size=3), max_size=9), st.integers(0, 3)), max_size=12
    ),
    st.lists(st.integers(0, 40), min_size=2, max_size=4, unique=True).map(sorted),
    st.integers(1, 9),
)
def test_changed_rows_are_those_of_the_groups_that_are_not_flushed(
    groups: list[tuple[dict[bytes, bytes | None], int]], edges: list[int], recent_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lazulite.engine.rocksdb.replica._RECENT_MAX", recent_max)
        patch.setattr("lazulite.engine.rocksdb.replica._UNSORTED_MAX", 2 * recent_max)
        changed = ChangedRows()
        flushed = 0
        bounds = [b"%02d" % edge for edge in edges]
        ranges = list(zip(bounds[::2], bounds[1::2], strict=False))
        for number, (changes, behind) in enumerate(groups, 1):
            changed.add(number, changes, (), 1)
            if behind == 0:
                flushed = number - 1
                changed.forget(flushed)
            expected: dict[bytes, bytes | None] = {}
            for each, _ in groups[flushed:number]:
                expected |= each
            within = {key: value for key, value in expected.items() if any(low <= key < up for low, up in ranges)}
            found, values = changed.within(ranges)
            assert list(found) == sorted(within)
            assert dict(zip(found, values, strict=True)) == within
            assert all(changed.get(key) == value for key, value in expected.items())
            assert changed.get(b"absent") is UNCHANGED
