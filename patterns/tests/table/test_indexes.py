"""Tables with indexes, on the service."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import (
    Busy,
    Column,
    Index,
    NotUnique,
    QueryError,
    SchemaError,
    column,
    columns,
    entity,
    partition,
    row,
)
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Write
from lazulite_patterns.entities.conditions import Compared
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.keys import Ticks, decimal, exact_ticks, integer, literal, text, uuid
from lazulite_patterns.outcomes import Absent, Conflict, Exists, Policy
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation import Fault, FaultAt, every_fault

from ..declared import indexed


@entity
class Person:
    department: Column[str] = partition(literal("dept"), text())
    id: Column[int] = row(width=4)
    email: Column[str | None]
    last: Column[str] = column(default="Jones")
    first: Column[str] = column(default="Ann")
    age: Column[int] = column(default=30)
    notes: Column[str] = column(default="")


@entity
class Visit:
    site: Column[str] = partition()
    id: Column[UUID] = row(uuid())
    day: Column[date]
    time: Column[datetime]
    cost: Column[Decimal]
    rating: Column[float]
    octets: Column[bytes]
    count: Column[int] = column(form="int32")
    at: Column[Ticks]


ANN = Person("Sales", 1, "ann@contoso.com")
BOB = Person("Sales", 2, "bob@contoso.com", "Jonas", "Bob", 40)
CAT = Person("IT", 3, "cat@contoso.com", "Jones", "Cat", 30)
SALES = "dept!Sales"


def indexes(ages: str) -> list[Index]:
    return [
        Index("email", "email", unique=True),
        Index("name", "last", "first", within_partition=True),
        Index("age", "age", table=ages),
        Index("first", "department", "first", unique=True, within_partition=True),
    ]


@pytest.fixture
def ages(connection_string: str) -> Iterator[TableClient]:
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0) as client:
        client.create_table()
        yield client
        client.delete_table()


@pytest.fixture
def staff(table_client: TableClient, ages: TableClient) -> Table[Person]:
    return indexed(Person, indexes(ages.table_name), lambda: Table(table_client, Person, clients=[ages]))


def check(staff: Table[Person], ages: TableClient, everyone: list[Person]) -> None:
    """Each entity is found by each of its values, and no entry is left behind."""
    assert list(staff.where(scan=True)) == everyone
    for each in everyone:
        assert each.email is None or list(staff.by(email=each.email)) == [each]
        assert each in list(staff.by(age=each.age))
        assert each in list(staff.by(last=each.last, first=each.first, department=each.department))
        assert list(staff.by(department=each.department, first=each.first)) == [each]
    emails = sum(each.email is not None for each in everyone)
    assert len(list(staff.client.list_entities())) == 3 * len(everyone) + emails
    assert len(list(ages.list_entities())) == len(everyone)


def test_every_write_keeps_the_entries(staff: Table[Person], ages: TableClient) -> None:
    for each in (CAT, ANN, BOB):
        staff.insert(each)
    check(staff, ages, [CAT, ANN, BOB])
    with pytest.raises(Exists):
        staff.insert(replace(ANN, email="other@contoso.com"))
    assert list(staff.by(email="other@contoso.com")) == []
    ann = staff.update(ANN, lambda each: replace(each, last="Smith", email="smith@contoso.com", age=-5))
    check_without_superfluous(staff, [CAT, ann, BOB])
    staff.merge(BOB, age=41, first="Rob")
    bob = replace(BOB, age=41, first="Rob")
    staff.merge(CAT, notes="new")
    cat = replace(CAT, notes="new")
    check_without_superfluous(staff, [cat, ann, bob])
    cat = replace(cat, email=None)
    staff.upsert(cat)
    check_without_superfluous(staff, [cat, ann, bob])
    found = staff.get(ann)
    assert found is not None
    object.__setattr__(found, "age", 77)
    staff.replace(found)
    assert [each.id for each in staff.by(age=77)] == [1]
    with pytest.raises(Conflict):
        staff.replace(found)
    assert staff.delete(cat) is True
    assert staff.delete(cat) is False
    for missing in (lambda: staff.merge(CAT, age=1), lambda: staff.update(CAT, lambda each: each)):
        with pytest.raises(Absent):
            missing()
    check_without_superfluous(staff, [replace(ann, age=77), bob])


def check_without_superfluous(staff: Table[Person], everyone: list[Person]) -> None:
    assert list(staff.where(scan=True)) == everyone
    for each in everyone:
        assert each.email is None or list(staff.by(email=each.email)) == [each]
        assert each in list(staff.by(age=each.age))
        assert each in list(staff.by(last=each.last, first=each.first, department=each.department))


def test_look_ups_by_values_and_prefixes(staff: Table[Person]) -> None:
    for each in (ANN, BOB, CAT):
        staff.insert(each)
    assert list(staff.by(last="Jones", department="Sales")) == [ANN]
    assert list(staff.by(Person.last.starts_with("Jon"), department="Sales")) == [BOB, ANN]
    assert list(staff.by(Person.first.starts_with("A"), last="Jones", department="Sales")) == [ANN]
    assert list(staff.by(Person.email.starts_with("b"))) == [BOB]
    assert {each.id for each in staff.by(age=30)} == {1, 3}
    assert list(staff.by(age=31)) == []
    wrongs: list[Callable[[], Iterable[Person]]] = [
        lambda: staff.by(size=1),
        staff.by,
        lambda: staff.by(last="Jones"),
        lambda: staff.by(email="a", department="Sales"),
        lambda: staff.by(Compared(Person, "age", "starts with", 3)),
        lambda: Table(staff.client, Person).by(email="a"),
    ]
    for wrong in wrongs:
        with pytest.raises(QueryError):
            list(wrong())


def test_entries_are_no_entities(staff: Table[Person]) -> None:
    for each in (CAT, ANN, BOB):
        staff.insert(each)
    e = columns(Person)
    assert list(staff.where(e.department == "Sales")) == [ANN, BOB]
    assert staff.where(e.department >= "A").count() == 3
    assert [each.id for each in staff.where(scan=True).page(2).items] == [3, 1]
    assert list(staff.partitions()) == ["dept!IT", "dept!Sales"]


def test_one_transaction_with_entries(staff: Table[Person], ages: TableClient) -> None:
    staff.insert(ANN)
    with staff.transaction() as partition:
        partition.insert(BOB)
        partition.merge(ANN, age=50)
    assert [each.id for each in staff.by(age=50)] == [1]
    assert list(staff.by(email="bob@contoso.com")) == [BOB]
    with pytest.raises(Exists) as caught, staff.transaction() as partition:  # noqa: PT012 - it ends with the commit
        partition.merge(ANN, age=60)
        partition.insert(BOB)
    assert caught.value.index == 1
    assert list(staff.by(age=60)) == []
    with staff.transaction() as partition:
        partition.delete(ANN)
        partition.delete(BOB)
    check(staff, ages, [])


def test_a_value_is_unique(staff: Table[Person], ages: TableClient) -> None:
    staff.insert(ANN)
    with pytest.raises(NotUnique):
        staff.insert(replace(CAT, email=ANN.email))
    with pytest.raises(NotUnique):
        staff.insert(replace(BOB, first="Ann"))
    staff.insert(replace(CAT, first="Ann"))  # In another partition.
    with pytest.raises(NotUnique):
        staff.update(CAT, lambda each: replace(each, email=ANN.email))
    with pytest.raises(NotUnique), staff.transaction() as partition:  # noqa: PT012 - as above
        partition.insert(replace(BOB, id=8, email="x"))
        partition.insert(replace(BOB, id=9, email="x"))
    assert staff.get(BOB) is None
    staff.delete(ANN)
    staff.upsert(replace(CAT, email=ANN.email))
    assert [each.id for each in staff.by(email=ANN.email)] == [3]


def test_an_error_tells_who_has_the_value(staff: Table[Person]) -> None:
    staff.insert(ANN)
    staff.insert(CAT)
    with pytest.raises(NotUnique) as one:
        staff.update(CAT, lambda each: replace(each, email=ANN.email))
    assert str(one.value) == "Person.email: 'ann@contoso.com' is that of ('dept!Sales', '0001')"
    assert (one.value.columns, one.value.values) == (("email",), (ANN.email,))
    assert staff.get(one.value.owner) == ANN
    with pytest.raises(NotUnique, match=r"^Person\.department, first: \('Sales', 'Ann'\) is that of ") as several:
        staff.insert(replace(BOB, first="Ann"))
    assert several.value.values == ("Sales", "Ann")
    assert vars(pickle.loads(pickle.dumps(several.value))) == vars(several.value)
    with pytest.raises(NotUnique) as both, staff.transaction() as partition:  # noqa: PT012 - as above
        partition.insert(replace(BOB, id=8, email="x", first="a"))
        partition.insert(replace(BOB, id=9, email="x", first="b"))
    assert (both.value.values, both.value.owner) == (("x",), EntityKey(SALES, "0008"))


def crashing(staff: Table[Person], ages: TableClient, runtime: Runtime) -> Table[Person]:
    return indexed(
        Person, indexes(ages.table_name), lambda: Table(staff.client, Person, clients=[ages], runtime=runtime)
    )


def test_a_crashed_claim_is_freed_after_the_grace(staff: Table[Person], ages: TableClient) -> None:
    class AfterTheClaim:
        def before(self, effect: object) -> None:
            return

        def after(self, effect: object) -> None:
            if isinstance(effect, Write) and effect.operation.key.partition_key.startswith("_Index!email"):
                raise Crash

    with pytest.raises(Crash):
        crashing(staff, ages, Runtime(failpoints=AfterTheClaim())).insert(ANN)
    other = replace(CAT, email=ANN.email)
    with pytest.raises(Busy):
        staff.insert(other)
    staff.insert(ANN)  # Its own claim does not hinder it.
    staff.delete(ANN)
    with pytest.raises(Crash):
        crashing(staff, ages, Runtime(failpoints=AfterTheClaim())).insert(ANN)
    later = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))
    crashing(staff, ages, later).insert(other)
    assert list(staff.by(email=ANN.email)) == [other]
    with pytest.raises(NotUnique):
        crashing(staff, ages, later).insert(ANN)


def test_every_fault_leaves_an_entity_that_is_found(staff: Table[Person], ages: TableClient) -> None:
    """Crashes, lost requests and lost answers at each effect of an update, and then again without a fault."""
    quick = Policy(first_wait_seconds=0.001)
    changed = replace(ANN, email="new@contoso.com", last="Smith", first="Sue", age=50)

    def attempt(fault: FaultAt) -> None:
        fault.number *= 3  # A third of the places; the model checker goes through all of them.
        for client in (staff.client, ages):
            for each in list(client.list_entities()):
                client.delete_entity(each)
        staff.insert(ANN)
        runtime = Runtime(failpoints=fault, utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))
        broken = indexed(
            Person,
            indexes(ages.table_name),
            lambda: Table(staff.client, Person, clients=[ages], runtime=runtime, policy=quick),
        )
        if fault.fault.name == "BUSY":  # It waits for three seconds; the simulation has it.
            return
        try:
            broken.update(ANN, lambda _: changed)
        except Crash:
            found = staff.get(ANN)
            assert found in (ANN, changed)
            assert found is not None
            check_without_superfluous(staff, [found])
            staff.update(ANN, lambda _: changed)
            check_without_superfluous(staff, [changed])
        else:
            check(staff, ages, [changed])

    assert sum(1 for _ in every_fault(attempt)) > 15


def test_costs_are_those_of_the_page(table_client: TableClient, ages: TableClient) -> None:
    count = FaultAt(-1, Fault.BUSY)
    across = [Index("email", "email", unique=True), Index("age", "age", table=ages.table_name)]
    inside = [Index("name", "last", "first", within_partition=True)]

    def costs(declared: list[Index], person: Person) -> list[int]:
        staff = indexed(
            Person,
            declared,
            lambda: Table(table_client, Person, clients=[ages], runtime=Runtime(failpoints=count)),
        )
        steps: list[Callable[[], object]] = [
            lambda: staff.insert(person),
            lambda: staff.update(person, lambda each: replace(each, email="x", last="Smith")),
            lambda: staff.merge(person, notes="new"),
            lambda: staff.merge(person, email="y", first="Sue"),
            lambda: list(staff.by(email="y") if declared is across else []),
            lambda: staff.delete(person),
        ]
        found = []
        for step in steps:
            before = count.count
            step()
            found.append(count.count - before)
        return found

    assert costs(across, ANN) == [2 + 2, 2 + 1 + 2, 1, 2 + 1 + 2, 2, 2 + 2 * 2]
    assert costs(inside, BOB) == [2, 2 + 1, 1, 2 + 1, 0, 2 + 1]


def test_each_type_is_found_by_its_value(table_client: TableClient) -> None:
    moment = datetime(2014, 7, 31, 12, tzinfo=UTC)
    visit = Visit("a/b", uuid4(), moment.date(), moment, Decimal("1.50"), 2.5, b"\x00\xff", -7, Ticks.of(moment))
    names = ["site", "id", "day", "time", "octets", "count"]
    declared = [*(Index(name, name) for name in names), Index("cost", ("cost", decimal(6, 2)))]
    visits = indexed(Visit, declared, lambda: Table(table_client, Visit))
    visits.insert(visit)
    for name in [*names, "cost"]:
        assert [each.id for each in visits.by(index=name, **{name: getattr(visit, name)})] == [visit.id], name
    visits.update(visit, lambda each: replace(each, count=3))
    assert visits.delete(visit)
    assert list(table_client.list_entities()) == []


def test_a_wrong_index_is_rejected_when_it_is_declared(table_client: TableClient) -> None:
    for wrong in (
        lambda: Index("none"),
        lambda: Index("both", "age", within_partition=True, table="Other"),
        lambda: indexed(Person, [Index("size", "size")], lambda: Table(table_client, Person)),
        lambda: indexed(Person, [Index("a", "age"), Index("a", "email")], lambda: Table(table_client, Person)),
        lambda: indexed(Person, [Index("a", "age", "age")], lambda: Table(table_client, Person)),
        lambda: indexed(Person, [Index("a", ("age", 3))], lambda: Table(table_client, Person)),
        lambda: indexed(Visit, [Index("a", ("at", exact_ticks()))], lambda: Table(table_client, Visit)),
    ):
        with pytest.raises(SchemaError):
            wrong()
    with pytest.raises(ValueError, match="no client of the table Other"):
        indexed(Person, [Index("age", "age", table="Other")], lambda: Table(table_client, Person))
    with pytest.raises(ValueError, match="deadline"):
        indexed(Person, [Index("age", "age")], lambda: Table(table_client, Person, policy=Policy(deadline_seconds=600)))
    with pytest.raises(EntityValueError, match="index a"):
        indexed(Person, [Index("a", ("age", integer(2)))], lambda: Table(table_client, Person)).insert(
            replace(ANN, age=100)
        )
    assert list(table_client.list_entities()) == []


async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    declared = [Index("email", "email", unique=True), Index("name", "last", within_partition=True)]
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        staff = indexed(Person, declared, lambda: AsyncTable(client, Person))
        await staff.insert(ANN)
        await staff.update(ANN, lambda each: replace(each, last="Smith"))
        with pytest.raises(NotUnique):
            await staff.insert(replace(BOB, email=ANN.email))
        async with staff.transaction() as partition:
            partition.insert(BOB)
        assert [each.id async for each in staff.by(Person.email.starts_with("b"))] == [2]
        assert [each.id async for each in staff.by(last="Smith", department="Sales")] == [1]
        assert [each.id async for each in staff.where(scan=True)] == [1, 2]
        assert [each async for each in staff.partitions()] == [SALES]
        assert await staff.delete(ANN)
        assert [each async for each in staff.by(email=ANN.email)] == []


def test_entities_of_one_partition_may_have_one_value(staff: Table[Person]) -> None:
    staff.insert(ANN)
    staff.insert(replace(BOB, age=ANN.age, last=ANN.last))
    assert {each.id for each in staff.by(age=ANN.age)} == {1, 2}
    assert {each.id for each in staff.by(last=ANN.last, department="Sales")} == {1, 2}


def test_an_update_is_not_tried_again_if_its_value_is_taken(staff: Table[Person]) -> None:
    staff.insert(ANN)
    staff.insert(BOB)
    calls: list[Person] = []

    def change(each: Person) -> Person:
        calls.append(each)
        return replace(each, email=ANN.email)

    with pytest.raises(NotUnique):
        staff.update(BOB, change)
    assert len(calls) == 1


def test_a_value_that_another_program_changed_is_free_in_its_partition_at_once(staff: Table[Person]) -> None:
    staff.insert(ANN)
    staff.client.update_entity({"PartitionKey": SALES, "RowKey": "0001", "first": "Sue"})
    staff.insert(replace(BOB, first="Ann"))
    assert [each.id for each in staff.by(department="Sales", first="Ann")] == [2]
    staff.delete(ANN)
    assert [each.id for each in staff.by(department="Sales", first="Ann")] == [2]


def test_one_of_eight_writers_at_a_time_gets_a_value(staff: Table[Person]) -> None:
    def claim(number: int) -> bool:
        try:
            staff.insert(Person("Ops", number, "one@contoso.com", first=str(number)))
        except (NotUnique, Busy):
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(claim, range(8)))
    assert won.count(True) == 1
    assert [each.id for each in staff.by(email="one@contoso.com")] == [won.index(True)]
    assert staff.where(scan=True).count() == 1


def test_a_claim_is_given_back_if_another_unique_value_is_taken(table_client: TableClient, ages: TableClient) -> None:
    """A person whose user name is taken keeps the own email for the next try, with other keys."""
    declared = [Index("email", "email", unique=True), Index("last", "last", unique=True)]
    staff = indexed(Person, declared, lambda: Table(table_client, Person))
    staff.insert(ANN)
    with pytest.raises(NotUnique):
        staff.insert(replace(CAT, id=8, last=ANN.last))
    staff.insert(replace(CAT, id=9, last="free"))
    assert [each.id for each in staff.by(email=CAT.email)] == [9]
