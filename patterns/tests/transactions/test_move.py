"""A move ends with the entity in the target alone, whatever fails in between: in memory and on a service."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns import Column, Index, column, entity, index, partition, row, unique
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.aio.tasks import Tasks as AsyncTasks
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import Batch, EntityKey, Stored
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.outcomes import Absent, Conflict, Policy
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import Move
from lazulite_patterns.transactions.moving import PendingMove
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
            again = archive.message(keys[-1], _mark(table_client, keys[-1]))
            run(work.send(again), NoFailpoints())
            run(work.drain(30, 1), NoFailpoints())
            moved = former.get(keys[-1])
            assert moved is not None
            assert (current.get(keys[-1]), moved["Version"]) == (None, latest)
            assert len(list(target_client.query_entities("PartitionKey eq 'p'"))) == len(
                list(former.where(scan=True))
            ), "no inbox row"
        else:
            assert left is not None, "a move that was not started changes nothing"
        queue_client.clear_messages()

    assert sum(1 for _ in every_fault(attempt, rival)) == 7 * (3 + 8), "the start has three requests, a worker eight"


def _mark(client: TableClient, key: EntityKey) -> PendingMove:
    """Return the mark of the source; one that no source has if it is gone."""
    found = next(iter(client.query_entities(f"PartitionKey eq 'p' and RowKey eq '{key.row_key}'")), None)
    mark = None if found is None else PendingMove.of(Stored({**found}, ""))
    return PendingMove("archive", "moved", "p") if mark is None else mark


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


@entity
class Account:
    department: Column[str] = partition()
    id: Column[str] = row()
    name: Column[str] = index()
    email: Column[str | None] = unique(default=None)


def transfer(client: TableClient) -> tuple[Table[Account], Move[Account]]:
    table = Table(client, Account)
    return table, Move("transfer", source=table, target=table, convert=lambda each: replace(each, department="Law"))


def test_a_unique_value_does_not_move_within_its_table(table_client: TableClient, queue_client: QueueClient) -> None:
    accounts, move = transfer(table_client)
    jones = Account("Sales", "1", "Jones", "a@b")
    accounts.insert(jones)
    before = sorted(each["RowKey"] for each in table_client.list_entities())
    with (
        Tasks(queue_client, [move]) as tasks,
        pytest.raises(EntityValueError, match=r"Account\.email is unique: Move within one table cannot keep it"),
    ):
        tasks.start(move, jones)
    assert sorted(each["RowKey"] for each in table_client.list_entities()) == before, "nothing was written"
    assert "_Moving" not in table_client.get_entity("Sales", "1")
    assert queue_client.peek_messages() == []


@entity
class Member:
    department: Column[str] = partition()
    id: Column[str] = row()
    email: Column[str] = unique(table="SharedEntries")


def test_a_unique_value_does_not_move_between_tables_that_share_its_entries(
    connection_string: str, table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    source, target = (
        Table.open(connection_string, Member, table=client.table_name) for client in (table_client, target_client)
    )
    member = Member("Sales", uuid4().hex, f"{uuid4()}@b")
    source.insert(member)
    move = Move("archive", source=source, target=target)
    with (
        Tasks(queue_client, [move]) as tasks,
        pytest.raises(EntityValueError, match=r"Member\.email is unique: Move between tables that share entries"),
    ):
        tasks.start(move, member)
    assert "_Moving" not in table_client.get_entity("Sales", member.id)


def test_an_entity_without_a_unique_value_moves_within_its_table(
    table_client: TableClient, queue_client: QueueClient
) -> None:
    accounts, move = transfer(table_client)
    accounts.insert(Account("Sales", "1", "Jones"))
    with Tasks(queue_client, [move]) as tasks:
        tasks.start(move, EntityKey("Sales", "1"))
        tasks.drain()
    assert accounts.by(name="Jones").one() == Account("Law", "1", "Jones")
    accounts.update(EntityKey("Law", "1"), lambda each: replace(each, email="a@b"))
    assert accounts.by(email="a@b").one().department == "Law"
    assert list(audit(accounts)) == []


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
        Move("archive", source=current, target=Table(target_client, Bag, policy=Policy(marks=0)))
    elsewhere = TableClient("http://127.0.0.1:1/other?sig=none", table_client.table_name)
    with pytest.raises(ValueError, match="different accounts"):
        Move("archive", source=current, target=Table(elsewhere, Bag))


def test_a_second_start_is_the_same_move_and_another_one_waits(
    table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, former, archive = employees(table_client, target_client)
    other: Move[Employee] = Move("legal", source=current, target=former)
    jones = Employee("Sales", "1", "a@b")
    current.insert(jones)
    with Tasks(queue_client, [archive, other]) as tasks:
        assert tasks.start(archive, jones) == tasks.start(archive, EntityKey("Sales", "1"))
        with pytest.raises(Conflict, match="the move archive is under way"):
            tasks.start(other, jones)
        read = current.get(jones)
        assert read is not None
        current.update(jones, lambda each: Employee(each.department, each.id, "new"))
        with pytest.raises(Conflict):
            tasks.start(archive, read)
        assert tasks.drain() == 2
    assert former.get(jones) == Employee("Sales", "1", "new")


def test_what_a_reader_deletes_while_the_entity_is_in_both_tables_stays_deleted(
    table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, former, archive = employees(table_client, target_client)
    jones = Employee("Sales", "1", "a@b")
    current.insert(jones)

    class Reader:
        """Deletes the copy as soon as it is there; then the worker's answer is lost."""

        def before(self, effect: Effect[object]) -> None: ...

        def after(self, effect: Effect[object]) -> None:
            if isinstance(effect, Batch) and former.delete(jones):
                raise ResultUnknown("lost")

    with Tasks(queue_client, [archive], runtime=Runtime(failpoints=Reader())) as tasks:
        tasks.start(archive, jones)
        assert tasks.drain() == 1
    assert (current.get(jones), former.get(jones)) == (None, None)
    assert list(target_client.list_entities()) == [], "the inbox row is gone, too"


def test_an_entity_that_was_changed_in_both_tables_stays_in_both(
    table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current, former, archive = employees(table_client, target_client)
    jones = Employee("Sales", "1", "a@b")
    current.insert(jones)

    class Writers:
        """Change the source, and delete the copy, as soon as it is there."""

        def before(self, effect: Effect[object]) -> None: ...

        def after(self, effect: Effect[object]) -> None:
            if isinstance(effect, Batch) and former.delete(jones):
                current.update(jones, lambda each: Employee(each.department, each.id, "new"))

    with Tasks(queue_client, [archive], max_dequeue=1, runtime=Runtime(failpoints=Writers())) as tasks:
        tasks.start(archive, jones)
        tasks.drain()
        assert tasks.poison.get_queue_properties().approximate_message_count == 1
        tasks.poison.delete_queue()
    assert (current.get(jones), former.get(jones)) == (Employee("Sales", "1", "new"), None)
    assert list(former.where(scan=True)) == [], "no query returns the inbox row"
    assert len(list(target_client.list_entities())) == 1
