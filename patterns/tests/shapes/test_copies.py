"""Copies along links, on the service."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import Column, EntityValueError, SchemaError, column, entity, partition, row
from lazulite_patterns.aio.shapes import Copies as AsyncCopies
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes import Absent, Exists
from lazulite_patterns.shapes import Copied, Copies, Ref, Referred
from lazulite_patterns.shapes.protocols.copies import CopiesProtocol
from lazulite_patterns.shapes.protocols.copies_check import DANGLING, DIFFERENT
from lazulite_patterns.table.session import Session, kinds_of
from lazulite_patterns_simulation import Crash, Fault, FaultAt, every_fault

from .staff import COPIED, Department, Employee, deputises, manages, works_in
from .support import QUICK, counting, driver, empty

ANN, BOB = Employee("Rome", 1, "Ann", 40), Employee("Rome", 2, "Bob")
SALES, IT = Department("Rome", "Sales", 1, 2), Department("Rome", "IT", 1)


@pytest.fixture
def staff(table_client: TableClient) -> Copies[Employee | Department]:
    return Copies(table_client, Employee | Department, COPIED)


def test_copies_are_those_of_the_entity_they_are_of(staff: Copies[Employee | Department]) -> None:
    for each in (ANN, BOB, SALES, replace(IT, manager_name="wrong")):
        staff.insert(each)
    sales = replace(SALES, manager_name="Ann", manager_age=40, deputy_name="Bob")
    assert staff.get(SALES) == sales
    assert staff.get(IT) == replace(IT, manager_name="Ann", manager_age=40)
    staff.update(ANN, lambda each: replace(each, name="Anna", age=None))
    assert staff.get(SALES) == replace(sales, manager_name="Anna", manager_age=None)
    assert staff.get(IT) == replace(IT, manager_name="Anna")
    staff.update(SALES, lambda each: replace(each, deputy=1))
    assert staff.get(SALES) == replace(sales, deputy=1, manager_name="Anna", manager_age=None, deputy_name="Anna")
    staff.update(ANN, lambda each: replace(each, name="Ann"))
    assert staff.get(SALES) == replace(sales, deputy=1, manager_age=None, deputy_name="Ann")
    staff.update(SALES, lambda each: replace(each, manager=None, deputy=None))
    assert staff.get(SALES) == replace(SALES, manager=None, deputy=None)
    assert list(audit(staff)) == []


def test_a_link_leads_to_an_entity_that_is_there(staff: Copies[Employee | Department]) -> None:
    with pytest.raises(Absent, match="refers to it"):
        staff.insert(SALES)
    for each in (ANN, BOB, SALES):
        staff.insert(each)
    for each in (ANN, BOB):
        with pytest.raises(Referred, match="dept!Sales"):
            staff.delete(each)
    with pytest.raises(Exists):
        staff.insert(ANN)
    with pytest.raises(Absent, match="emp!0009"):
        staff.update(SALES, lambda each: replace(each, manager=9))
    with pytest.raises(Absent):
        staff.update(Employee("Rome", 9, "Eve"), lambda each: each)
    assert staff.delete(SALES) is True
    assert staff.delete(ANN) is True
    assert staff.delete(ANN) is False


def test_bad_input_is_rejected_before_it_is_sent(table_client: TableClient) -> None:
    count = counting()
    staff: Copies[Employee | Department] = Copies(
        table_client, Employee | Department, COPIED, runtime=Runtime(failpoints=count)
    )
    for wrong in (replace(ANN, name="x" * 40_000), replace(ANN, id=-1), replace(ANN, site="a\x00")):
        with pytest.raises(EntityValueError, match="Employee"):
            staff.insert(wrong)
    assert count.count == 0
    staff.insert(ANN)
    for number in range(99):
        staff.insert(Department("Rome", f"D{number:02d}", 1))
    staff.update(ANN, lambda each: replace(each, name="Anna"))
    assert staff.get(Department("Rome", "D98")) == Department("Rome", "D98", 1, None, "Anna", 40)
    staff.insert(Department("Rome", "E", None, 1))
    with pytest.raises(EntityValueError, match="100 rows have copies, 99 are possible"):
        staff.update(ANN, lambda each: replace(each, name="Ann"))
    with pytest.raises(ValueError, match="keys"):
        staff.update(ANN, lambda each: replace(each, id=7))


@entity
class Note:
    site: Column[str] = partition()
    id: Column[str] = row()
    about: Column[str]
    about_id: Column[int | None] = column(default=None)
    text: Column[str | None] = column(default=None)


def test_links_lead_out_of_a_partition_but_copies_do_not(table_client: TableClient) -> None:
    about = Ref(Note, Employee, site="about", id="about_id")
    notes: Copies[Note | Employee] = Copies(table_client, Note | Employee, [Copied(about, text="name")])
    notes.insert(ANN)
    notes.insert(Note("Rome", "n", "Rome", 1))
    assert notes.get(EntityKey("Rome", "n")) == Note("Rome", "n", "Rome", 1, "Ann")
    notes.insert(Note("Oslo", "o", "Rome"))
    with pytest.raises(EntityValueError, match="another partition"):
        notes.insert(Note("Oslo", "n", "Rome", 1))


def test_a_wrong_declaration_is_rejected(table_client: TableClient) -> None:
    wrong: list[Any] = [
        lambda: Ref(Department, Employee, site="site"),
        lambda: Ref(Department, Employee, site="site", id="boss"),
        lambda: Ref(Department, Employee, site="site", id="manager", name="name"),
        lambda: Copied(manages, manager="age"),
        lambda: Copied(manages, name="name"),
        lambda: Copied(manages, manager_name="age"),
        lambda: Copied(manages, manager_name="id"),
        lambda: Copies(table_client, Employee, COPIED),
        lambda: Copies(table_client, Employee | Department, [*COPIED, Copied(works_in, unit="manager_name")]),
        lambda: Copies(table_client, Employee | Department, [*COPIED, Copied(deputises, manager_name="name")]),
    ]
    for each in wrong:
        with pytest.raises(SchemaError):
            each()


def test_every_fault_leaves_copies_that_agree(table_client: TableClient) -> None:
    session: Session[Employee | Department] = Session(table_client.table_name, kinds_of(Employee | Department), QUICK)
    protocol = CopiesProtocol(session, tuple(COPIED))
    working = driver(table_client)

    def older(each: Employee | Department) -> Employee:
        assert isinstance(each, Employee)
        return replace(each, age=41)

    def moved(each: Employee | Department) -> Department:
        assert isinstance(each, Department)
        return replace(each, manager=2)

    def rival() -> None:
        working.run(protocol.update(ANN, lambda each: replace(each, name=each.name + "!")))

    steps: list[Callable[[], Protocol[object]]] = [
        lambda: protocol.update(ANN, older),
        lambda: protocol.update(SALES, moved),
        lambda: protocol.insert(IT),
        lambda: protocol.delete(SALES),
    ]
    count = 0
    for step in steps:

        def attempt(fault: FaultAt) -> None:
            empty(table_client)
            for each in (ANN, BOB, SALES):
                working.run(protocol.insert(each))
            try:
                driver(table_client, fault).run(step())  # noqa: B023 - it is called in the loop
            except Crash:
                assert fault.fault in {Fault.CRASH_BEFORE, Fault.CRASH_AFTER}
            staff: Copies[Employee | Department] = Copies(table_client, Employee | Department, COPIED)
            assert list(audit(staff)) == []

        count += sum(1 for _ in every_fault(attempt, rival))
    assert count >= 4 * 7 * 2


def test_the_auditor_finds_what_other_programs_wrote(
    staff: Copies[Employee | Department], table_client: TableClient
) -> None:
    for each in (ANN, BOB, SALES):
        staff.insert(each)
    table_client.update_entity({"PartitionKey": "Rome", "RowKey": "emp!0001", "name": "Eve"})
    table_client.delete_entity("Rome", "emp!0002")
    kinds = [each.kind for each in audit(staff, repair=True)]
    assert sorted(kinds) == sorted([DANGLING, DIFFERENT])
    assert [each.kind for each in audit(staff)] == [DANGLING]
    found = staff.get(SALES)
    assert isinstance(found, Department)
    assert found.manager_name == "Eve"


async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        staff: AsyncCopies[Employee | Department] = AsyncCopies(client, Employee | Department, COPIED)
        for each in (ANN, BOB, SALES):
            await staff.insert(each)
        await staff.update(BOB, lambda each: replace(each, name="Rob"))
        found = await staff.get(SALES)
        assert isinstance(found, Department)
        assert found.deputy_name == "Rob"
        with pytest.raises(Referred):
            await staff.delete(BOB)
