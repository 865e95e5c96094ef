"""Which workers are used directly, on a clock of the test, with sessions that stand for real ones."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import cast

import asyncpg
import pytest

from lazulite.engine.postgres.citus import workers as module
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.citus.workers import FRESH_SECONDS, RETRY_SECONDS, Workers
from lazulite.engine.postgres.settings import PostgresSettings
from tests.engine.postgres.citus.test_nodes import Loop
from tests.engine.postgres.citus.test_shard_map import SAMPLE

SHARDS = [("rows", 102000 + at, (1 << 30) * (at - 2), 1 + at % 2, f"w{1 + at % 2}:5432", SAMPLE) for at in range(4)]


class Row(tuple[object, ...]):
    """A record of an answer to `LOOK`."""

    def __getitem__(self, name: object) -> object:  # type: ignore[override]  # a record's
        return tuple(self)[("name", "shardid", "lower", "node", "address", "sample").index(cast(str, name))]


def rows(shards: Sequence[tuple[object, ...]] = SHARDS) -> Sequence[asyncpg.Record]:
    return cast(Sequence[asyncpg.Record], [Row(each) for each in shards])


class Worker:
    """A worker as a session sees it, and its sessions; the connection, too."""

    def __init__(self, group: int, shards: Sequence[asyncpg.Record], failure: Exception | None = None) -> None:
        self.group, self.shards, self.failure = group, shards, failure
        self.kept = self.closed = self.opened = 0

    async def open(self) -> "Worker":
        self.opened += 1
        if self.failure:
            raise self.failure
        return self

    async def fetchval(self, _: str) -> int:
        return self.group

    async def fetch(self, _: str) -> Sequence[asyncpg.Record]:
        return self.shards

    def keep(self, _: object) -> None:
        self.kept += 1

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture(name="loop")
def _loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(name="machines")
def _machines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Worker]:
    """By the URL at which a session finds them."""
    found: dict[str, Worker] = {}
    monkeypatch.setattr(module, "Sessions", lambda settings, _: found[settings.dsn])
    return found


def url(address: str) -> str:
    return f"postgresql://me@{address}/tables?sslmode=disable"


async def prepare(_: object) -> None:
    """Do nothing."""


def workers(shards: ShardMap) -> Workers:
    return Workers(PostgresSettings(dsn=url("co:5432,co2:5432")), prepare, shards)


def used(joined: Workers, node: int) -> object:
    """Return the sessions with a node."""
    return joined.of(node)


def known() -> ShardMap:
    shards = ShardMap()
    shards.update(rows())
    return shards


def test_workers_are_joined_and_left_with_the_map(loop: Loop, machines: dict[str, Worker]) -> None:
    async def run() -> None:
        machines.update({url(f"w{node}:5432"): Worker(node, rows()) for node in (1, 2)})
        shards = known()
        joined = workers(shards)
        assert await joined.join() == []
        assert used(joined, 1) is None, "before the coordinator was asked"
        joined.confirmed(loop.time())
        assert [used(joined, node) for node in (0, 1, 2)] == [None, *machines.values()]
        assert await joined.join() == []
        assert [(each.opened, each.kept) for each in machines.values()] == [(1, 1)] * 2, "once"

        moved = [(*each[:4], each[4].replace("w2", "w9"), SAMPLE) for each in SHARDS]
        shards.update(rows(moved))
        machines[url("w9:5432")] = Worker(2, rows(moved))
        assert used(joined, 2) is None, "it was replaced"
        assert await joined.join() == []
        assert used(joined, 2) is machines[url("w9:5432")]
        assert machines[url("w2:5432")].closed
        await joined.close()
        assert all(each.closed for each in machines.values())

    loop.run_until_complete(run())


def test_no_worker_is_used_while_the_coordinator_cannot_be_asked(loop: Loop, machines: dict[str, Worker]) -> None:
    async def run() -> None:
        machines.update({url(f"w{node}:5432"): Worker(node, rows()) for node in (1, 2)})
        joined = workers(known())
        await joined.join()
        joined.confirmed(loop.time())
        loop.pass_time(FRESH_SECONDS)
        assert used(joined, 1) is not None
        loop.pass_time(0.1)
        assert used(joined, 1) is None
        joined.confirmed(loop.time())
        assert used(joined, 1) is not None

    loop.run_until_complete(run())


@pytest.mark.parametrize(
    ("worker", "reason"),
    [
        (Worker(2, rows()), "another node"),
        (Worker(1, rows(SHARDS[:3])), "other shards"),
        (Worker(1, rows(), ConnectionRefusedError("refused")), "refused"),
        (Worker(1, rows(), asyncpg.InvalidPasswordError("wrong password")), "wrong password"),
    ],
)
def test_another_one_is_not_joined_and_tried_again_later(
    loop: Loop, machines: dict[str, Worker], worker: Worker, reason: str
) -> None:
    async def run() -> None:
        machines.update({url("w1:5432"): worker, url("w2:5432"): Worker(2, rows())})
        joined = workers(known())
        [line] = await joined.join()
        assert line.startswith("the worker w1:5432 is used through the coordinator"), line
        assert reason in line
        joined.confirmed(loop.time())
        assert used(joined, 1) is None
        assert used(joined, 2) is not None
        assert worker.closed or worker.failure
        assert await joined.join() == []
        machines[url("w1:5432")] = Worker(1, rows())
        loop.pass_time(RETRY_SECONDS)
        assert await joined.join() == []
        joined.confirmed(loop.time())
        assert used(joined, 1) is machines[url("w1:5432")]

    loop.run_until_complete(run())


def test_a_silent_one_holds_up_a_start_for_the_time_of_a_connection(loop: Loop, machines: dict[str, Worker]) -> None:
    class Silent(Worker):
        async def fetch(self, _: str) -> Sequence[asyncpg.Record]:
            return await loop.create_future()  # type: ignore[no-any-return]

    async def run() -> None:
        machines.update({url("w1:5432"): Silent(1, rows()), url("w2:5432"): Worker(2, rows())})
        joining = asyncio.ensure_future(workers(known()).join())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not joining.done()
        loop.pass_time(5.1)
        [line] = await joining
        assert "w1:5432" in line

    loop.run_until_complete(run())
