"""Copies are complete after any interruption, keep Timestamps increasing, and overwrite no other data."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.app.registry import SPACES
from lazulite.auth.accounts.document import StoredAccount
from lazulite.engine.commit import Commit
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import Engine, EngineUnavailableError, Key, KeyRange
from lazulite.engine.key_encoding import encode_key
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.migration import copying, in_flight
from lazulite.migration.compare import ComparedStore, StoreComparer
from lazulite.migration.copying import Timing, copy
from lazulite.migration.endpoint import Endpoint, MigrationError
from lazulite.migration.journal import Journal, reject_unfinished
from lazulite.migration.monotonic_clock import MonotonicClock
from lazulite.migration.parts import StoredRow
from lazulite.migration.progress import Progress
from lazulite.records.spaces import COPIES, COUNTERS, FIRST_FREE_SPACE, TABLES
from lazulite.table.catalog import Table
from tests.fuzz.memory import MemoryEngine, Run
from tests.migration.stores import (
    FUTURE,
    NOW,
    BreakingEngine,
    Broken,
    Contents,
    MemoryAccounts,
    Pair,
    all_rows,
    contents,
    copied,
    entity,
    fill,
    order,
    put,
)

SPACE = FIRST_FREE_SPACE
ACCOUNTS = {"one": StoredAccount((b"1", b"2")), "two": StoredAccount((b"3", b"4"), 5)}

T = TypeVar("T")


def table(*spaces: int) -> Contents:
    """A catalog."""
    return {TABLES: {("one", f"t{space}"): Table(f"T{space}", space).to_bytes() for space in spaces}}


def new_pair(open_engine: Callable[[Callable[[], int]], Engine] = MemoryEngine) -> Pair:
    clock = MonotonicClock(lambda: NOW)
    source = Endpoint("source", open_engine(lambda: NOW), MemoryAccounts(ACCOUNTS), ContentMemory())
    return Pair(source, Endpoint("target", open_engine(clock), MemoryAccounts(), ContentMemory()), clock)


def timing(pair: Pair) -> Timing:
    """Time passes with every look at it, so that the journal is always brought up to date."""
    return Timing(pair.clock, count(step=10).__next__)


async def copy_all(pair: Pair) -> None:
    journal = await copy(pair.source, pair.target, SPACES, timing(pair), lambda _: None)
    await journal.end()


async def differing(source: Engine, target: Engine) -> list[str]:
    comparing = StoreComparer(
        ComparedStore(source, ContentMemory()), ComparedStore(target, ContentMemory()), SPACES, lambda _: None
    )
    return [each.part.name async for each in comparing.run(None) if not each.equal]


# Everything arrives.


@settings(deadline=None, max_examples=40)
@given(found=contents())
def test_a_copy_has_what_the_source_has_and_nothing_of_dropped_tables(found: Contents) -> None:
    async def check() -> None:
        pair = new_pair(lambda clock: RocksEngine.open(None, clock))
        try:
            await fill(pair.source.engine, found)
            await copy_all(pair)
            assert await all_rows(pair.target.engine) == copied(found)
            assert await all_rows(pair.source.engine) == {space: rows for space, rows in found.items() if rows}
            assert await pair.target.accounts.load() == ACCOUNTS
            assert await differing(pair.source.engine, pair.target.engine) == []
            await reject_unfinished(pair.target.engine, "target")
        finally:
            await pair.source.engine.close()
            await pair.target.engine.close()

    asyncio.run(check())


@settings(deadline=None, max_examples=80)
@given(found=contents(), breaks=st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=3))
def test_interrupted_copy_can_be_resumed_at_any_commit(found: Contents, breaks: list[tuple[int, bool]]) -> None:
    async def check() -> None:
        pair = new_pair()
        await fill(pair.source.engine, found)
        for commits, applied in breaks:
            engine = BreakingEngine(pair.target.engine, commits, applied=applied)
            try:
                journal = await copy(
                    pair.source, pair.target._replace(engine=engine), SPACES, timing(pair), lambda _: None
                )
            except Broken:
                await check_half(pair.target.engine, found)
            else:
                assert journal.position.entities == entities_of(found)
        await copy_all(pair)
        assert await all_rows(pair.target.engine) == copied(found)

    with patch.object(copying, "ROWS_MAX", 2):
        asyncio.run(check())


def entities_of(found: Contents) -> int:
    return sum(len(rows) for space, rows in copied(found).items() if space >= FIRST_FREE_SPACE)


async def check_half(engine: Engine, found: Contents) -> None:
    """Half a copy says that it is one, and has all that its journal says."""
    there = await all_rows(engine)
    noted = there.pop(COPIES, None)
    if noted is None:
        assert there == {}, "rows without a journal"
        return
    journal = await Journal.unfinished(engine)
    assert journal is not None
    position = journal.position
    last = (position.space, *order((position.partition, position.row)))
    expected = [
        (space, key, value)
        for space, rows in copied(found).items()
        for key, value in rows.items()
        if (space, *order(key)) <= last
    ]
    assert position.entities == sum(space >= FIRST_FREE_SPACE for space, _, _ in expected)
    for space, key, value in expected:
        assert there[space][key] == value


async def test_resumed_copy_skips_recorded_rows() -> None:
    pair = new_pair()
    rows = {(f"p{number:02}", "r"): entity(NOW) for number in range(20)}
    await fill(pair.source.engine, {**table(SPACE), SPACE: rows})
    target = pair.target._replace(engine=BreakingEngine(pair.target.engine, 30, applied=True))
    with pytest.raises(Broken):
        await copy(pair.source, target, SPACES, timing(pair), lambda _: None)
    journal = await Journal.unfinished(pair.target.engine)
    assert journal is not None
    assert 0 < journal.position.entities < 20
    again = CountingEngine(pair.target.engine)
    tallies: list[int] = []
    await copy(
        pair.source,
        pair.target._replace(engine=again),
        SPACES,
        timing(pair),
        lambda tally: tallies.append(tally.rows),
    )
    assert again.rows[SPACE] == 20 - journal.position.entities
    assert tallies[0] >= journal.position.entities
    assert tallies[-1] == 20


class CountingEngine(BreakingEngine):
    """Counts the rows that commits name."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner, 10**9, applied=True)
        self.rows: dict[int, int] = {}

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        self.rows[space] = self.rows.get(space, 0) + len(commit.rows)
        return await super().commit(space, partition, commit)


