"""Listings within the partition and in other ones, on the service."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import Column, Index, Listing, SchemaError, column, columns, entity, partition, row
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.indexes import check as kinds
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation import Fault, FaultAt, every_fault

from ..declared import indexed

LATER = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))


@entity
class Person:
    department: Column[str] = partition()
    id: Column[int] = row(width=4)
    surname: Column[str | None]
    city: Column[str] = column(default="Rome")


ANN, BOB, CAT = Person("Sales", 1, "Jones"), Person("Sales", 2, "Jones"), Person("IT", 3, "Jones", "Oslo")


@pytest.fixture
def cities(connection_string: str) -> Iterator[TableClient]:
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0) as client:
        client.create_table()
        yield client
        client.delete_table()


def declared(cities: TableClient) -> list[Index]:
    return [Listing("surname", "surname"), Listing("city", "city", place="table", table=cities.table_name)]


def table(client: TableClient, cities: TableClient, runtime: Runtime | None = None) -> Table[Person]:
    quick = Policy(first_wait_seconds=0.001)
    return indexed(
        Person, declared(cities), lambda: Table(client, Person, clients=[cities], runtime=runtime, policy=quick)
    )


def ids(found: Iterable[Person]) -> list[int]:
    return sorted(each.id for each in found)


def check(staff: Table[Person], cities: TableClient, *everyone: Person) -> None:
    """Each entity is in its lists, and there is one row for each list."""
    for each in everyone:
        same = [other for other in everyone if other.department == each.department and other.surname == each.surname]
        assert each.surname is None or ids(staff.by(surname=each.surname, department=each.department)) == [
            other.id for other in same
        ]
        assert ids(staff.by(city=each.city)) == [other.id for other in everyone if other.city == each.city]
    surnames = {(each.department, each.surname) for each in everyone if each.surname is not None}
    assert len(list(staff.client.list_entities())) == len(everyone) + len(surnames)
    assert len(list(cities.list_entities())) == len({each.city for each in everyone})


def test_every_write_keeps_the_lists(table_client: TableClient, cities: TableClient) -> None:
    staff = table(table_client, cities)
    for each in (ANN, BOB, CAT):
        staff.insert(each)
    check(staff, cities, ANN, BOB, CAT)
    assert staff.where(columns(Person).department == "Sales").count() == 2, "lists are no entities"
    ann = staff.update(ANN, lambda each: replace(each, surname="Smith", city="Oslo"))
    check(staff, cities, ann, BOB, CAT)
    staff.merge(BOB, surname="Smith")
    bob = replace(BOB, surname="Smith")
    check(staff, cities, ann, bob, CAT)
    assert ids(staff.by(Person.surname.starts_with("Smi"), department="Sales")) == [1, 2]
    with staff.transaction() as partition:
        partition.insert(Person("Sales", 4, "Smith"))
        partition.merge(ann, surname="Cook")
        partition.merge(bob, surname="Cook")
    check(staff, cities, replace(ann, surname="Cook"), replace(bob, surname="Cook"), CAT, Person("Sales", 4, "Smith"))
    for number in (1, 2, 4):
        staff.delete(Person("Sales", number, None))
    staff.upsert(replace(CAT, surname=None))
    check(staff, cities, replace(CAT, surname=None))


def test_a_rename_touches_three_rows_in_one_transaction(table_client: TableClient) -> None:
    count = FaultAt(-1, Fault.BUSY)
    staff = indexed(
        Person,
        [Listing("surname", "surname")],
        lambda: Table(table_client, Person, runtime=Runtime(failpoints=count)),
    )

    def rows() -> dict[str, object]:
        return {each["RowKey"]: each.metadata["etag"] for each in table_client.list_entities()}

    steps: list[Callable[[], object]] = [
        lambda: staff.insert(ANN),
        lambda: staff.insert(BOB),
        lambda: staff.insert(Person("Sales", 5, "Smith")),
        lambda: staff.merge(ANN, surname="Smith"),
        lambda: list(staff.by(surname="Smith", department="Sales")),
    ]
    costs = []
    before: dict[str, object] = {}
    for number, step in enumerate(steps):
        before = rows() if number == 3 else before
        start = count.count
        step()
        costs.append(count.count - start)
        if number == 3:
            assert sum(etag != before[key] for key, etag in rows().items()) == 3
    assert costs == [3, 3, 3, 2 + 2, 1 + 2]


def test_writers_at_the_same_time_lose_nothing(table_client: TableClient, cities: TableClient) -> None:
    staff = table(table_client, cities)
    everyone = [Person("Sales" if number % 2 else "IT", number, "Jones") for number in range(16)]

    def write(each: Person) -> None:
        for _ in range(8):
            try:
                staff.upsert(each)
            except Exception as error:  # noqa: BLE001 - all writers want the same row
                assert type(error).__name__ == "Conflict"
            else:
                return
        raise AssertionError("no attempt succeeded")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, everyone))
    check(staff, cities, *everyone)


def test_a_list_goes_on_in_another_row(table_client: TableClient, cities: TableClient) -> None:
    """The service takes a row of almost 1 MiB, and the next one."""
    staff = table(table_client, cities)
    staff.insert(ANN)
    (row,) = cities.list_entities()
    texts = [f'[["Sales","{"9" * 30_700}{number:02d}","1.a"]]' for number in range(17)]
    cities.update_entity({**row, **{f"List{number + 1:02d}": text for number, text in enumerate(texts)}})
    staff.insert(BOB)
    staff.insert(Person("Sales", 7, "Smith"))
    assert [(each["RowKey"], str(each["List00"]).count("Sales")) for each in cities.list_entities()] == [
        ("0000", 1),
        ("0001", 2),
    ]
    staff.delete(Person("Sales", 7, None))
    staff.delete(BOB)
    assert [each["RowKey"] for each in cities.list_entities()] == ["0000"]


def test_every_fault_leaves_each_entity_in_its_lists(table_client: TableClient, cities: TableClient) -> None:
    changed = replace(ANN, surname="Smith", city="Oslo")
    staff = table(table_client, cities)
    auditor = table(table_client, cities, LATER)

    def attempt(fault: FaultAt) -> None:
        fault.number *= 2  # Every second place; the model checker goes through all of them.
        for client in (table_client, cities):
            for each in list(client.list_entities()):
                client.delete_entity(each)
        staff.insert(ANN)
        staff.insert(BOB)
        if fault.fault is Fault.BUSY:  # It waits for three seconds; the simulation has it.
            return
        try:
            table(table_client, cities, Runtime(failpoints=fault)).update(ANN, lambda _: changed)
        except Crash:
            found = staff.get(ANN)
            assert found in (ANN, changed)
            assert found is not None
            assert {each.kind for each in audit(auditor, repair=True)} <= {kinds.NO_FIT_LISTED}
            assert list(audit(auditor)) == []
            check(staff, cities, found, BOB)
        else:
            check(staff, cities, changed, BOB)

    assert sum(1 for _ in every_fault(attempt)) > 10


def test_the_auditor_finds_what_other_programs_changed(table_client: TableClient, cities: TableClient) -> None:
    staff = table(table_client, cities)
    staff.insert(ANN)
    staff.insert(BOB)
    table_client.update_entity({"PartitionKey": "Sales", "RowKey": "0001", "surname": "Smith", "city": "Oslo"})
    assert sorted(each.kind for each in audit(staff)) == sorted([kinds.NO_ENTRY] * 2 + [kinds.NO_FIT_LISTED] * 2)
    for each in audit(staff, repair=True):
        assert each.repaired is (each.kind == kinds.NO_ENTRY), "the others wait for the grace"
    assert all(each.repaired for each in audit(table(table_client, cities, LATER), repair=True))
    check(staff, cities, replace(ANN, surname="Smith", city="Oslo"), BOB)


def test_a_damaged_list_is_deleted_and_written_anew(table_client: TableClient, cities: TableClient) -> None:
    staff, later = table(table_client, cities), table(table_client, cities, LATER)
    staff.insert(ANN)
    staff.insert(BOB)
    for client in (table_client, cities):
        for each in list(client.list_entities()):
            if each.get("_Type") == "_Index":
                client.update_entity({**each, "List00": "["})
    assert {each.kind for each in audit(staff)} == {kinds.DAMAGED_LIST}
    found = [*audit(later, repair=True), *audit(later, repair=True)]
    assert {each.kind for each in found} == {kinds.DAMAGED_LIST, kinds.NO_ENTRY}
    assert all(each.repaired for each in found)
    check(staff, cities, ANN, BOB)


def test_wrong_listings_are_rejected() -> None:
    with pytest.raises(SchemaError):
        Listing("a")
    with pytest.raises(SchemaError):
        Listing("a", "surname", table="Other")


async def test_asynchronous_programs_have_the_same(
    connection_string: str, table_client: TableClient, cities: TableClient
) -> None:
    async with (
        AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client,
        AsyncTableClient.from_connection_string(connection_string, cities.table_name) as lists,
    ):
        staff = indexed(Person, declared(cities), lambda: AsyncTable(client, Person, clients=[lists]))
        await staff.insert(ANN)
        await staff.insert(CAT)
        await staff.update(ANN, lambda each: replace(each, surname="Smith", city="Oslo"))
        assert [each.id async for each in staff.by(surname="Smith", department="Sales")] == [1]
        assert sorted([each.id async for each in staff.by(city="Oslo")]) == [1, 3]
        assert await staff.delete(ANN)
        assert [each.id async for each in staff.by(city="Oslo")] == [3]
