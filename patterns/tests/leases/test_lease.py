"""Leases on the service: the Date of answers, renewals beside the work, fencing of a paused holder."""

import asyncio
import math
import threading

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import Column, entity, partition, row
from lazulite_patterns.aio.leases import Lease as AsyncLease
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Effect, perform
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Read, Write
from lazulite_patterns.leases import Lease, LeaseLost, LeaseTaken
from lazulite_patterns.table.table import Table

KEY = EntityKey("jobs", "lease")


@entity
class Job:
    queue: Column[str] = partition()
    name: Column[str] = row()
    done: Column[int]


def test_an_answer_has_the_time_of_the_service(table_client: TableClient) -> None:
    table_client.create_entity({"PartitionKey": "p", "RowKey": "r"})
    found = Driver({"t": table_client}).run(perform(Read("t", EntityKey("p", "r"))))
    assert found is not None
    assert found.date is not None
    assert found.timestamp is not None
    assert -1 <= (found.date - found.timestamp).total_seconds() < 60


def test_one_of_two_holds_it(table_client: TableClient) -> None:
    one, other = Lease(table_client, KEY, Job, holder="one"), Lease(table_client, KEY, Job, holder="other")
    assert not one.held
    with pytest.raises(LeaseLost, match="not acquired"):
        one.renew()
    one.acquire()
    assert one.held
    with pytest.raises(LeaseTaken, match="'one'"):
        other.acquire()
    with one.guard() as transaction:
        transaction.upsert(Job("jobs", "a", 1))
    one.renew()
    one.release()
    assert not one.held
    other.acquire()
    with pytest.raises(LeaseLost), one.guard() as transaction:
        transaction.upsert(Job("jobs", "a", 2))
    job = Table(table_client, Job).get(EntityKey("jobs", "a"))
    assert job == Job("jobs", "a", 1)


def test_a_holder_that_pauses_is_fenced(table_client: TableClient) -> None:
    now = 0.0
    one = Lease(table_client, KEY, seconds=3, runtime=Runtime(clock=lambda: now))
    one.acquire()
    assert one.held
    now = 3.0
    assert not one.held
    # The service's time is as it is: the row is made free as if its seconds had passed.
    table_client.update_entity({"PartitionKey": "jobs", "RowKey": "lease", "Seconds": -2.0}, mode="merge")
    other = Lease(table_client, KEY, seconds=30)
    assert other.acquire().token == 2
    with pytest.raises(LeaseLost), one.guard() as transaction:
        transaction.upsert({"PartitionKey": "jobs", "RowKey": "late"})
    one.release()
    other.renew()
    assert [each["RowKey"] for each in table_client.list_entities()] == ["lease"]


class Watching:
    """Failpoints: waits for renewals."""

    def __init__(self, count: int) -> None:
        self.count, self.enough = count, threading.Event()

    def before(self, effect: Effect[object]) -> None: ...

    def after(self, effect: Effect[object]) -> None:
        self.count -= isinstance(effect, Write)
        if self.count <= 0:
            self.enough.set()


def test_it_is_renewed_while_the_work_runs(table_client: TableClient) -> None:
    watching = Watching(3)  # The taking, and two renewals.
    lease = Lease(table_client, KEY, seconds=3, runtime=Runtime(failpoints=watching))
    seen: list[bool] = []

    def work(own: Lease[object]) -> None:
        assert watching.enough.wait(30)
        seen.append(own.held)

    lease.run(work)  # type: ignore[arg-type]
    assert seen == [True]
    assert not lease.held
    Lease(table_client, KEY).acquire()


async def test_an_asynchronous_lease(connection_string: str, table_client: TableClient) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        watching = Watching(2)
        lease = AsyncLease(client, KEY, Job, seconds=3, runtime=Runtime(failpoints=watching))

        async def work(own: AsyncLease[Job]) -> None:
            await asyncio.to_thread(watching.enough.wait, 30)
            async with own.guard() as transaction:
                transaction.upsert(Job("jobs", "a", 1))

        await lease.run(work)
        assert await AsyncLease(client, KEY).acquire() is not None
        with pytest.raises(LeaseTaken):
            await lease.run(work)
    assert Table(table_client, Job).get(EntityKey("jobs", "a")) is not None


def test_a_lease_lasts_for_whole_seconds(table_client: TableClient) -> None:
    for seconds in (2, math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="3 seconds"):
            Lease(table_client, KEY, seconds=seconds)
