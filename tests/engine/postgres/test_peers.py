"""Commits to contended partitions that another process makes: what it does, and what becomes of them without it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from lazulite.engine.commit import Commit, Expect, changing, put_rows
from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError
from lazulite.engine.postgres.contention import Contention
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.remote import peers as peers_module
from lazulite.engine.remote.peers import Peer, Peers
from tests.engine.postgres.conftest import OURS, SCRIPTS, Open, by_statements, execute, execute_on_nodes
from tests.engine.postgres.load import SPACE, Load, insert
from tests.engine.postgres.write_if import RejectedError, WriteIf
from tests.engine.remote.over_channel import ByNumber
from tests.postgres.server import SECONDS_MAX

T = TypeVar("T")
LOCKED = f"{OURS} AND wait_event_type = 'Lock'"


class Joined:
    """Engines in this process that know each other. Commits cross as numbers, so that they may be any functions."""

    def __init__(self, engines: Sequence[PostgresEngine], codec: ByNumber) -> None:
        self.engines = engines
        self._codec = codec

    def crossing(self, commit: Commit[T]) -> Commit[T]:
        return replace(commit, procedure=self._codec.procedure, argument=commit)

    def forwarded(self) -> list[float]:
        return [engine.counters()["forwarded_rows_total"] for engine in self.engines]


def peers_of(engine: PostgresEngine) -> Peers:
    assert engine._peers is not None
    return engine._peers


def contend(engine: PostgresEngine, partition: bytes = b"p", space: int = 1) -> None:
    assert engine._components is not None
    for _ in range(100):
        engine._components.contention.note_overtaken((space, partition), 0)


def point_to(engine: PostgresEngine, other: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an engine take another one for the owner of all partitions."""
    peer = peers_of(engine)._peers[peers_of(other)._name]
    monkeypatch.setattr(peers_of(engine), "owner", lambda *_: peer)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for.
            await asyncio.sleep(0.001)


