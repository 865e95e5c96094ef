"""Each damage of a table with indexes is found and repaired; what needs a person is only found."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, UpdateMode
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import Column, EntityValueError, Index, entity, partition, row
from lazulite_patterns.aio.auditing import audit as audit_async
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.indexes import check as kinds
from lazulite_patterns.table.check import UNREADABLE
from lazulite_patterns.table.table import Table

from ..declared import indexed


@entity
class Person:
    department: Column[str] = partition()
    id: Column[int] = row(width=4)
    email: Column[str | None]
    last: Column[str]
    age: Column[int]


PEOPLE = [Person("IT", number, f"p{number}@contoso.com", f"Jones {number}", 20 + number) for number in range(6)]
LATER = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))


@pytest.fixture
def ages(connection_string: str) -> Iterator[TableClient]:
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0) as client:
        client.create_table()
        yield client
        client.delete_table()


def declared(ages: TableClient) -> list[Index]:
    return [
        Index("email", "email", unique=True),
        Index("name", "last", within_partition=True),
        Index("age", "age", table=ages.table_name),
    ]


def table(client: TableClient, ages: TableClient, runtime: Runtime | None = None) -> Table[Person]:
    return indexed(Person, declared(ages), lambda: Table(client, Person, clients=[ages], runtime=runtime))


def damage(client: TableClient, ages: TableClient) -> None:
    """Plant each kind of damage, and one of some kinds within the partition, too."""
    entries = {str(each["RowKey"]): each for each in client.query_entities("PartitionKey eq 'IT'")}
    within = {str(each["TargetRow"]): each for key, each in entries.items() if key.startswith("_Index!")}
    client.delete_entity(within["0000"])
    client.delete_entity("IT", "0001")  # Its three entries lead nowhere.
    client.update_entity({"PartitionKey": "IT", "RowKey": "0002", "email": "other@contoso.com"})
    client.update_entity({"PartitionKey": "IT", "RowKey": "0003", "email": "p4@contoso.com"})
    claim = {"PartitionKey": "_Index!email!p5@contoso.com", "RowKey": "", "TargetPartition": "IT", "TargetRow": "9"}
    client.upsert_entity(claim, mode=UpdateMode.REPLACE)
    ages.create_entity({"PartitionKey": "_Index!age!5", "RowKey": "x"})
    client.create_entity({"PartitionKey": "IT", "RowKey": "no number", "_Type": "Robot"})


EXPECTED = Counter(
    {
        kinds.NO_ENTRY: 2,  # A name, and other@contoso.com.
        kinds.NO_ENTITY: 4,  # Three entries of 0001, and the claim for 9.
        kinds.NO_FIT: 2,  # Those of 0002 and of 0003 before.
        kinds.TWICE: 1,
        kinds.TAKEN: 1,
        kinds.DAMAGED: 1,
        UNREADABLE: 1,
    }
)


def counted(findings: list[Finding]) -> Counter[str]:
    return Counter(each.kind for each in findings)


def test_each_damage_is_found_and_repaired(table_client: TableClient, ages: TableClient) -> None:
    staff = table(table_client, ages)
    for each in PEOPLE:
        staff.insert(each)
    assert list(audit(staff)) == []
    damage(table_client, ages)
    assert counted(list(audit(staff))) == EXPECTED
    young = list(audit(staff, repair=True))
    assert all(each.repaired is (each.kind == kinds.NO_ENTRY) for each in young), "the others wait for the grace"
    later = table(table_client, ages, LATER)
    for _ in range(2):  # A claim may be deleted first, and its entry inserted by the second audit.
        list(audit(later, repair=True))
    assert counted(list(audit(later))) == Counter({kinds.TWICE: 1, UNREADABLE: 1})
    assert [each.id for each in staff.by(email="p5@contoso.com")] == [5]
    assert [each.id for each in staff.by(email="other@contoso.com")] == [2]
    staff.update(PEOPLE[3], lambda each: replace(each, email=None))
    staff.client.delete_entity("IT", "no number")
    assert list(audit(later)) == []


async def test_asynchronous_programs_audit_too(
    connection_string: str, table_client: TableClient, ages: TableClient
) -> None:
    staff = table(table_client, ages)
    for each in PEOPLE:
        staff.insert(each)
    damage(table_client, ages)
    async with (
        AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client,
        AsyncTableClient.from_connection_string(connection_string, ages.table_name) as others,
    ):
        many = indexed(Person, declared(ages), lambda: AsyncTable(client, Person, clients=[others], runtime=LATER))
        assert counted([each async for each in audit_async(many)]) == EXPECTED
        for _ in range(2):
            assert [each async for each in audit_async(many, repair=True)]
        assert counted([each async for each in audit_async(many)]) == Counter({kinds.TWICE: 1, UNREADABLE: 1})


def test_a_value_that_no_entry_can_have_is_a_finding(table_client: TableClient, ages: TableClient) -> None:
    """Another program wrote it; writes that take it away are done, writes that would add it are rejected."""
    staff = table(table_client, ages)
    for each in PEOPLE[:2]:
        staff.insert(each)
    table_client.update_entity({"PartitionKey": "IT", "RowKey": "0000", "email": "line1\nline2"})
    found = [each for each in audit(staff, repair=True) if each.kind == kinds.NO_PLACE]
    assert [(each.key.row_key, each.repaired) for each in found] == [("0000", False)]
    with pytest.raises(EntityValueError, match="email"):
        staff.merge(PEOPLE[1], email="a\nb")
    staff.update(PEOPLE[0], lambda each: replace(each, email="good"))
    assert [each.id for each in staff.by(email="good")] == [0]
    table_client.update_entity({"PartitionKey": "IT", "RowKey": "0000", "email": "line1\nline2"})
    assert staff.delete(PEOPLE[0])
