"""Indexes with copies, on the service."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import Column, Index, QueryError, SchemaError, column, entity, partition, row
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.indexes import check as kinds
from lazulite_patterns.indexes.entries import PENDING
from lazulite_patterns.indexes.lookup import FieldCopies
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation import Fault, FaultAt, every_fault

from ..declared import indexed


@entity
class Person:
    department: Column[str] = partition()
    id: Column[int] = row(width=4)
    email: Column[str | None]
    age: Column[int] = column(form="int32", name="Age", default=30)
    salary: Column[int] = column(default=2**40)
    notes: Column[str] = column(default="")


ANN = Person("Sales", 1, "ann@contoso.com")
BOB = Person("Sales", 2, "bob@contoso.com", 40)
DECLARED = [
    Index("mail", "email", copy=["age", "salary"]),
    Index("age", "age", copy=["email"], within_partition=True),
]


@pytest.fixture
def staff(table_client: TableClient) -> Table[Person]:
    return indexed(Person, DECLARED, lambda: Table(table_client, Person))


def check(staff: Table[Person], *everyone: Person) -> None:
    """Each copy is that of the entity, and nothing is left behind."""
    for each in everyone:
        key = EntityKey(each.department, f"{each.id:04d}")
        assert list(staff.by(email=each.email).copies()) == [FieldCopies(key, {"age": each.age, "salary": each.salary})]
        assert FieldCopies(key, {"email": each.email}) in list(staff.by(age=each.age, department="Sales").copies())
    rows = list(staff.client.list_entities())
    assert len(rows) == 3 * len(everyone)
    assert not any(each.get(PENDING) for each in rows)


def test_copies_are_those_of_the_entity(staff: Table[Person]) -> None:
    staff.insert(ANN)
    staff.insert(BOB)
    check(staff, ANN, BOB)
    ann = staff.update(ANN, lambda each: replace(each, salary=7))
    check(staff, ann, BOB)
    ann = staff.update(ANN, lambda each: replace(each, email="a@contoso.com", age=31))
    check(staff, ann, BOB)
    staff.merge(BOB, salary=8)
    bob = replace(BOB, salary=8)
    check(staff, ann, bob)
    staff.merge(BOB, email="b@contoso.com")
    check(staff, ann, replace(bob, email="b@contoso.com"))
    with staff.transaction() as partition:
        partition.merge(ANN, salary=1)
        partition.delete(BOB)
    check(staff, replace(ann, salary=1))
    staff.delete(ANN)
    check(staff)


def test_wrong_indexes_and_look_ups(staff: Table[Person]) -> None:
    for wrong in (
        lambda: Index("a", "email", unique=True, copy=["age"]),
        lambda: indexed(Person, [Index("a", "email", copy=["id"])], lambda: Table(staff.client, Person)),
        lambda: indexed(Person, [Index("a", "email", copy=["no"])], lambda: Table(staff.client, Person)),
    ):
        with pytest.raises(SchemaError):
            wrong()
    plain = indexed(Person, [Index("plain", "email")], lambda: Table(staff.client, Person))
    with pytest.raises(QueryError, match="no index with copies"):
        list(plain.by(email="x").copies())


def test_a_crash_leaves_a_mark_which_the_reader_and_the_auditor_resolve(staff: Table[Person]) -> None:
    """Crashes and lost answers at each effect of an update: a reader sees the value before or the one after."""
    quick = Policy(first_wait_seconds=0.001)
    later = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))
    changed = replace(ANN, salary=7, age=50)
    auditor = indexed(Person, DECLARED, lambda: Table(staff.client, Person, runtime=later))

    def attempt(fault: FaultAt) -> None:
        for each in list(staff.client.list_entities()):
            staff.client.delete_entity(each)
        staff.insert(ANN)
        broken = indexed(
            Person,
            DECLARED,
            lambda: Table(staff.client, Person, runtime=Runtime(failpoints=fault), policy=quick),
        )
        if fault.fault is Fault.BUSY:  # It waits for three seconds; the simulation has it.
            return
        try:
            broken.update(ANN, lambda _: changed)
        except Crash:
            found = staff.get(ANN)
            assert found in (ANN, changed)
            assert found is not None
            assert [each.fields["salary"] for each in staff.by(email=ANN.email).copies()] == [found.salary]
            findings = list(audit(auditor, repair=True))
            assert {each.kind for each in findings} <= {kinds.OLD_MARK}
            assert list(audit(auditor)) == []
            check(staff, found)
        else:
            check(staff, changed)

    assert sum(1 for _ in every_fault(attempt)) > 15


def test_the_auditor_finds_a_copy_that_another_program_changed(staff: Table[Person]) -> None:
    staff.insert(ANN)
    staff.client.update_entity({"PartitionKey": "Sales", "RowKey": "0001", "Age": 77})
    found = [each.kind for each in audit(staff, repair=True)]
    assert sorted(found) == sorted([kinds.OTHER_COPY, kinds.NO_FIT, kinds.NO_ENTRY])
    assert [each.fields["age"] for each in staff.by(email=ANN.email).copies()] == [77]


def test_costs_are_those_of_the_page(table_client: TableClient) -> None:
    count = FaultAt(-1, Fault.BUSY)
    staff = indexed(Person, DECLARED[:1], lambda: Table(table_client, Person, runtime=Runtime(failpoints=count)))
    steps: list[Callable[[], object]] = [
        lambda: staff.insert(ANN),
        lambda: staff.update(ANN, lambda each: replace(each, salary=1)),
        lambda: staff.update(ANN, lambda each: replace(each, email="x")),
        lambda: staff.merge(ANN, notes="new"),
        lambda: list(staff.by(email="x").copies()),
        lambda: staff.delete(ANN),
    ]
    found = []
    for step in steps:
        before = count.count
        step()
        found.append(count.count - before)
    assert found == [2 + 2, 2 + 2, 2 + 2 + 3, 1, 1, 2 + 3]


@pytest.fixture
def others(connection_string: str) -> Iterator[TableClient]:
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0) as client:
        client.create_table()
        yield client
        client.delete_table()


async def test_asynchronous_programs_have_the_same(
    connection_string: str, table_client: TableClient, others: TableClient
) -> None:
    declared = [Index("mail", "email", copy=["age"], table=others.table_name)]
    async with (
        AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client,
        AsyncTableClient.from_connection_string(connection_string, others.table_name) as entries,
    ):
        staff = indexed(Person, declared, lambda: AsyncTable(client, Person, clients=[entries]))
        await staff.insert(ANN)
        await staff.update(ANN, lambda each: replace(each, age=31))
        assert [each.fields async for each in staff.by(email=ANN.email).copies()] == [{"age": 31}]
        assert await staff.delete(ANN)
    assert list(others.list_entities()) == []
