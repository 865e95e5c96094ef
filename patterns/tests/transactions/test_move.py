"""A move ends with the entity in the target alone, whatever fails in between: in memory and on a service."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns import Column, Index, column, entity, partition, row
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.aio.tasks import Tasks as AsyncTasks
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Absent, Conflict, Policy
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import Move, TaskMessage
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns.transactions.tasks import Tasks
from lazulite_patterns_simulation import Crash, FaultAt, every_fault

from ..declared import indexed

FAST = Policy(first_wait_seconds=0.001)
Run = Callable[[Protocol[Any], Failpoints], Any]


@entity
class Employee:
    department: Column[str] = partition()
    id: Column[str] = row()
    email: Column[str] = column(default="")


@entity
class Former:
    year: Column[str] = partition()
    id: Column[str] = row()
    email: Column[str] = column(default="")


def test_every_fault_of_a_move(
    run: Run, table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, former = Table(table_client, Bag, policy=FAST), Table(target_client, Bag, policy=FAST)
    archive = Move("archive", source=current, target=former)
    work = TaskQueue("q", "q-poison", {"archive": archive}, policy=FAST)
    keys: list[EntityKey] = []

    def rival() -> None:
        found = current.get(keys[-1])
        if found is not None:
            current.update(keys[-1], lambda bag: Bag({**bag, "Version": 2}))

    def attempt(fault: FaultAt) -> None:
        keys.append(EntityKey("p", uuid4().hex))
        current.insert(Bag(PartitionKey="p", RowKey=keys[-1].row_key, Version=1))
        latest = 1
        started = False
        try:
            run(work.start(archive, keys[-1]), fault)
            started = True
            run(work.handle_next(30), fault)
        except Crash:
            assert current.get(keys[-1]) or former.get(keys[-1]), "it is in neither table"
        left, moved = current.get(keys[-1]), former.get(keys[-1])
        if left is not None:
            latest = int(str(left["Version"]))
        elif moved is not None:
            latest = int(str(moved["Version"]))
        if started or moved is not None:
            # The message is delivered again; here by another one, as the first is hidden for its time.
            again = TaskMessage("archive", str(_mark(table_client, keys[-1])), list(keys[-1]))
            run(work.send(again), NoFailpoints())
            run(work.drain(30, 1), NoFailpoints())
            moved = former.get(keys[-1])
            assert moved is not None
            assert (current.get(keys[-1]), moved["Version"]) == (None, latest)
        else:
            assert left is not None, "a move that was not started changes nothing"
        queue_client.clear_messages()

    assert sum(1 for _ in every_fault(attempt, rival)) == 7 * (3 + 6), "the start has three requests, a worker six"


def _mark(client: TableClient, key: EntityKey) -> str:
    """Return the id of the move: the first write after the insert."""
    found = next(iter(client.query_entities(f"PartitionKey eq 'p' and RowKey eq '{key.row_key}'")), None)
    return "moved" if found is None else str(found["_Op"]).removeprefix("^").split()[1]


def employees(source: TableClient, target: TableClient) -> tuple[Table[Employee], Table[Employee], Move[Employee]]:
    current, former = (
        Table(source, Employee),
        indexed(Employee, [Index("email", "email")], lambda: Table(target, Employee)),
    )
    return current, former, Move("archive", source=current, target=former)


def test_a_move_keeps_indexes_and_unknown_properties(
    table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, former, archive = employees(table_client, target_client)
    jones = Employee("Sales", "1", "jonesj@contoso.com")
    current.insert(jones)
    Table(table_client, Bag).merge(EntityKey("Sales", "1"), Note="of another program")
    with Tasks(queue_client, [archive]) as tasks:
        tasks.start(archive, jones)
        assert current.get(jones) == jones, "it is moved by a worker"
        tasks.drain()
    assert current.get(jones) is None
    assert list(former.by(email="jonesj@contoso.com")) == [jones]
    assert target_client.get_entity("Sales", "1")["Note"] == "of another program"


def test_an_entity_that_was_read_is_moved_only_if_it_is_the_same(
    table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, _, archive = employees(table_client, target_client)
    current.insert(Employee("Sales", "1"))
    found = current.get(EntityKey("Sales", "1"))
    assert found is not None
    current.update(found, lambda each: Employee(each.department, each.id, "new"))
    with Tasks(queue_client, [archive]) as tasks:
        with pytest.raises(Conflict):
            tasks.start(archive, found)
        with pytest.raises(Absent):
            tasks.start(archive, EntityKey("Sales", "2"))
    assert queue_client.get_queue_properties().approximate_message_count == 0


def test_updates_after_the_start_are_moved(
    table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, former, archive = employees(table_client, target_client)
    jones = Employee("Sales", "1", "old")
    current.insert(jones)
    with Tasks(queue_client, [archive]) as tasks:
        tasks.start(archive, jones)
        current.update(jones, lambda each: Employee(each.department, each.id, "new"))
        tasks.drain()
    assert (current.get(jones), former.get(jones)) == (None, Employee("Sales", "1", "new"))


def test_a_late_duplicate_moves_no_new_entity(
    table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, former, archive = employees(table_client, target_client)
    current.insert(Employee("Sales", "1", "first"))
    with Tasks(queue_client, [archive]) as tasks:
        tasks.start(archive, EntityKey("Sales", "1"))
        message = queue_client.peek_messages()[0].content
        tasks.drain()
        current.insert(Employee("Sales", "1", "second"))
        queue_client.send_message(message)
        assert tasks.drain() == 1
        assert current.get(EntityKey("Sales", "1")) == Employee("Sales", "1", "second")
        assert former.get(EntityKey("Sales", "1")) == Employee("Sales", "1", "first")
        tasks.start(archive, EntityKey("Sales", "1"))
        tasks.drain()
    assert former.get(EntityKey("Sales", "1")) == Employee("Sales", "1", "second"), "a new move replaces it"


def test_a_move_converts(table_client: TableClient, target_client: TableClient, queue_client: QueueClient) -> None:
    current, former = Table(table_client, Employee), Table(target_client, Former)
    retire = Move("retire", source=current, target=former, convert=lambda each: Former("2014", each.id, each.email))
    current.insert(Employee("Sales", "1", "a@b"))
    with Tasks(queue_client, [retire]) as tasks:
        tasks.start(retire, EntityKey("Sales", "1"))
        tasks.drain()
    assert former.get(EntityKey("2014", "1")) == Former("2014", "1", "a@b")
    assert current.get(EntityKey("Sales", "1")) is None


async def test_an_asynchronous_move(
    connection_string: str, table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    make = AsyncTableClient.from_connection_string
    queue = AsyncQueueClient.from_connection_string(connection_string, queue_client.queue_name)
    async with (
        make(connection_string, table_client.table_name) as source,
        make(connection_string, target_client.table_name) as target,
        queue,
    ):
        current, former = AsyncTable(source, Employee), AsyncTable(target, Employee)
        archive = Move("archive", source=current, target=former)
        async with AsyncTasks(queue, [archive]) as tasks:
            for number in range(4):
                await current.insert(Employee("Sales", str(number)))
                await tasks.start(archive, EntityKey("Sales", str(number)))
            assert await tasks.drain(workers=2) == 4
            await tasks.work(stop=lambda: True)
        assert await former.get(EntityKey("Sales", "3")) == Employee("Sales", "3")
    assert list(table_client.list_entities()) == []


def test_wrong_moves_are_rejected(table_client: TableClient, target_client: TableClient) -> None:
    current = Table(table_client, Bag)
    with pytest.raises(ValueError, match="the same"):
        Move("archive", source=current, target=Table(table_client, Bag))
    with pytest.raises(ValueError, match="no marks"):
        Move("archive", source=Table(table_client, Bag, policy=Policy(marks=0)), target=Table(target_client, Bag))
    elsewhere = TableClient("http://127.0.0.1:1/other?sig=none", table_client.table_name)
    with pytest.raises(ValueError, match="different accounts"):
        Move("archive", source=current, target=Table(elsewhere, Bag))
