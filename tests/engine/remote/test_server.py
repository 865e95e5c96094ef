"""What the owner of a store owes to several front ends; that each of them has an `Engine` is test_contract's."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import pytest

from lazulite.engine.contract import EngineError, EngineUnavailableError, Key, KeyRange
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Link, Message
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.messages import SLICES_AHEAD
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from tests.engine.rocksdb.failing import QUICK, Failpoints, writable_again

from .bordered import ByNumber, connect, join, serve

Parts = tuple[EngineServer, ByNumber]
WATCHED, FREE = 3, 2000
ALL = KeyRange(("", ""), None)
ROW = ("p", "r")


def put(value: bytes) -> "Put":
    return Put(value)


class Put:
    def __init__(self, value: bytes) -> None:
        self._value = value

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        return {"r": self._value}


class Slow:
    """A front end that says only what a test has it say; `heard` is what it was told."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.killed = asyncio.Event()
        self.link = Link(self._hear, lambda: None)
        self._news = asyncio.Event()

    all: ClassVar["list[Slow]"] = []

    @classmethod
    async def of(cls, server: EngineServer) -> Self:
        front_end = cls()
        cls.all.append(front_end)
        await join(front_end.link, server.link(front_end.killed.set))
        front_end.link.post((messages.CHECK, 0))
        await front_end.told(messages.DONE)
        return front_end

    def _hear(self, message: Message) -> None:
        self.heard.append(message)
        self._news.set()

    async def told(self, kind: int) -> Message:
        """Wait until it is told something of a kind; return the last of that."""
        await self.told_times(kind, 1)
        return self.of_kind(kind)[-1]

    async def told_times(self, kind: int, times: int) -> None:
        while len(self.of_kind(kind)) < times:
            self._news.clear()
            await self._news.wait()

    def of_kind(self, kind: int) -> list[Message]:
        return [message for message in self.heard if message[0] == kind]


class Memory:
    """A watcher that notes what it is told."""

    def __init__(self) -> None:
        self.held: set[Key] = set()

    def hold(self, key: Key) -> None:
        self.held.add(key)

    def release(self, key: Key) -> None:
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
        link = Slow.all.pop().link
        link.close()
        await link.closed()


async def watching(parts: Parts) -> tuple[RemoteEngine, Memory]:
    remote, memory = await connect(*parts), Memory()
    remote.watchers = {WATCHED: memory}
    return remote, memory


async def test_a_watched_row_changes_when_all_front_ends_hold_it_and_not_before(
    engine: RocksEngine, parts: Parts
) -> None:
    slow = await Slow.of(parts[0])
    writer, memory = await watching(parts)
    change = asyncio.create_task(writer.commit(WATCHED, "p", ["r"], put(b"new")))
    _, number, space, keys = await slow.told(messages.HOLD)
    assert (space, keys) == (WATCHED, [ROW])
    for _ in range(3):
        await writer.check_writable()  # Whatever else is committed meanwhile, this is not.
    assert (await engine.get(WATCHED, *ROW), change.done(), memory.held) == (None, False, {ROW})
    assert slow.of_kind(messages.RELEASE) == []
    slow.link.post((messages.HELD, number))
    await change
    assert await engine.get(WATCHED, *ROW) == b"new"
    assert await slow.told(messages.RELEASE) == (messages.RELEASE, WATCHED, [ROW])
    await writer.check_writable()
    assert memory.held == set()
    await writer.close()


async def test_rows_of_other_spaces_are_nobodys_business(parts: Parts) -> None:
    slow = await Slow.of(parts[0])
    writer, _ = await watching(parts)
    await writer.commit(FREE, "p", ["r"], put(b"new"))
    assert slow.of_kind(messages.HOLD) == []
    await writer.close()


