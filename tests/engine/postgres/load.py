"""Writers and readers that never stop for an unavailable database, and keep what they were promised."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Self

from lazulite.engine.commit import ABSENT, Commit, CommitProcedure, Decision, Values
from lazulite.engine.contract import Engine, EngineUnavailableError, Key, KeyRange
from lazulite.engine.remote.codec import Codec

SPACE = 1
WRITERS = 8
BATCH = 3
SECONDS_MAX = 60


def insert(rows: Sequence[str]) -> Commit[int]:
    """Insert rows. Each row is inserted once: a row that is present was written by a repeated call."""

    def decide(current: Values, stamp: int) -> Decision[int]:
        assert set(current) == {None}, "a commit with an unknown outcome was repeated"
        return Decision(dict.fromkeys(rows, b"%d" % stamp), stamp)

    return Commit(rows, decide, (lambda _: [ABSENT]) if len(rows) == 1 else None, procedure=INSERT, argument=rows)


INSERT: CommitProcedure[int] = CommitProcedure("insert", list, insert)
CODEC = Codec([INSERT])


class Load:
    """The writers have a partition each, so in each one call ends before the next begins."""

    def __init__(self, engine: Engine) -> None:
        self.acknowledged: dict[Key, bytes] = {}
        self.progress = [0] * WRITERS
        """Of each writer: how many commits were acknowledged."""
        self.unavailable = [0] * WRITERS
        """Per writer: the number of commits with an unknown outcome."""
        self._engine = engine
        self._dice = random.Random(1)
        self._news = asyncio.Event()
        self._over = False

    @classmethod
    @asynccontextmanager
    async def on(cls, engine: Engine) -> AsyncIterator[Self]:
        """Surround what happens to an engine under load; in the end all that was acknowledged must be there."""
        load = cls(engine)
        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(load._write(number))
            group.create_task(load._read())
            try:
                yield load
            finally:
                load._over = True
        await load._verify()

    async def gets_on(self, commits: int = 20) -> None:
        """Wait until every writer had so many more commits acknowledged."""
        goals = [done + commits for done in self.progress]
        await self._until(lambda: all(done >= goal for done, goal in zip(self.progress, goals, strict=True)))

    async def suffers(self) -> None:
        """Wait until every writer got the error again that the store is unavailable."""
        before = list(self.unavailable)
        await self._until(lambda: all(now > then for now, then in zip(self.unavailable, before, strict=True)))

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def _write(self, number: int) -> None:
        partition, last = f"writer {number}", 0
        for count in itertools.count():
            if self._over:
                return
            rows = [f"{count:06} {each}" for each in range(BATCH if count % 4 == 3 else 1)]
            try:
                stamp = await self._engine.commit(SPACE, partition, insert(rows))
            except EngineUnavailableError:
                self.unavailable[number] += 1
                self._news.set()
                await asyncio.sleep(0.01)
                continue
            assert stamp > last
            last = stamp
            self.acknowledged |= {(partition, row): b"%d" % stamp for row in rows}
            self.progress[number] += 1
            self._news.set()

    async def _read(self) -> None:
        while not self._over:
            await asyncio.sleep(0.001)
            if self.acknowledged:
                key = self._dice.choice(list(self.acknowledged))
                try:
                    assert await self._engine.get(SPACE, *key) == self.acknowledged[key], "lost"
                except EngineUnavailableError:
                    continue

    async def _verify(self) -> None:
        found: dict[Key, bytes] = {}
        async for part in self._engine.scan(SPACE, [KeyRange(("", ""), None)]):
            found |= {part.key(index): value for index, value in enumerate(part.values)}
        lost = {key for key, value in self.acknowledged.items() if found.get(key) != value}
        assert not lost, f"lost {len(lost)} of {len(self.acknowledged)}"
        batches = [key[1].split()[0] + key[0] for key in found if int(key[1].split()[0]) % 4 == 3]
        assert all(batches.count(each) == BATCH for each in set(batches)), "half of a commit"
