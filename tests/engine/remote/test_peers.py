"""Processes that commit for each other: which is the owner, and what becomes of a commit that it does not answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from lazulite.engine.commit import PUT, Commit, CommitProcedure, Decision
from lazulite.engine.contract import EngineError, EngineUnavailableError, SpaceDroppedError
from lazulite.engine.remote import messages
from lazulite.engine.remote import peers as module
from lazulite.engine.remote.channel import Channel
from lazulite.engine.remote.codec import Codec, Encoding
from lazulite.engine.remote.peers import DeclinedError, Peer, Peers

T = TypeVar("T")
SECONDS_MAX = 60
KEYS = [(1, f"p{number}") for number in range(200)]


class RejectedError(Exception):
    """A commit's own."""


def reject(_: object) -> Commit[int]:
    def decide(*_: object) -> Decision[int]:
        raise RejectedError

    return Commit(["r"], decide)


REJECT = CommitProcedure("reject", lambda _: None, reject)
BROKEN = CommitProcedure[int]("broken", lambda _: None, lambda _: 1 / 0)  # type: ignore[arg-type, return-value]  # a defect
UNKNOWN = CommitProcedure[int]("unknown", lambda _: None, reject)
CODEC = Codec([REJECT, BROKEN], [Encoding(RejectedError, lambda _: None, lambda _: RejectedError())])


class Process:
    """A process without an engine: it decides on absent rows, and notes what it has committed."""

    def __init__(self, directory: Path) -> None:
        self.peers = Peers(directory, CODEC, self.commit, self._complain)
        self.committed: list[str] = []
        self.complaints: list[str] = []
        self.error: Exception | None = None
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        self.committed.append(partition)
        await self.goes_on.wait()
        if self.error is not None:
            raise self.error
        decision = commit.decide([None] * len(commit.rows), space)
        assert isinstance(decision, Decision)
        result: T = decision.result
        return result

    def _complain(self, line: str) -> None:
        self.complaints.append(line)

    def to(self, other: "Process") -> Peer:
        return self.peers._peers[other.peers._name]

    async def put(self, other: "Process", seconds: float = SECONDS_MAX) -> int:
        """Have another process put a row; its engine gives the space for a timestamp."""
        return await self.to(other).commit(7, "p", PUT, {"r": b"x"}, seconds)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for.
            await asyncio.sleep(0)


@asynccontextmanager
async def processes(directory: Path, count: int) -> AsyncIterator[list[Process]]:
    """Some that know each other. They look for others when a test has them look, and not in between."""
    found = [Process(directory) for _ in range(count)]
    for process in found:
        await process.peers.start()
    for process in found:
        await process.peers.discover()
        await until(lambda process=process: len(live(process)) == count - 1)  # type: ignore[misc]  # of a default
    try:
        yield found
    finally:
        for process in found:
            process.goes_on.set()
            process.peers.leave()
        await asyncio.gather(*(process.peers.close() for process in found))


def live(process: Process) -> list[Peer]:
    return [peer for peer in process.peers._peers.values() if peer.live]


def owners(process: Process) -> list[str]:
    """The owner of each key, by its name."""
    found = [process.peers.owner(*key) for key in KEYS]
    return [process.peers._name if owner is None else owner.name for owner in found]


@pytest.fixture(autouse=True)
def _seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVERY_SECONDS", 3600.0)


async def test_all_processes_choose_the_same_owner(tmp_path: Path) -> None:
    async with processes(tmp_path, 4) as found:
        first, *others = map(owners, found)
        assert others == [first] * 3
        shares = [first.count(name) for name in set(first)]
        assert len(shares) == 4
        assert min(shares) > len(KEYS) / 10


async def test_only_the_partitions_of_a_process_that_is_gone_move(tmp_path: Path) -> None:
    async with processes(tmp_path, 4) as (one, *_, last):
        before = owners(one)
        last.peers.leave()
        await last.peers.close()
        await until(lambda: len(live(one)) == 2)
        gone = last.peers._name
        assert [old for old, new in zip(before, owners(one), strict=True) if old != new] == [gone] * before.count(gone)
        assert gone not in one.peers._names()