async def until_live(engine: PostgresEngine, count: int) -> None:
    """Look until so many others answer."""
    async with asyncio.timeout(SECONDS_MAX):
        while sum(peer.live for peer in peers_of(engine)._peers.values()) != count:
            await peers_of(engine).discover()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def joined(
    settings: PostgresSettings, directory: Path, count: int, *, scripts: bool = False
) -> AsyncIterator[Joined]:
    codec = ByNumber()
    own = replace(settings, peers=directory, scripts=scripts)
    engines = [PostgresEngine(own, lambda number=number: 10**15 + number, codec=codec) for number in range(count)]  # type: ignore[misc]  # of a default
    try:
        for engine in engines:
            await engine.start()
        for engine in engines:
            await until_live(engine, count - 1)
        yield Joined(engines, codec)
    finally:
        await asyncio.gather(*(engine.close() for engine in engines))


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_the_owner_makes_the_commits_of_a_contended_partition(
    settings: PostgresSettings, tmp_path: Path, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joined(settings, tmp_path, 2, scripts=scripts) as group:
        one, other = group.engines
        point_to(one, other, monkeypatch)
        cold = await one.commit(1, "p", group.crossing(put_rows({"r": b"x"})))
        assert group.forwarded() == [0, 0]
        contend(one)
        by_owner = await one.commit(1, "p", group.crossing(put_rows({"r": b"y", "s": b"y"})))
        await one.commit(1, "q", group.crossing(put_rows({"r": b"x"})))
        await one.commit(1, "p", replace(put_rows({"t": b"x"}), procedure=None))
        assert group.forwarded() == [2, 0]
        assert by_owner > cold
        assert await one.get(1, "p", "r") == b"y"


async def test_two_processes_that_take_each_other_for_the_owner_commit(
    settings: PostgresSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joined(settings, tmp_path, 2) as group:
        for engine, other in (group.engines, group.engines[::-1]):
            point_to(engine, other, monkeypatch)
            contend(engine)
        async with asyncio.timeout(SECONDS_MAX):
            for engine in [*group.engines] * 3:
                await engine.commit(1, "p", group.crossing(put_rows({"r": b"x"})))
        assert group.forwarded() == [3, 3]


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_preconditions_hold_at_the_owner(
    settings: PostgresSettings, tmp_path: Path, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joined(settings, tmp_path, 2, scripts=scripts) as group:
        one, other = group.engines
        point_to(one, other, monkeypatch)
        contend(one)
        stamp = await one.commit(1, "p", group.crossing(WriteIf("r", b"stamp", Expect.ABSENT).commit()))
        for refused in (WriteIf("r", b"x", Expect.ABSENT), WriteIf("r", b"x", Expect.PRESENT, stamp - 1)):
            with pytest.raises(RejectedError):
                await one.commit(1, "p", group.crossing(refused.commit()))
        last = await one.commit(1, "p", group.crossing(WriteIf("r", b"stamp", Expect.PRESENT, stamp).commit()))
        assert await other.get(1, "p", "r") == b"%d" % last
        assert group.forwarded() == [4, 0]


async def test_a_dropped_space_is_not_forwarded(
    settings: PostgresSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joined(settings, tmp_path, 2) as group:
        one, other = group.engines
        point_to(one, other, monkeypatch)
        contend(one, space=7)
        await one.drop(7)
        with pytest.raises(SpaceDroppedError):
            await one.commit(7, "p", group.crossing(put_rows({"r": b"x"})))
        assert group.forwarded() == [0, 0]


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_no_update_is_lost_whoever_is_taken_for_the_owner(
    settings: PostgresSettings, tmp_path: Path, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = Random(1)
    stamps: list[int] = []

    def increment(current: Sequence[bytes | None], stamp: int) -> dict[str, bytes | None]:
        count, last = (int(part) for part in (current[0] or b"0 0").split())
        assert stamp > last
        return {"n": b"%d %d" % (count + 1, stamp), "m": b"%d %d" % (count + 1, stamp)}

    async def work(group: Joined, engine: PostgresEngine, number: int) -> None:
        for at in range(10):
            stamps.append(await engine.commit(1, "p", group.crossing(changing(["n", "m"], increment))))
            row = f"{id(engine)} {number} {at}"
            stamps.append(await engine.commit(1, "p", group.crossing(WriteIf(row, b"x", Expect.ABSENT).commit())))

    def choose(peers: Peers, *_: object) -> Peer | None:
        return dice.choice([None, *peers._peers.values()])

    async with joined(settings, tmp_path, 3, scripts=scripts) as group:
        for engine in group.engines:
            monkeypatch.setattr(peers_of(engine), "owner", partial(choose, peers_of(engine)))
            monkeypatch.setattr(Contention, "is_contended", lambda *_: True)
        await asyncio.gather(*(work(group, engine, number) for engine in group.engines for number in range(3)))
        assert len(set(stamps)) == len(stamps) == 180
        for row in ("n", "m"):
            assert (await group.engines[0].get(1, "p", row) or b"").split()[0] == b"90"
        assert min(group.forwarded()) > 0


async def test_a_process_that_closes_fails_no_commit_of_others(
    settings: PostgresSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joined(settings, tmp_path, 2) as group:
        one, other = group.engines
        monkeypatch.setattr(Contention, "is_contended", lambda *_: True)

        async def write(number: int) -> None:
            for at in range(20):
                await one.commit(1, f"p{number}", group.crossing(put_rows({f"r{at}": b"x"})))

        writes = [asyncio.create_task(write(number)) for number in range(16)]
        await until(lambda: group.forwarded()[0] >= 16)
        await other.close()
        await asyncio.gather(*writes)
        assert group.forwarded()[0] < 320
        assert peers_of(one)._peers == {}


async def test_what_the_owner_declines_is_committed_here(
    settings: PostgresSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joined(settings, tmp_path, 2) as group:
        one, other = group.engines
        point_to(one, other, monkeypatch)
        contend(one)
        peers_of(other).leaving = True
        await one.commit(1, "p", group.crossing(put_rows({"r": b"x"})))
        assert await one.get(1, "p", "r") == b"x"


async def test_without_a_directory_there_is_no_owner(open_engine: Open, tmp_path: Path) -> None:
    reports: list[str] = []
    alone = open_engine(peers=tmp_path / "missing")
    alone._report = reports.append
    await alone.start()
    contend(alone)
    await alone.commit(1, "p", put_rows({"r": b"x"}))
    assert await alone.get(1, "p", "r") == b"x"
    assert len(reports) == 1


# Another process.


class OwnerProcess:
    """An owner that can be killed and stopped."""

    def __init__(self, settings: PostgresSettings, directory: Path) -> None:
        command = [sys.executable, "-m", "tests.engine.postgres.owner_process", settings.dsn, str(directory)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.name = self.process.stdout.readline().strip()
        assert self.name, "the owner did not start"

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def owner_process(settings: PostgresSettings, directory: Path) -> Iterator[OwnerProcess]:
    owner = OwnerProcess(settings, directory)
    try:
        yield owner
    finally:
        owner.end()


@pytest.fixture(name="sender")
async def _sender(open_engine: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PostgresEngine:
    """An engine that has others commit to all partitions, as long as there are any."""
    monkeypatch.setattr(peers_module, "DISCOVERY_SECONDS", 0.05)
    monkeypatch.setattr(Contention, "is_contended", lambda *_: True)
    monkeypatch.setattr(
        Peers, "owner", lambda self, *_: next((peer for peer in self._peers.values() if peer.live), None)
    )
    engine = open_engine(peers=tmp_path)
    await engine.start()
    return engine


def answered_within(engine: PostgresEngine, seconds: float) -> None:
    """Have an engine wait so long for an owner from now on."""
    engine._settings = replace(engine._settings, statement_seconds=seconds)


def sent(engine: PostgresEngine) -> float:
    return engine.counters()["forwarded_rows_total"]


async def test_acknowledged_commits_survive_kills_and_stops_of_the_owner(
    sender: PostgresEngine, settings: PostgresSettings, tmp_path: Path
) -> None:
    async with Load.on(sender) as load:
        await load.gets_on()
        assert sent(sender) == 0
        for _ in range(2):
            with owner_process(settings, tmp_path) as owner:
                before = sent(sender)
                await until(lambda before=before: sent(sender) > before)  # type: ignore[misc]  # of a default
                await load.gets_on()
                owner.send(signal.SIGKILL)
                await load.gets_on()
        with owner_process(settings, tmp_path) as owner:
            await until_live(sender, 1)
            await load.gets_on()
            answered_within(sender, 0.5)
            owner.send(signal.SIGSTOP)
            await load.gets_on()
            owner.send(signal.SIGCONT)
            await until_live(sender, 1)
            await load.gets_on()


@by_statements
async def test_a_commit_in_flight_when_the_owner_is_killed_is_made_once_or_never(
    sender: PostgresEngine, settings: PostgresSettings, tmp_path: Path
) -> None:
    await sender.commit(SPACE, "p", insert(["first"]))
    with owner_process(settings, tmp_path) as owner:
        await until_live(sender, 1)
        async with sender._pool.connection() as connection, connection.transaction():
            await connection.execute("SELECT 1 FROM lazulite.partitions FOR UPDATE")
            writes = [asyncio.create_task(sender.commit(SPACE, "p", insert([row]))) for row in ("one", "two")]
            await until(lambda: execute(LOCKED)[0][0])
            owner.send(signal.SIGKILL)
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            assert [type(each) for each in outcomes] == [EngineUnavailableError] * 2
        await until(lambda: not execute_on_nodes(LOCKED)[0][0])
        await sender.commit(SPACE, "p", insert(["last"]))
        assert await sender.get(SPACE, "p", "last")


async def test_a_process_that_was_stopped_writes_nothing_that_was_given_up(
    sender: PostgresEngine, settings: PostgresSettings, tmp_path: Path
) -> None:
    with owner_process(settings, tmp_path) as owner:
        await until_live(sender, 1)
        owner.send(signal.SIGSTOP)
        [peer] = peers_of(sender)._peers.values()
        peer.live = True  # As it would be until the next ping.
        answered_within(sender, 0.1)
        rows = ["one", "two"]
        writes = [asyncio.create_task(sender.commit(SPACE, "p", insert([row]))) for row in rows]
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(each) for each in outcomes] == [EngineUnavailableError] * 2
        await until(lambda: not peer.live)
        await sender.commit(SPACE, "p", insert(["three"]))
        answered_within(sender, SECONDS_MAX)
        owner.send(signal.SIGCONT)
        await until_live(sender, 1)
        await sender.commit(SPACE, "p", insert(["four"]))
        assert [await sender.get(SPACE, "p", row) for row in rows] == [None, None]