async def test_a_commit_has_rows_of_one_partition_and_a_bounded_number() -> None:
    pair = new_pair()
    rows = {(partition, f"{number:03}"): entity(NOW) for partition in "ab" for number in range(250)}
    await fill(pair.source.engine, {**table(SPACE), SPACE: rows})
    found = [batch async for batch in copying.batches_of(_runs(rows))]
    assert [(batch.partition, len(batch.rows)) for batch in found] == [
        (partition, size) for partition in "ab" for size in (100, 100, 50)
    ]
    large = {("a", f"{number}"): entity(NOW, bytes(copying.BYTES_MAX)) for number in range(3)}
    assert [len(batch.rows) async for batch in copying.batches_of(_runs(large))] == [1, 1, 1]


async def _runs(rows: dict[Key, bytes]) -> AsyncGenerator[list[StoredRow], None]:
    for key, value in rows.items():
        yield [StoredRow(*key, value)]


# Time.


@pytest.mark.parametrize("ticks", [[FUTURE], [FUTURE - 2, FUTURE, NOW], [FUTURE, NOW - 1]])
async def test_new_timestamps_of_the_target_exceed_copied_ones(tmp_path: Path, ticks: list[int]) -> None:
    pair = new_pair()
    rows = {(partition, f"{row}"): entity(at) for partition in "pq" for row, at in enumerate(ticks)}
    await fill(pair.source.engine, {**table(SPACE), SPACE: rows})
    async with on_disk(tmp_path, pair.clock) as engine:
        await copy_all(pair._replace(target=pair.target._replace(engine=engine)))
        assert await put(engine, SPACE, "p", "new", b"") > FUTURE
    async with on_disk(tmp_path, lambda: NOW) as engine:
        assert await put(engine, SPACE, "q", "new", b"") > FUTURE


@asynccontextmanager
async def on_disk(directory: Path, clock: Callable[[], int]) -> AsyncIterator[RocksEngine]:
    engine = RocksEngine.open(directory / "store", clock)
    try:
        yield engine
    finally:
        await engine.close()


