"""What the primary of a store owes to several workers; that each of them has an `Engine` is test_contract's."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar, Self

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineError, EngineUnavailableError, Key, KeyRange
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Channel, Message
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.messages import SLICES_AHEAD, Procedure
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.snapshot import StoreSnapshot
from lazulite.protocol.clock import system_clock
from tests.engine.rocksdb.failing import QUICK, Failpoints, writable_again

from .over_channel import ByNumber, connect, join, replicated, serve

Parts = tuple[EngineServer, ByNumber]
WATCHED, FREE = 3, 2000
ALL = KeyRange(("", ""), None)
ROW = ("p", "r")


def put(value: bytes) -> "Put":
    return Put(value)


class Put:
    def __init__(self, value: bytes) -> None:
        self._value = value

    def __call__(self, current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        return {"r": self._value}


class Slow:
    """A worker that says only what a test has it say; `heard` is what it received."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.killed = asyncio.Event()
        self.channel = Channel(self._hear, lambda: None)
        self._news = asyncio.Event()

    all: ClassVar["list[Slow]"] = []

    @classmethod
    async def of(cls, server: EngineServer) -> Self:
        worker = cls()
        cls.all.append(worker)
        await join(worker.channel, server.open_channel(worker.killed.set))
        worker.channel.post((messages.CHECK, 0))
        await worker.received(messages.DONE)
        return worker

    def _hear(self, message: Message) -> None:
        self.heard.append(message)
        self._news.set()

    async def received(self, kind: int) -> Message:
        """Wait until it received something of a kind; return the last of that."""
        await self.received_times(kind, 1)
        return self.of_kind(kind)[-1]

    async def received_times(self, kind: int, times: int) -> None:
        while len(self.of_kind(kind)) < times:
            self._news.clear()
            await self._news.wait()

    def of_kind(self, kind: int) -> list[Message]:
        return [message for message in self.heard if message[0] == kind]


class Memory:
    """A cache that records its invalidations."""

    def __init__(self) -> None:
        self.held: set[Key] = set()
        self.begun: list[Key] = []

    def begin_invalidation(self, key: Key) -> None:
        self.begun.append(key)
        self.held.add(key)

    def end_invalidation(self, key: Key) -> None:
        self.held.discard(key)


@pytest.fixture(name="engine")
async def _engine() -> AsyncIterator[RocksEngine]:
    engine = RocksEngine.open(None, system_clock)
    yield engine
    await engine.close()


@pytest.fixture(name="parts")
async def _parts(engine: RocksEngine) -> AsyncIterator[Parts]:
    parts = serve(engine, [WATCHED])
    yield parts
    await parts[0].close()


@pytest.fixture(autouse=True)
async def _all_end() -> AsyncIterator[None]:
    yield
    while Slow.all:
        channel = Slow.all.pop().channel
        channel.close()
        await channel.closed()


async def watching(parts: Parts) -> tuple[RemoteEngine, Memory]:
    remote, memory = await connect(*parts), Memory()
    remote.invalidations = {WATCHED: [memory]}
    return remote, memory


async def test_a_watched_row_changes_when_all_workers_hold_it_and_not_before(engine: RocksEngine, parts: Parts) -> None:
    slow = await Slow.of(parts[0])
    writer, memory = await watching(parts)
    change = asyncio.create_task(writer.commit(WATCHED, "p", changing(["r"], put(b"new"))))
    _, number, space, keys = await slow.received(messages.INVALIDATE)
    assert (space, keys) == (WATCHED, [ROW])
    for _ in range(3):
        await writer.check_writable()  # Whatever else is committed meanwhile, this is not.
    assert (await engine.get(WATCHED, *ROW), change.done(), memory.held) == (None, False, {ROW})
    assert slow.of_kind(messages.END_INVALIDATION) == []
    slow.channel.post((messages.ACKNOWLEDGE, number))
    await change
    assert await engine.get(WATCHED, *ROW) == b"new"
    assert await slow.received(messages.END_INVALIDATION) == (messages.END_INVALIDATION, WATCHED, [ROW])
    await writer.check_writable()
    assert memory.held == set()
    await writer.close()


