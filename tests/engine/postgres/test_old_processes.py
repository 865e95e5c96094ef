"""Today's engine shares a database with processes of the first version, as in a rolling upgrade.

The statements of that version stand for its processes. A partition's version grows with each commit of either, and a
commit is made only on the version on which it was decided.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg
import pytest

from lazulite.engine.commit import Commit, Decision, Expect, Values
from lazulite.engine.contract import SpaceDroppedError
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.conftest import Open, by_statements, execute
from tests.engine.postgres.write_if import RejectedError, WriteIf
from tests.golden import database_process

pytestmark = by_statements
STATEMENTS = database_process()
COMMITS = 30


class OldProcess:
    """A process of the first version; every partition is in space 1.

    Args:
        connection: to the database.
    """

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def _send(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        return await self._connection.fetch(STATEMENTS[name], *arguments)

    async def read(self, partition: bytes, row: bytes) -> tuple[int, bytes | None]:
        """Return the version of a partition, and the value of a row."""
        version, value = 0, None
        for row_key, found, stamp in await self._send("read_one", 1, partition, [row]):
            version, value = (version, found) if row_key else (stamp, value)
        return version, value

    async def change(self, partition: bytes, row: bytes, change: Callable[[bytes | None], bytes]) -> int:
        """Change a row; return the timestamp."""
        while True:
            version, value = await self.read(partition, row)
            stamp = max(version + 1, system_clock())
            head, key = ([1], [partition], [version], [stamp]), ([1], [partition], [row])
            written = (*key, [stamp], [change(value)], [None], [None])
            if await self._send("apply", *head, [], [], [], *written):
                return stamp

    async def insert(self, partition: bytes, row: bytes, value: bytes) -> bool:
        """Insert a row; return whether it was absent."""
        while True:
            stamp = max((await self.read(partition, row))[0] + 1, system_clock())
            head, key = ([1], [partition], [stamp], stamp), ([1], [partition], [row])
            found = await self._send("insert", *head, *key, [stamp], [value], [None], [None], [None])
            if found:
                return (stamp,) in [tuple(each) for each in found]

    async def drop(self, space: int) -> None:
        """Drop a space."""
        await self._send("drop", space)

    async def dropped(self) -> set[int]:
        """Return the dropped spaces."""
        return {space for (space,) in await self._send("dropped")}


@asynccontextmanager
async def old_process(settings: PostgresSettings) -> AsyncIterator[OldProcess]:
    connection = await asyncpg.connect(settings.dsn)
    try:
        yield OldProcess(connection)
    finally:
        await connection.close()


@pytest.fixture(name="engine")
async def _engine(open_engine: Open) -> PostgresEngine:
    engine = open_engine()
    await engine.start()
    return engine


def one_more(value: bytes | None) -> bytes:
    return b"%d" % (int(value or b"0") + 1)


def counting() -> Commit[int]:
    """Return a commit that counts in a row, which the engine may keep between two commits."""

    def decide(values: Values, timestamp: int) -> Decision[int]:
        return Decision({"n": one_more(values[0])}, timestamp)

    return Commit(["n"], decide, kept="n")


async def test_no_change_of_either_is_lost(engine: PostgresEngine, settings: PostgresSettings) -> None:
    async with old_process(settings) as old:

        async def new() -> None:
            for _ in range(COMMITS):
                await engine.commit(1, "p", counting())

        async def before() -> None:
            for _ in range(COMMITS):
                await old.change(b"p", b"n", one_more)

        await asyncio.gather(new(), before())
        assert await engine.get(1, "p", "n") == (await old.read(b"p", b"n"))[1] == b"%d" % (2 * COMMITS)


async def test_timestamps_of_a_partition_grow(engine: PostgresEngine, settings: PostgresSettings) -> None:
    async with old_process(settings) as old:
        timestamps = []
        for _ in range(COMMITS):
            timestamps += [await engine.commit(1, "p", counting()), await old.change(b"p", b"n", one_more)]
        assert timestamps == sorted(set(timestamps))
        assert execute("SELECT max(stamp) FROM lazulite.partitions WHERE space = 1") == [(timestamps[-1],)]


async def test_one_of_two_inserts_of_a_row_succeeds(engine: PostgresEngine, settings: PostgresSettings) -> None:
    async def new(row: str) -> bool:
        try:
            await engine.commit(1, "p", WriteIf(row, b"new", Expect.ABSENT).commit())
        except RejectedError:
            return False
        return True

    async with old_process(settings) as old:
        for number in range(COMMITS):
            row = f"{number:02}"
            done = await asyncio.gather(new(row), old.insert(b"p", row.encode(), b"old"))
            assert sorted(done) == [False, True]
            assert not await new(row)
            assert not await old.insert(b"p", row.encode(), b"old")
            assert await engine.get(1, "p", row) == (b"new" if done[0] else b"old")


async def test_each_learns_of_the_spaces_that_the_other_drops(
    engine: PostgresEngine, settings: PostgresSettings
) -> None:
    async with old_process(settings) as old:
        await engine.drop(5)
        await old.drop(6)
        assert await old.dropped() == {5, 6}
        await (await engine._ensure_started()).drops.reload()
        for space in (5, 6):
            with pytest.raises(SpaceDroppedError):
                await engine.commit(space, "p", counting())