async def test_a_refused_change_is_over_too(parts: Parts) -> None:
    writer, memory = await watching(parts)

    def refuse(current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        raise KeyError

    with pytest.raises(KeyError):
        await writer.commit(WATCHED, "p", ["r"], refuse)
    await writer.check_writable()
    assert memory.held == set()
    await writer.close()


async def test_a_front_end_that_does_not_say_that_it_holds_is_killed_and_only_then_it_goes_on(
    engine: RocksEngine,
) -> None:
    wording = ByNumber()
    server = EngineServer(engine, wording, [WATCHED], print, held_seconds=0)
    slow = await Slow.of(server)
    writer, _ = await watching((server, wording))
    change = asyncio.create_task(writer.commit(WATCHED, "p", ["r"], put(b"new")))
    await slow.killed.wait()
    for _ in range(3):
        await writer.check_writable()
    assert (await engine.get(WATCHED, *ROW), change.done()) == (None, False)
    slow.link.close()
    await change
    await writer.close()
    await server.close()


async def test_a_later_front_end_is_told_what_is_held(parts: Parts) -> None:
    slow = await Slow.of(parts[0])
    writer, _ = await watching(parts)
    change = asyncio.create_task(writer.commit(WATCHED, "p", ["r"], put(b"new")))
    _, number, _, _ = await slow.told(messages.HOLD)
    late = await Slow.of(parts[0])
    assert (await late.told(messages.HOLD))[2:] == (WATCHED, [ROW])
    slow.link.post((messages.HELD, number))
    await change
    await late.told(messages.RELEASE)
    await writer.close()


async def test_who_has_asked_nothing_is_not_waited_for(parts: Parts) -> None:
    starting = Slow()
    Slow.all.append(starting)
    await join(starting.link, parts[0].link(starting.killed.set))
    writer, _ = await watching(parts)
    await writer.commit(WATCHED, "p", ["r"], put(b"new"))
    assert starting.heard == []
    await writer.close()


async def test_a_row_in_doubt_stays_held_until_a_change_of_it_succeeds(tmp_path: Path) -> None:
    failpoints = Failpoints()
    engine = RocksEngine.open(tmp_path / "store", system_clock, QUICK, failpoints=failpoints)
    parts = serve(engine, [WATCHED])
    writer, memory = await watching(parts)
    failpoints.fail("before_sync", "IO error: No space left on device")
    with pytest.raises(EngineUnavailableError):
        await writer.commit(WATCHED, "p", ["r"], put(b"new"))
    failpoints.armed.clear()
    await writable_again(writer)
    assert memory.held == {ROW}
    late = await Slow.of(parts[0])
    assert (await late.told(messages.HOLD))[2:] == (WATCHED, [ROW])
    late.link.close()
    await writer.commit(WATCHED, "p", ["r"], put(b"newer"))
    await writer.check_writable()
    assert memory.held == set()
    await writer.close()
    await parts[0].close()
    await engine.close()


async def filled(engine: RocksEngine) -> None:
    rows = [f"{number:04}" for number in range(2000)]
    await engine.commit(FREE, "p", rows, lambda _, __: dict.fromkeys(rows, b"x"))


async def test_a_scan_is_only_so_far_ahead_of_its_reader(engine: RocksEngine, parts: Parts) -> None:
    await filled(engine)
    slow = await Slow.of(parts[0])
    slow.link.post((messages.SCAN, 1, FREE, [(("", ""), None)], None))
    for used in range(3):
        await slow.told_times(messages.SLICE, SLICES_AHEAD + used)
        for _ in range(20):
            await engine.check_writable()
        assert len(slow.of_kind(messages.SLICE)) == SLICES_AHEAD + used
        slow.link.post((messages.MORE, 1))
    slow.link.close()


async def test_scans_give_others_their_turns_and_short_calls_are_noted(engine: RocksEngine) -> None:
    paced: list[Coroutine[object, None, None]] = []
    passed: list[None] = []

    def pace(work: Coroutine[object, None, None]) -> Coroutine[object, None, None]:
        paced.append(work)
        return work

    wording = ByNumber()
    server = EngineServer(engine, wording, (), print, paced=pace, passed=lambda: passed.append(None))
    remote = await connect(server, wording)
    await remote.commit(FREE, "p", ["r"], put(b"x"))
    await remote.get(FREE, "p", "r")
    assert (len(passed), len(paced)) == (2, 0)
    async for _ in remote.scan(FREE, [ALL]):
        pass
    assert (len(passed), len(paced)) == (2, 1)
    await remote.close()
    await server.close()


@pytest.mark.parametrize("way", ["the reader stops", "the front end is gone"])
async def test_a_scan_that_nobody_reads_lets_go_of_the_store(engine: RocksEngine, parts: Parts, way: str) -> None:
    await filled(engine)
    reader = await connect(*parts)
    scan = reader.scan(FREE, [ALL])
    await anext(scan)
    assert engine._cursors
    if way == "the reader stops":
        await scan.aclose()
    else:
        reader.link.close()
    other = await connect(*parts)
    while engine._cursors:
        await other.check_writable()
    await other.close()
    await scan.aclose()
    await reader.close()


async def test_an_owner_that_is_gone_refuses_what_is_in_flight(engine: RocksEngine, parts: Parts) -> None:
    await filled(engine)
    lost: list[None] = []
    orphan = RemoteEngine(parts[1], lambda: lost.append(None))
    silent = Link(lambda _: None, lambda: None)
    await join(orphan.link, silent)
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


async def test_a_defect_is_one_calls_own_and_told_without_its_text(engine: RocksEngine) -> None:
    told: list[str] = []

    class Picky(ByNumber):
        def tell_refusal(self, refusal: Exception) -> int:
            raise refusal

    wording = Picky()
    server = EngineServer(engine, wording, [], told.append)
    remote = await connect(server, wording)

    def broken(current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        raise ZeroDivisionError("a secret")

    with pytest.raises(EngineError, match="ZeroDivisionError"):
        await remote.commit(FREE, "p", ["r"], broken)
    assert told == ["a call of a front end failed: ZeroDivisionError"]
    assert await remote.get(FREE, "p", "r") is None
    await remote.close()
    await server.close()


async def test_reads_wait_for_a_drop_that_has_begun(engine: RocksEngine, parts: Parts) -> None:
    remote = await connect(*parts)
    await remote.commit(FREE, "p", ["r"], put(b"x"))
    _, value = await asyncio.gather(remote.drop(FREE), remote.get(FREE, "p", "r"))
    assert value is None or value == b"x"
    assert await remote.get(FREE, "p", "r") is None
    await remote.close()