async def test_a_row_of_an_unknown_format_is_rejected() -> None:
    pair = new_pair()
    await fill(pair.source.engine, {**table(SPACE), SPACE: {("p", "r"): b"\x02"}})
    with pytest.raises(MigrationError, match="format"):
        await copy(pair.source, pair.target, SPACES, timing(pair), lambda _: None)


# What else is there stays.


@pytest.mark.parametrize("space", [COUNTERS, TABLES])
async def test_target_with_rows_is_rejected_and_unchanged(space: int) -> None:
    pair = new_pair()
    await put(pair.target.engine, space, "p", "r", b"mine")
    with pytest.raises(MigrationError, match="target is not empty"):
        await copy_all(pair)
    assert await all_rows(pair.target.engine) == {space: {("p", "r"): b"mine"}}


async def test_a_target_with_accounts_of_its_own_is_rejected() -> None:
    pair = new_pair()
    await pair.target.accounts.edit(lambda _: {"mine": StoredAccount((b"1", b"2"))})
    with pytest.raises(MigrationError, match="target is not empty"):
        await copy_all(pair)
    assert await pair.target.accounts.load() == {"mine": StoredAccount((b"1", b"2"))}


async def test_copy_of_another_source_is_not_resumed() -> None:
    pair = new_pair()
    await Journal.begin(pair.target.engine, "elsewhere")
    with pytest.raises(MigrationError, match="unfinished copy of elsewhere, not of source"):
        await copy_all(pair)


async def test_unfinished_copy_is_rejected_as_source() -> None:
    pair = new_pair()
    await Journal.begin(pair.source.engine, "elsewhere")
    with pytest.raises(MigrationError, match="source is itself an unfinished copy"):
        await copy_all(pair)


async def test_concurrent_copies_to_one_target_are_detected() -> None:
    pair = new_pair()
    first = await Journal.begin(pair.target.engine, "source")
    with pytest.raises(MigrationError, match="another lazulite copy"):
        await Journal.begin(pair.target.engine, "source")
    await copy_all(pair)
    with pytest.raises(MigrationError, match="another lazulite copy"):
        await first.record(SPACE, "p", "r", 1)
    with pytest.raises(MigrationError, match="another lazulite copy"):
        await first.end()


async def test_changed_row_ends_the_copy() -> None:
    pair = new_pair()
    await fill(pair.source.engine, {**table(SPACE), SPACE: {("p", "r"): entity(NOW)}})
    await Journal.begin(pair.target.engine, "source")
    await put(pair.target.engine, SPACE, "p", "r", entity(NOW, b"other"))
    with pytest.raises(MigrationError, match=r"another row than the source at \('p', 'r'\)"):
        await copy_all(pair)
    assert await Journal.unfinished(pair.target.engine) is not None


async def test_a_journal_of_a_newer_version_is_rejected() -> None:
    pair = new_pair()
    await put(pair.target.engine, COPIES, "copy", "copy", b'{"version": 2, "how": "else"}')
    with pytest.raises(MigrationError, match="newer"):
        await copy_all(pair)


async def test_damaged_list_of_tables_is_reported() -> None:
    pair = new_pair()
    await put(pair.source.engine, TABLES, "one", "t", b"{")
    with pytest.raises(MigrationError, match="list of tables is damaged at 't' of account 'one'"):
        await copy_all(pair)


# Trouble, and bounds.


class BusyEngine(BreakingEngine):
    """Cannot serve the first so many commits of table rows."""

    def __init__(self, inner: Engine, rejections: int) -> None:
        super().__init__(inner, 10**9, applied=True)
        self._rejections = rejections

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        if space >= FIRST_FREE_SPACE:
            self._rejections -= 1
            if self._rejections >= 0:
                raise EngineUnavailableError("busy")
        return await super().commit(space, partition, commit)


