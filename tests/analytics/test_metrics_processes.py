"""Processes that share a store by a channel to its primary, or by a database, count each request once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from lazulite.analytics.metrics import partition_of
from lazulite.analytics.metrics_tables import MetricsTables
from lazulite.app.registry import CODEC, SPACES
from lazulite.engine.contract import Engine
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from tests.analytics.counted import ACCOUNT, HOUR, MINUTE, START, Counted, asking
from tests.analytics.store import Process, Store
from tests.engine.remote.over_channel import join
from tests.postgres.server import shared
from tests.table.client import Client, values

PROCESSES = 4
MINUTES, HOURS = "$MetricsMinutePrimaryTransactionsBlob", "$MetricsHourPrimaryTransactionsBlob"


class SharedStore(Store):
    """A store with an engine for each process."""

    def __init__(self, engine: Engine, processes: list[Engine]) -> None:
        super().__init__(engine)
        self.processes = [Process(self, f"process {number}", each) for number, each in enumerate(processes)]


@pytest.fixture(name="shared_store", params=["workers", "postgres"])
async def _shared_store(request: pytest.FixtureRequest) -> AsyncIterator[SharedStore]:
    async with AsyncExitStack() as stack:
        if request.param == "workers":
            engine = RocksEngine.open(None, system_clock)
            stack.push_async_callback(engine.close)
            server = EngineServer(engine, CODEC, SPACES.watched, print)
            stack.push_async_callback(server.close)
            remotes: list[Engine] = []
            for _ in range(PROCESSES):
                remote = RemoteEngine(CODEC, system_clock)
                await join(remote.channel, server.open_channel(lambda: None))
                stack.push_async_callback(remote.close)
                remotes.append(remote)
            yield SharedStore(engine, remotes)
            return
        settings = PostgresSettings(dsn=shared().dsn(shared().create_database()), drop_poll_seconds=3600)
        engines: list[Engine] = []
        for _ in range(PROCESSES + 1):
            each = PostgresEngine(settings, system_clock)
            await each.start()
            stack.push_async_callback(each.close)
            engines.append(each)
        yield SharedStore(engines[0], engines[1:])


async def test_processes_count_each_request_once(shared_store: SharedStore) -> None:
    store = shared_store
    await store.ask(asking())
    await asyncio.gather(*(each.writer.round() for each in store.processes))
    for _ in range(3):
        for index, process in enumerate(store.processes):
            process.counter.take([Counted(started=store.now, ended=store.now)] * (index + 1))
        await asyncio.gather(*(each.writer.round() for each in store.processes))
        store.now += MINUTE
        await asyncio.gather(*(each.writer.round() for each in store.processes))
    store.now = START + HOUR
    await asyncio.gather(*(each.writer.round() for each in store.processes))
    assert [each.counts.failed_rounds for each in store.processes] == [0] * PROCESSES
    of_a_minute = PROCESSES * (PROCESSES + 1) // 2
    client = Client(store.engine)
    for table, row, expected in (
        (MINUTES, "user;All", [of_a_minute] * 3),
        (MINUTES, "user;GetBlob", [of_a_minute] * 3),
        (HOURS, "user;All", [3 * of_a_minute]),
        (HOURS, "user;GetBlob", [3 * of_a_minute]),
    ):
        found = values(await client("GET", f"{table}()", f"$filter=RowKey%20eq%20'{row}'"))
        assert [int(each["TotalRequests"]) for each in found if each["TotalRequests"] != "0"] == expected


async def test_one_process_makes_each_table(shared_store: SharedStore) -> None:
    tables = [MetricsTables(each.engine.engine) for each in shared_store.processes]
    found = await asyncio.gather(*(each.ensure(ACCOUNT, MINUTES) for each in tables))
    assert len({table.space for table in found}) == 1


async def test_one_process_does_the_upkeep(shared_store: SharedStore) -> None:
    store = shared_store
    await store.ask(asking())
    store.processes[0].counter.take([Counted()])
    await store.processes[0].writer.flush()
    store.now += 2 * HOUR
    await asyncio.gather(*(each.upkeep.maintain() for each in store.processes[1:]))
    row = f"{HOURS}(PartitionKey='{partition_of(START)}',RowKey='user;All')"
    assert (await Client(store.engine)("GET", row)).status == 200