async def test_rows_of_other_spaces_are_nobodys_business(parts: Parts) -> None:
    slow = await Slow.of(parts[0])
    writer, _ = await watching(parts)
    await writer.commit(FREE, "p", changing(["r"], put(b"new")))
    assert slow.of_kind(messages.INVALIDATE) == []
    await writer.close()


async def test_a_rejected_change_is_over_too(parts: Parts) -> None:
    writer, memory = await watching(parts)

    def reject(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        raise KeyError

    with pytest.raises(KeyError):
        await writer.commit(WATCHED, "p", changing(["r"], reject))
    await writer.check_writable()
    assert memory.held == set()
    await writer.close()


async def test_a_worker_that_does_not_say_that_it_holds_is_killed_and_only_then_it_goes_on(
    engine: RocksEngine,
) -> None:
    codec = ByNumber()
    server = EngineServer(engine, codec, [WATCHED], print, acknowledge_seconds=0)
    slow = await Slow.of(server)
    writer, _ = await watching((server, codec))
    change = asyncio.create_task(writer.commit(WATCHED, "p", changing(["r"], put(b"new"))))
    await slow.killed.wait()
    for _ in range(3):
        await writer.check_writable()
    assert (await engine.get(WATCHED, *ROW), change.done()) == (None, False)
    slow.channel.close()
    await change
    await writer.close()
    await server.close()


async def test_a_worker_with_a_replica_is_known_before_it_reads(tmp_path: Path) -> None:
    engine, replica = replicated(tmp_path, system_clock)
    parts = serve(engine, [WATCHED])
    reader, memory = await watching(parts)
    await reader.use(replica)
    assert reader.get_now(WATCHED, *ROW) is None
    writer = await connect(*parts)
    await writer.commit(WATCHED, "p", changing(["r"], put(b"new")))
    assert memory.begun == [ROW]
    assert reader.get_now(WATCHED, *ROW) == b"new"
    for each in (reader, writer, *parts[:1], engine):
        await each.close()


async def test_the_primary_is_asked_while_the_replica_cannot_tell(tmp_path: Path) -> None:
    engine, replica = replicated(tmp_path, system_clock)
    parts = serve(engine)
    reader = await connect(*parts)
    await reader.use(replica)
    await reader.commit(FREE, "p", changing(["r"], put(b"new")))
    for lives, counts in ((True, (2, 0)), (False, (2, 2)), (True, (4, 2))):
        replica._primary_lives = lambda lives=lives: lives  # type: ignore[misc]  # of a default
        assert await reader.get(FREE, "p", "r") == b"new"
        assert [part.values async for part in reader.scan(FREE, [ALL])] == [[b"new"]]
        assert tuple(reader.counters().values()) == counts
    for each in (reader, *parts[:1], engine):
        await each.close()


async def test_a_later_worker_is_reported_what_is_held(parts: Parts) -> None:
    slow = await Slow.of(parts[0])
    writer, _ = await watching(parts)
    change = asyncio.create_task(writer.commit(WATCHED, "p", changing(["r"], put(b"new"))))
    _, number, _, _ = await slow.received(messages.INVALIDATE)
    late = await Slow.of(parts[0])
    assert (await late.received(messages.INVALIDATE))[2:] == (WATCHED, [ROW])
    slow.channel.post((messages.ACKNOWLEDGE, number))
    await change
    await late.received(messages.END_INVALIDATION)
    await writer.close()


async def test_who_has_asked_nothing_is_not_waited_for(parts: Parts) -> None:
    starting = Slow()
    Slow.all.append(starting)
    await join(starting.channel, parts[0].open_channel(starting.killed.set))
    writer, _ = await watching(parts)
    await writer.commit(WATCHED, "p", changing(["r"], put(b"new")))
    assert starting.heard == []
    await writer.close()


async def test_a_row_in_doubt_stays_held_until_a_change_of_it_succeeds(tmp_path: Path) -> None:
    failpoints = Failpoints()
    engine = RocksEngine.open(tmp_path / "store", system_clock, QUICK, failpoints=failpoints)
    parts = serve(engine, [WATCHED])
    writer, memory = await watching(parts)
    failpoints.fail("before_sync", "IO error: No space left on device")
    with pytest.raises(EngineUnavailableError):
        await writer.commit(WATCHED, "p", changing(["r"], put(b"new")))
    failpoints.armed.clear()
    await writable_again(writer)
    assert memory.held == {ROW}
    late = await Slow.of(parts[0])
    assert (await late.received(messages.INVALIDATE))[2:] == (WATCHED, [ROW])
    late.channel.close()
    await writer.commit(WATCHED, "p", changing(["r"], put(b"newer")))
    await writer.check_writable()
    assert memory.held == set()
    await writer.close()
    await parts[0].close()
    await engine.close()


async def filled(engine: RocksEngine) -> None:
    rows = [f"{number:04}" for number in range(2000)]
    await engine.commit(FREE, "p", changing(rows, lambda _, __: dict.fromkeys(rows, b"x")))


async def test_a_scan_is_only_so_far_ahead_of_its_reader(engine: RocksEngine, parts: Parts) -> None:
    await filled(engine)
    slow = await Slow.of(parts[0])
    slow.channel.post((messages.SCAN, 1, FREE, [(("", ""), None)], None, False))
    for used in range(3):
        await slow.received_times(messages.SLICE, SLICES_AHEAD + used)
        for _ in range(20):
            await engine.check_writable()
        assert len(slow.of_kind(messages.SLICE)) == SLICES_AHEAD + used
        slow.channel.post((messages.MORE, 1))
    slow.channel.close()


async def test_scans_give_others_their_turns_and_short_calls_are_noted(engine: RocksEngine) -> None:
    scheduled: list[Coroutine[object, None, None]] = []
    passed: list[None] = []

    def schedule(work: Coroutine[object, None, None]) -> Coroutine[object, None, None]:
        scheduled.append(work)
        return work

    codec = ByNumber()
    server = EngineServer(engine, codec, (), print, schedule_fairly=schedule, passed=lambda: passed.append(None))
    remote = await connect(server, codec)
    await remote.commit(FREE, "p", changing(["r"], put(b"x")))
    await remote.get(FREE, "p", "r")
    assert (len(passed), len(scheduled)) == (2, 0)
    async for _ in remote.scan(FREE, [ALL]):
        pass
    assert (len(passed), len(scheduled)) == (2, 1)
    await remote.close()
    await server.close()


@pytest.mark.parametrize("way", ["the reader stops", "the worker is gone"])
async def test_a_scan_that_nobody_reads_lets_go_of_the_store(engine: RocksEngine, parts: Parts, way: str) -> None:
    await filled(engine)
    reader = await connect(*parts)
    scan = reader.scan(FREE, [ALL])
    await anext(scan)
    assert engine._cursors
    if way == "the reader stops":
        await scan.aclose()
    else:
        reader.channel.close()
    other = await connect(*parts)
    while engine._cursors:
        await other.check_writable()
    await other.close()
    await scan.aclose()
    await reader.close()


async def test_an_owner_that_is_gone_rejects_what_is_in_flight(engine: RocksEngine, parts: Parts) -> None:
    await filled(engine)
    lost: list[None] = []
    orphan = RemoteEngine(parts[1], system_clock, lambda: lost.append(None))
    silent = Channel(lambda _: None, lambda: None)
    await join(orphan.channel, silent)
    calls = [asyncio.create_task(orphan.get(1, "p", "r")), asyncio.create_task(orphan.check_writable())]
    scan = asyncio.create_task(anext(orphan.scan(FREE, [ALL])))
    await asyncio.sleep(0)
    silent.close()
    for call in (*calls, scan):
        with pytest.raises(EngineUnavailableError):
            await call
    assert lost == [None]
    with pytest.raises(EngineUnavailableError):
        await orphan.get(1, "p", "r")
    await orphan.close()
    await silent.closed()


async def test_a_defect_is_one_calls_own_and_reported_without_its_text(engine: RocksEngine) -> None:
    reported: list[str] = []

    class Picky(ByNumber):
        def encode_rejection(self, rejection: Exception) -> int:
            raise rejection

    codec = Picky()
    server = EngineServer(engine, codec, [], reported.append)
    remote = await connect(server, codec)

    def broken(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        raise ZeroDivisionError("a secret")

    with pytest.raises(EngineError, match="ZeroDivisionError"):
        await remote.commit(FREE, "p", changing(["r"], broken))
    assert reported == ["a call of a worker failed: ZeroDivisionError"]
    assert await remote.get(FREE, "p", "r") is None
    await remote.close()
    await server.close()


async def test_reads_wait_for_a_drop_that_has_begun(engine: RocksEngine, parts: Parts) -> None:
    remote = await connect(*parts)
    await remote.commit(FREE, "p", changing(["r"], put(b"x")))
    _, value = await asyncio.gather(remote.drop(FREE), remote.get(FREE, "p", "r"))
    assert value is None or value == b"x"
    assert await remote.get(FREE, "p", "r") is None
    await remote.close()


async def test_a_procedure_of_the_primary_returns_or_raises_to_the_worker_that_calls_it() -> None:
    async def double(number: int) -> int:
        return 2 * number

    async def reject() -> None:
        raise LookupError("no")

    async def fail() -> None:
        raise EngineUnavailableError("full")

    engine, codec = RocksEngine.open(None, system_clock), ByNumber()
    procedures: dict[str, Procedure] = {"double": double, "reject": reject, "fail": fail}
    server = EngineServer(engine, codec, (), print, procedures=procedures)
    worker = await connect(server, codec)
    assert await asyncio.gather(*(worker.call("double", number) for number in range(5))) == [0, 2, 4, 6, 8]
    with pytest.raises(LookupError, match="no"):
        await worker.call("reject")
    with pytest.raises(EngineUnavailableError, match="full"):
        await worker.call("fail")
    with pytest.raises(KeyError):
        await worker.call("unknown")
    await worker.close()
    await server.close()
    await engine.close()


async def test_a_primary_without_a_store_has_procedures_alone() -> None:
    async def double(number: int) -> int:
        return 2 * number

    codec = ByNumber()
    server = EngineServer(None, codec, (), print, procedures={"double": double})
    worker = await connect(server, codec)
    assert await worker.call("double", 4) == 8
    for call in (worker.get(FREE, "p", "r"), worker.check_writable(), worker.drop(FREE)):
        with pytest.raises(EngineUnavailableError, match="this process has no store"):
            await call
    async with server.invalidated(FREE, [("p", "r")]):
        pass
    await worker.close()
    await server.close()


async def test_snapshots_are_released_by_their_worker_and_with_it() -> None:
    open_snapshots: set[int] = set()
    released = asyncio.Event()

    class Watching(RocksEngine):
        @asynccontextmanager
        async def snapshot(self) -> AsyncIterator[StoreSnapshot]:
            async with super().snapshot() as snapshot:
                open_snapshots.add(id(snapshot))
                yield snapshot
                open_snapshots.discard(id(snapshot))
                released.set()

    engine = Watching.open(None, system_clock)
    server, codec = serve(engine)
    worker = await connect(server, codec)
    async with worker.snapshot() as snapshot:
        assert await snapshot.keys(FREE, ALL, 1) == []
        assert len(open_snapshots) == 1
    await worker.check_writable()
    assert not open_snapshots
    interrupted = asyncio.ensure_future(worker.snapshot().__aenter__())
    await asyncio.sleep(0)
    interrupted.cancel()
    await worker.check_writable()
    assert not open_snapshots, "a caller that was cancelled releases what the primary opens for it"
    await worker.snapshot().__aenter__()
    assert len(open_snapshots) == 1
    released.clear()
    worker.channel.close()
    await released.wait()
    await server.close()
    await engine.close()