@pytest.mark.parametrize("rejections", [0, 1, len(copying.RETRY_SECONDS), len(copying.RETRY_SECONDS) + 1])
async def test_commits_to_an_unavailable_target_are_retried(rejections: int) -> None:
    pair = new_pair()
    await fill(pair.source.engine, {**table(SPACE), SPACE: {("p", "r"): entity(NOW)}})
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    busy = pair.target._replace(engine=BusyEngine(pair.target.engine, rejections))
    copied_all = copy(pair.source, busy, SPACES, Timing(pair.clock, lambda: 0.0, sleep), lambda _: None)
    if rejections > len(copying.RETRY_SECONDS):
        with pytest.raises(EngineUnavailableError, match="busy"):
            await copied_all
    else:
        await copied_all
        assert await pair.target.engine.get(SPACE, "p", "r") == entity(NOW)
    assert slept == list(copying.RETRY_SECONDS[:rejections])


class EndlessEngine(MemoryEngine):
    """A table without end, every row in a partition of its own; counts the bytes that were read of it."""

    read_bytes = 0
    row_bytes = 1 << 20

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Run, None]:
        if space != SPACE:
            async for piece in super().scan(space, ranges, limit, keys_only=keys_only):
                yield piece
            return
        for number in count():
            value = entity(NOW, bytes(self.row_bytes))
            self.read_bytes += len(value)
            yield Run([encode_key(space, f"{number:09}", "r")], [value])
            await asyncio.sleep(0)


class StuckEngine(MemoryEngine):
    """Takes nothing of tables until it is asked to; counts what wants in."""

    waiting = 0

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        if space >= FIRST_FREE_SPACE:
            self.waiting += 1
            await asyncio.Event().wait()
        return await super().commit(space, partition, commit)


@pytest.mark.parametrize("row_bytes", [10, 1 << 20])
async def test_rows_read_ahead_are_bounded(row_bytes: int) -> None:
    source, target = EndlessEngine(lambda: NOW), StuckEngine(lambda: NOW)
    source.row_bytes = row_bytes
    await fill(source, table(SPACE))
    pair = Pair(
        Endpoint("source", source, MemoryAccounts(), ContentMemory()),
        Endpoint("target", target, MemoryAccounts(), ContentMemory()),
        MonotonicClock(lambda: NOW),
    )
    copying_all = asyncio.create_task(
        copy(pair.source, pair.target, SPACES, Timing(pair.clock, lambda: 0.0), lambda _: None)
    )
    before = -1
    while before < source.read_bytes:  # Until it comes to a stop.
        before = source.read_bytes
        for _ in range(20):
            await asyncio.sleep(0)
    assert target.waiting <= in_flight.COUNT_MAX
    assert target.waiting > 1, "many partitions at once"
    assert source.read_bytes <= min(in_flight.BYTES_MAX, (in_flight.COUNT_MAX + 3) * (row_bytes + 9)) + 4 * (
        row_bytes + 9
    )
    copying_all.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying_all


async def test_progress_is_reported() -> None:
    pair = new_pair()
    rows = {(f"p{number}", "r"): entity(NOW) for number in range(5)}
    await fill(pair.source.engine, {**table(SPACE, SPACE + 1), SPACE: rows})
    reported: list[Progress] = []
    await copy(pair.source, pair.target, SPACES, timing(pair), reported.append)
    assert reported[-1] == Progress("copied", 5, None, 2, 2)


# The window.


async def test_window_reports_durable_commits_in_order_up_to_a_failure() -> None:
    on_durable: list[int] = []
    gates = [asyncio.Event() for _ in range(4)]

    async def commit(number: int) -> None:
        await gates[number].wait()
        if number == 2:
            raise Broken("killed")

    async def run(numbers: Iterable[int]) -> None:
        async with in_flight.CommitWindow[int](on_durable.append) as commits:
            for number in numbers:
                await commits.add(commit(number), 1, number)

    for number in (1, 3):
        gates[number].set()
    running = asyncio.create_task(run(range(4)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert on_durable == [], "the first is not durable"
    gates[0].set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert on_durable == [0, 1]
    gates[2].set()
    with pytest.raises(Broken):
        await running
    assert on_durable == [0, 1]


async def test_failing_block_cancels_the_commits_of_its_window() -> None:
    ended: list[bool] = []

    async def commit() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def run() -> None:
        async with in_flight.CommitWindow[int](lambda _: None) as commits:
            await commits.add(commit(), 1, 0)
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await run()
    assert ended == [True]
