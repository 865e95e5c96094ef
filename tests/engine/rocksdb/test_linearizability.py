"""Concurrent commits, reads and scans while flushes are held, rejected and broken: do all of them see one history?

Each value tells its version and the commit that wrote it, and each commit notes the value that it was decided on. What
must hold, in whatever order things happen:

- no reader sees a value whose commit is not acknowledged, or interrupted, in the same iteration of the loop;
- what one key shows never goes back, and what a stalled write rejected is never shown nor built on;
- both rows of a commit are seen together, and every acknowledged commit is in the history that the last one leads to.
"""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import Engine, EngineUnavailableError, KeyRange, SpaceDroppedError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.options import RocksSettings
from tests.engine.remote.over_channel import EngineOverChannel, replicated

from .failing import rest, writable_again

SETTINGS = RocksSettings(
    stall_seconds_max=0,
    stall_retry_seconds=0,
    recovery_retry_seconds=0,
    replica_follow_seconds=0.001,
    write_buffer_bytes=1 << 16,
    write_bytes_max=1 << 16,
    read_bytes_max=1 << 16,
)
STEPS = 60
SPACES = range(2000, 2003)
PARTITIONS = ("p", "q")
PAIRS = ("1", "2")
MEMBERS = ("a", "b")
"""A commit writes both members of a pair."""


class Fate(Enum):
    """What became of a commit."""

    OPEN = auto()
    ACKNOWLEDGED = auto()
    BROKEN = auto()
    """No client knows."""
    REJECTED = auto()
    """Nothing of it may be left."""


class Value(NamedTuple):
    """What a row says."""

    version: int
    commit: int

    @classmethod
    def read(cls, row: bytes | None) -> "Value | None":
        return None if row is None else cls(*map(int, row.split(b" ")[:2]))


class RejectionError(Exception):
    pass


