"""What lost messages leave of moves and sagas is planted and found; the repair runs a move."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from azure.data.tables import TableClient
from azure.storage.queue import QueueClient

from lazulite_patterns import Index
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.auditing.walk import Walk
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Effect, perform
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import Batch, EntityKey, Read
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import Move, Saga, Step
from lazulite_patterns.transactions.checks import LEFT, NOT_DONE, NOT_MOVED, SagaCheck
from lazulite_patterns.transactions.tasks import Tasks

from ..declared import indexed
from .test_move import Employee, Former

KEY = EntityKey("Sales", "1")
JONES = Employee("Sales", "1", "jones@contoso.com")


class Killed:
    """Failpoints: the process ends after it wrote the entity to a table."""

    def __init__(self, table: str) -> None:
        self._table = table

    def before(self, effect: Effect[object]) -> None: ...

    def after(self, effect: Effect[object]) -> None:
        if isinstance(effect, Batch) and effect.table == self._table:
            raise Crash


def stopped(queue: QueueClient, move: Move[Employee], target: TableClient) -> Tasks:
    """Let a worker be killed after the copy, and lose the message."""
    with Tasks(queue, [move], runtime=Runtime(failpoints=Killed(target.table_name))) as tasks:
        tasks.start(move, KEY)
        with pytest.raises(Crash):
            tasks.drain()
    queue.clear_messages()
    return Tasks(queue, [move])


@pytest.fixture(params=["copy", "convert"])
def move(
    request: pytest.FixtureRequest, table_client: TableClient, target_client: TableClient
) -> Iterator[Move[Employee]]:
    current = indexed(Employee, [Index("email", "email", within_partition=True)], lambda: Table(table_client, Employee))
    if request.param == "copy":
        yield Move(
            "archive",
            source=current,
            target=indexed(Employee, [Index("email", "email")], lambda: Table(target_client, Employee)),
        )
    else:
        convert = lambda each: Former("2014", each.id, each.email)  # noqa: E731
        yield Move("archive", source=current, target=Table(target_client, Former), convert=convert)


def test_a_move_whose_message_is_lost_is_found_and_repeated(
    move: Move[Employee], table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current = indexed(Employee, [Index("email", "email", within_partition=True)], lambda: Table(table_client, Employee))
    for each in (JONES, replace(JONES, id="2")):
        current.insert(each)
    with stopped(queue_client, move, target_client) as tasks:
        assert current.get(KEY) == JONES
        (young,) = audit(tasks, repair=True)
        assert (young.kind, young.key, young.repaired) == (NOT_MOVED, KEY, False), "its worker may be at work"
        (found,) = audit(tasks, repair=True, grace_seconds=-1)
        assert found.repaired
        assert (current.get(KEY), len(list(target_client.query_entities("RowKey eq '1'")))) == (None, 1)
        assert list(audit(tasks)) == []
        assert current.get(EntityKey("Sales", "2")) is not None


def test_an_entity_that_was_put_back_or_changed_is_no_rest_of_a_move(
    move: Move[Employee], table_client: TableClient, queue_client: QueueClient
) -> None:
    current = indexed(Employee, [Index("email", "email", within_partition=True)], lambda: Table(table_client, Employee))
    current.insert(JONES)
    with Tasks(queue_client, [move]) as tasks:
        tasks.start(move, KEY)
        tasks.drain()
        current.insert(JONES)
        assert list(audit(tasks)) == [], "it was written after its copy"
        current.update(KEY, lambda each: replace(each, email="new"))
        assert list(audit(tasks)) == []


def test_an_inbox_row_without_a_source_is_found_and_deleted(
    move: Move[Employee], table_client: TableClient, target_client: TableClient, queue_client: QueueClient
) -> None:
    current = indexed(Employee, [Index("email", "email", within_partition=True)], lambda: Table(table_client, Employee))
    current.insert(JONES)
    with stopped(queue_client, move, target_client) as tasks:
        current.delete(KEY)
        (young,) = audit(tasks, repair=True)
        assert (young.kind, young.repaired) == (LEFT, False)
        (found,) = audit(tasks, repair=True, grace_seconds=-1)
        assert found.repaired
        assert [each["RowKey"] for each in target_client.query_entities("PartitionKey ne 'x'", select="RowKey")]
        assert list(audit(tasks)) == []


def test_a_saga_that_is_not_done_is_found_when_it_is_old(table_client: TableClient, queue_client: QueueClient) -> None:
    records = Table(table_client, Bag)
    saga = Saga("hire", records=records, steps=[Step("badge", lambda _: 1), Step("mailbox", lambda _: 1)])
    records.insert(Bag(PartitionKey="an-id", RowKey="hire", State="running", Results=json.dumps({"badge": 1})))
    records.insert(Bag(PartitionKey="done", RowKey="hire", State="done", Results="{}"))
    with Tasks(queue_client, [saga]) as tasks:
        assert list(audit(tasks)) == [], "it may be at work"
    driver = Driver({table_client.table_name: table_client})
    check = SagaCheck(table_client.table_name, "hire")
    for key, count in (("an-id", 1), ("done", 0)):
        row = driver.run(perform(Read(table_client.table_name, EntityKey(key, "hire"))))
        assert row is not None
        assert row.timestamp is not None
        later = row.timestamp + timedelta(seconds=601)
        found = driver.run(Walk([check], policy=Policy()).checks[0].examine(table_client.table_name, row, later))
        assert [each.kind for each in found] == [NOT_DONE] * count
