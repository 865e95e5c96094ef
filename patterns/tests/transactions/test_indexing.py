"""Eventual indexes on the service: a worker of a queue writes the entries."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns import Column, Index, Listing, SchemaError, column, entity, partition, row
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.aio.tasks import Tasks as AsyncTasks
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.indexes import check as kinds
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import IndexTask
from lazulite_patterns.transactions.tasks import Tasks
from lazulite_patterns_simulation import Fault, FaultAt

from ..declared import indexed

LATER = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))


@entity
class Person:
    department: Column[str] = partition()
    id: Column[int] = row(width=4)
    mail: Column[str]
    city: Column[str] = column(default="Rome")


ANN, BOB = Person("Sales", 1, "ann"), Person("Sales", 2, "bob")


@pytest.fixture
def queue(connection_string: str) -> Iterator[QueueClient]:
    with QueueClient.from_connection_string(connection_string, f"q{uuid4().hex}") as client:
        client.create_queue()
        yield client
        client.delete_queue()


def declared(queue: str) -> list[Index]:
    return [Index("mail", "mail", queue=queue), Listing("city", "city", place="table", queue=queue)]


def table(client: TableClient, queue: QueueClient, runtime: Runtime | None = None) -> Table[Person]:
    return indexed(Person, declared(queue.queue_name), lambda: Table(client, Person, runtime=runtime, clients=[queue]))


def drained(staff: Table[Person], queue: QueueClient) -> int:
    with Tasks(queue, [IndexTask(staff)]) as tasks:
        return tasks.drain(workers=1)


def test_a_worker_writes_the_entries(table_client: TableClient, queue: QueueClient) -> None:
    staff = table(table_client, queue)
    staff.insert(ANN)
    staff.insert(BOB)
    assert list(staff.by(mail="ann")) == []
    assert list(audit(staff)) == [], "a worker is about to write the entries"
    assert {each.kind for each in audit(table(table_client, queue, LATER))} == {kinds.NO_ENTRY}
    assert drained(staff, queue) == 2
    assert list(staff.by(mail="ann")) == [ANN]
    assert sorted(each.id for each in staff.by(city="Rome")) == [1, 2]
    staff.merge(ANN, mail="sue", city="Oslo")
    assert list(staff.by(mail="ann")) == [], "an entry that does not fit is dropped"
    assert drained(staff, queue) == 1
    assert [each.id for each in staff.by(city="Oslo")] == [1]
    staff.delete(ANN)
    staff.delete(BOB)
    assert drained(staff, queue) == 2
    assert list(table_client.list_entities()) == []


def test_costs_are_those_of_the_page(table_client: TableClient, queue: QueueClient) -> None:
    count = FaultAt(-1, Fault.BUSY)
    staff = table(table_client, queue, Runtime(failpoints=count))
    staff.insert(ANN)
    assert count.count == 2 + 2
    staff.update(ANN, lambda each: replace(each, mail="sue", city="Oslo"))
    assert count.count == 4 + 2 + 2


def test_one_entity_is_indexed_again(table_client: TableClient, queue: QueueClient) -> None:
    staff = table(table_client, queue)
    table_client.create_entity({"PartitionKey": "Sales", "RowKey": "0001", "mail": "ann", "city": "Rome"})
    task = IndexTask(staff)
    with Tasks(queue, [task]) as tasks:
        tasks.start(task, EntityKey("Sales", "0001"))
        assert tasks.drain(workers=1) == 1
    assert list(staff.by(mail="ann")) == [ANN]


@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, Fault.ANSWER_LOST])
def test_a_crash_after_the_commit_leaves_a_message_for_later(
    table_client: TableClient, queue: QueueClient, fault: Fault
) -> None:
    staff = table(table_client, queue)
    staff.insert(ANN)
    drained(staff, queue)
    changed = replace(ANN, mail="sue")
    broken = table(table_client, queue, Runtime(failpoints=FaultAt(2, fault)))  # Read, send, commit.
    with suppress(Crash):
        broken.update(ANN, lambda _: changed)
    assert staff.get(ANN) == changed
    assert len(list(queue.peek_messages())) == (0 if fault is Fault.CRASH_AFTER else 1), "it is hidden for 90 seconds"


def test_wrong_declarations_are_rejected(table_client: TableClient, queue: QueueClient) -> None:
    for options in ({"unique": True}, {"within_partition": True}, {"copy": ["city"]}):
        with pytest.raises(SchemaError):
            Index("mail", "mail", queue="q", **options)
    with pytest.raises(SchemaError):
        Listing("city", "city", queue="q")
    with pytest.raises(ValueError, match="no client of the queue q"):
        indexed(Person, declared("q"), lambda: Table(table_client, Person))
    with pytest.raises(ValueError, match="no index"):
        IndexTask(Table(table_client, Person))


async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    async with (
        AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client,
        AsyncQueueClient.from_connection_string(connection_string, f"q{uuid4().hex}") as queue,
    ):
        await queue.create_queue()
        staff = indexed(Person, declared(queue.queue_name), lambda: AsyncTable(client, Person, clients=[queue]))
        await staff.insert(ANN)
        async with AsyncTasks(queue, [IndexTask(staff)]) as tasks:
            assert await tasks.drain(workers=1) == 1
        assert [each async for each in staff.by(mail="ann")] == [ANN]
        await queue.delete_queue()