class Disk:
    """Failpoints that hold and fail, as the dice say. A held sync goes on when the loop says so."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.trouble: dict[str, float] = {}
        self.go_on = threading.Event()
        self.go_on.set()

    def failpoints(self) -> Mapping[str, Callable[[], None]]:
        return {"before_write": self._write, "before_sync": self._sync, "after_sync": lambda: self._fail("after_sync")}

    def _write(self) -> None:
        if self._dice.random() < self.trouble.get("stall", 0):
            raise Exception("Result incomplete: Write stall")
        self._fail("before_write")

    def _sync(self) -> None:
        self.go_on.wait(5)
        self._fail("before_sync")

    def _fail(self, name: str) -> None:
        if self._dice.random() < self.trouble.get(name, 0):
            raise Exception("IO error: no more")


class History:
    """Drives an engine and judges what it shows."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.dice = random.Random(seed)
        self.disk = Disk(self.dice)
        self.engine = self.open()
        self.bases: dict[int, Value | None] = {}
        self.fates: dict[int, Fate] = {}
        self.spaces: dict[int, int] = {}
        self.shown: dict[tuple[int, str, str], Value] = {}
        self.dropping: set[int] = set()
        self.dropped: set[int] = set()
        self.unsettled: list[int] = []
        self.working = True

    def open(self) -> RocksEngine:
        return RocksEngine.open(self.path, lambda: 1000, SETTINGS, failpoints=self.disk.failpoints())

    async def reader(self) -> Engine:
        """Return what reads."""
        return self.engine

    def anywhere(self) -> tuple[int, str, str]:
        return self.dice.choice(SPACES), self.dice.choice(PARTITIONS), self.dice.choice(PAIRS)

    def judge(self, where: tuple[int, str, str], row: bytes | None) -> Value | None:
        """Check a row that a reader was shown."""
        value, before = Value.read(row), self.shown.get(where)
        if where[0] in self.dropping:
            assert value is None or where[0] not in self.dropped, "a dropped value is back"
            return value
        if value is None:
            assert before is None, "a value has gone"
            return None
        assert before is None or before == value or before.version < value.version, "a value went back"
        self.shown[where] = value
        self.settle(value)
        return value

    def settle(self, value: Value | None) -> None:
        """Check that the commit behind a value that was shown is, or is in this iteration, at its end."""
        if value is not None and self.fates[value.commit] is Fate.OPEN:
            self.unsettled.append(value.commit)
        elif value is not None:
            assert self.fates[value.commit] is not Fate.REJECTED, "shown what was rejected"

    async def write(self) -> None:
        commit = len(self.bases)
        self.bases[commit] = None
        kind = self.dice.choices(["change", "reject", "nothing", "cancel", "large"], [80, 8, 5, 4, 3])[0]
        space, partition, pair = self.anywhere()
        rows = [member + pair for member in MEMBERS]

        def decide(current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
            assert space not in self.dropped, "a dropped space is open again"
            base, other = map(Value.read, current)
            assert base == other, "half of a commit"
            assert base is None or self.fates[base.commit] is not Fate.REJECTED, "built on what was rejected"
            self.bases[commit] = base
            if kind == "reject":
                raise RejectionError
            if kind == "nothing":
                return {}
            self.fates[commit] = Fate.OPEN
            self.spaces[commit] = space
            row = b"%d %d %b" % (base.version + 1 if base else 1, commit, bytes(700_000 if kind == "large" else 0))
            return dict.fromkeys(rows, row)

        task = asyncio.ensure_future(self.engine.commit(space, partition, changing(rows, decide)))
        if kind == "cancel":
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])
        await self.learn(commit, space, None if task.cancelled() else task.exception(), task.cancelled())

    async def learn(self, commit: int, space: int, error: BaseException | None, cancelled: bool) -> None:
        """Take in how a commit ended."""
        if isinstance(error, SpaceDroppedError):
            assert space in self.dropping
        elif isinstance(error, EngineUnavailableError):
            if commit in self.fates:
                self.fates[commit] = Fate.REJECTED if "is behind" in str(error) else Fate.BROKEN
            await writable_again(self.engine)
        elif commit in self.fates:
            self.fates[commit] = Fate.BROKEN if cancelled else Fate.ACKNOWLEDGED
        elif not cancelled:
            assert error is None or isinstance(error, RejectionError)
            self.settle(self.bases[commit])

    async def read(self) -> None:
        space, partition, pair = self.anywhere()
        try:
            reader = await self.reader()
            self.judge((space, partition, pair), await reader.get(space, partition, "a" + pair))
            rows: dict[str, bytes] = {}
            async for part in reader.scan(space, [KeyRange((partition, ""), (partition + "\0", ""))]):
                rows |= {part.key(index)[1]: value for index, value in enumerate(part.values)}
        except EngineUnavailableError:
            await writable_again(self.engine)
            return
        for each in PAIRS:
            first, second = (Value.read(rows.get(member + each)) for member in MEMBERS)
            assert first == second, "half of a commit"

    async def drop(self) -> None:
        """Drop the last space, perhaps again: a drop that failed may be done or not."""
        self.dropping.add(SPACES[-1])
        with suppress(EngineUnavailableError):
            await self.engine.drop(SPACES[-1])
            self.dropped.add(SPACES[-1])

    async def again(self, work: Callable[[], Awaitable[None]]) -> None:
        for _ in range(STEPS):
            await work()
            await self.iteration()

    async def iteration(self) -> None:
        """Let the others have an iteration of the loop; while the store cannot write, let its threads work as well."""
        if self.engine.statistics().get("writable"):
            await asyncio.sleep(0)
        else:
            await rest()

    async def trouble(self) -> None:
        """Now and then another kind of trouble, and now and then an iteration of the loop for a sync that is held."""
        while self.working:
            if self.dice.random() < 0.1:
                await self.drop()
            name = self.dice.choice(["stall", "before_write", "before_sync", "after_sync", "", ""])
            self.disk.trouble = {name: 0.4}
            for _ in range(20):
                self.disk.go_on.clear()
                for _ in range(self.dice.randrange(8)):
                    await self.iteration()
                self.disk.go_on.set()
                await self.iteration()

    async def settling(self) -> None:
        """The readers and the writer of a value are resumed in one iteration; their tasks run in the next ones."""
        while self.working:
            shown, self.unsettled = self.unsettled, []
            for _ in range(5):
                await self.iteration()
            assert all(self.fates[commit] in (Fate.ACKNOWLEDGED, Fate.BROKEN) for commit in shown), "not durable"

    async def run(self) -> None:
        others = [asyncio.create_task(work) for work in (self.trouble(), self.settling())]
        await asyncio.gather(*[self.again(self.write) for _ in range(8)], *[self.again(self.read) for _ in range(4)])
        self.working = False
        await asyncio.gather(*others)
        self.disk.trouble = {}
        await self.engine.close()
        self.engine = self.open()
        kept: set[int] = set()
        for space in SPACES:
            for partition in PARTITIONS:
                for pair in PAIRS:
                    rows = [await self.engine.get(space, partition, member + pair) for member in MEMBERS]
                    assert rows[0] == rows[1], "half of a commit"
                    value = self.judge((space, partition, pair), rows[0])
                    while value is not None:
                        kept.add(value.commit)
                        value = self.bases[value.commit]
        await self.engine.close()
        acknowledged = {commit for commit, fate in self.fates.items() if fate is Fate.ACKNOWLEDGED}
        assert not {commit for commit in kept if self.fates[commit] is Fate.REJECTED}, "a rejected commit is there"
        assert not {commit for commit in acknowledged - kept if self.spaces[commit] not in self.dropping}, "lost"


class HistoryOfWorker(History):
    """Reads as a worker does: from a replica whose ring is small."""

    def open(self) -> RocksEngine:
        engine, replica = replicated(
            self.path, lambda: 1000, SETTINGS, ring_bytes=1 << 12, failpoints=self.disk.failpoints()
        )
        self.replica = replica
        self.worker = EngineOverChannel(engine, replica)
        return engine

    async def reader(self) -> Engine:
        return await self.worker.joined()

    async def read(self) -> None:
        """Read over all the time in which others write; at times the replica must open the files again."""
        await super().read()
        if self.dice.random() < 0.02:
            self.replica.close()
        for _ in range(20):
            await self.iteration()


@pytest.mark.parametrize("seed", range(3))
async def test_a_worker_sees_the_same_history(tmp_path: Path, seed: int) -> None:
    history = HistoryOfWorker(tmp_path, seed)
    worker = history.worker
    await history.run()
    joined = await worker.joined()
    await worker.close()
    assert joined.counters()["replica_reads_total"] > 100
    assert joined.counters()["primary_reads_total"] > 0


@pytest.mark.parametrize("seed", range(3))
async def test_everybody_sees_one_history(tmp_path: Path, seed: int) -> None:
    await History(tmp_path / "store", seed).run()