async def test_the_owner_commits_and_its_result_is_returned(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (one, other):
        assert await one.put(other) == 7
        assert (one.committed, other.committed) == ([], ["p"])


@pytest.mark.parametrize("error", [EngineError, EngineUnavailableError, SpaceDroppedError])
async def test_errors_of_the_owner_are_raised(tmp_path: Path, error: type[EngineError]) -> None:
    async with processes(tmp_path, 2) as (one, other):
        other.error = error("why")
        with pytest.raises(error, match="why") as raised:
            await one.put(other)
        assert type(raised.value) is error


async def test_a_rejection_by_the_owner_is_raised(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (one, other):
        with pytest.raises(RejectedError):
            await one.to(other).commit(1, "p", REJECT, None, SECONDS_MAX)


async def test_a_defect_fails_one_commit(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (one, other):
        with pytest.raises(EngineError, match="ZeroDivisionError"):
            await one.to(other).commit(1, "p", BROKEN, None, SECONDS_MAX)
        assert await one.put(other) == 7
        assert other.complaints


@pytest.mark.parametrize(("leaving", "procedure"), [(True, PUT), (False, UNKNOWN)])
async def test_what_the_owner_declines_it_has_not_begun(
    tmp_path: Path, leaving: bool, procedure: CommitProcedure[Any]
) -> None:
    async with processes(tmp_path, 2) as (one, other):
        other.peers.leaving = leaving
        with pytest.raises(DeclinedError):
            await one.to(other).commit(1, "p", procedure, {"r": b"x"}, SECONDS_MAX)
        assert other.committed == []


async def test_a_commit_without_an_answer_has_an_unknown_outcome(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (one, other):
        other.goes_on.clear()
        with pytest.raises(EngineUnavailableError, match="does not answer"):
            await one.put(other, 0.001)
        lost = asyncio.create_task(one.put(other))
        await until(lambda: len(other.committed) == 2)
        for session in other.peers.sessions:
            assert session.channel._transport is not None
            session.channel._transport.abort()
        with pytest.raises(EngineUnavailableError, match="is gone"):
            await lost
        assert owners(one) == [one.peers._name] * len(KEYS)


async def test_the_owner_begins_nothing_after_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with processes(tmp_path, 2) as (one, other):
        now = time.monotonic()
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
        sent = asyncio.create_task(one.put(other))
        await asyncio.sleep(0)
        later = now + SECONDS_MAX + 1
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: later))
        with pytest.raises(DeclinedError):
            await sent
        assert other.committed == []


async def test_a_silent_process_is_no_owner_until_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with processes(tmp_path, 2) as (one, other):
        [session] = other.peers.sessions
        received = session.channel._received
        kept: list[Any] = []
        monkeypatch.setattr(session.channel, "_received", kept.append)
        await one.peers.discover()
        await until(lambda: kept)
        assert set(owners(one)) == {one.peers._name, other.peers._name}, "one ping in flight is no silence"
        await one.peers.discover()
        assert owners(one) == [one.peers._name] * len(KEYS)
        monkeypatch.setattr(session.channel, "_received", received)
        for message in kept:
            received(message)
        await until(lambda: live(one))
        assert set(owners(one)) == {one.peers._name, other.peers._name}


async def test_a_process_that_has_not_answered_yet_is_no_owner(tmp_path: Path) -> None:
    async with processes(tmp_path, 1) as [one]:
        silent = Channel(lambda _: None, lambda: None)
        server = await asyncio.get_running_loop().create_unix_server(lambda: silent, path=str(tmp_path / "silent"))
        await one.peers.discover()
        assert one.peers._peers.keys() == {"silent"}
        assert owners(one) == [one.peers._name] * len(KEYS)
        server.close()
        silent.close()
        await silent.closed()


async def test_a_process_that_leaves_answers_what_it_has_got(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (one, other):
        other.goes_on.clear()
        taken = [asyncio.create_task(one.put(other)) for _ in range(3)]
        await until(lambda: len(other.committed) == 3)
        other.peers.leave()
        await until(lambda: not live(one))
        one.to(other)._received((messages.PONG, 0))
        assert not live(one), "an old ping was answered"
        with pytest.raises(DeclinedError):
            await one.put(other)
        other.goes_on.set()
        await other.peers.close()
        assert [await each for each in taken] == [7, 7, 7]
        assert one.peers._peers == {}


async def test_one_that_connects_to_a_process_that_leaves_is_told(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (one, other):
        other.peers.leaving = True
        one.to(other).channel.close()
        await until(lambda: not one.peers._peers)
        await one.peers.discover()
        await until(lambda: not one.peers._peers)


async def test_the_socket_of_a_process_that_ended_is_removed(tmp_path: Path) -> None:
    dead, unready = tmp_path / "dead", tmp_path / ".unready"
    for path in (dead, unready):
        server = await asyncio.get_running_loop().create_unix_server(asyncio.Protocol, path=str(path))
        server.close()
        await server.wait_closed()
        if not path.exists():  # A newer Python removes it.
            path.touch()
    async with processes(tmp_path, 1) as [one]:
        await one.peers.discover()
        assert not dead.exists()
        assert unready.exists()
        assert one.peers._peers == {}


async def test_no_socket_can_be_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await Process(tmp_path / "missing").peers.start()
