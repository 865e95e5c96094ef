"""`mypy --strict` infers what a query yields in a user's program. It must find each error that is ignored here."""

from dataclasses import FrozenInstanceError, replace
from typing import assert_type

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import (
    Column,
    Condition,
    EntityValueError,
    IndexQuery,
    column,
    entity,
    partition,
    row,
    unique,
)
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.keys import Key, integer, text
from lazulite_patterns.table.query import Query
from lazulite_patterns.table.table import Table


class ReviewKey(Key):
    employee: str = text()
    year: int = integer(4)


@entity
class Employee:
    department: Column[str] = partition()
    id: Column[int] = row(width=6)
    email: Column[str] = unique()
    age: Column[int | None] = column(default=None)


@entity
class Manager(Employee):
    reports: Column[int] = column(default=0)


@entity
class Department:
    name: Column[str] = partition()
    site: Column[str] = row()


ANN = Employee("Sales", 1, "ann@contoso.com")


def test_entities_of_queries_have_their_types(table_client: TableClient) -> None:
    staff = assert_type(Table.open(table_client, Employee), Table[Employee])
    staff.insert(ANN)
    query = assert_type(staff.where(Employee.department == "Sales", Employee.id.between(1, 9)), Query[Employee])
    assert_type(staff.get(ANN), Employee | None)
    assert [assert_type(each, Employee).email for each in query] == ["ann@contoso.com"]
    assert assert_type(query.first(1), list[Employee]) == assert_type(query.page(size=1).items, list[Employee])
    found = assert_type(staff.by(email=ANN.email), IndexQuery[Employee])
    assert (
        assert_type(staff.any_of(query, query), list[Employee]) == list(found) == [assert_type(found.one(), Employee)]
    )
    both: Table[Employee | Department] = Table.open(table_client, Employee | Department)
    assert_type(both.where(Employee.department == "Sales").first(1), list[Employee | Department])
    assert_type(Table.open(table_client, Bag), Table[Bag])
    assert assert_type(ReviewKey("000123", 2012).year, int) == 2012


def test_a_column_is_a_value_of_an_entity_and_a_column_of_its_class() -> None:
    assert_type(ANN.age, int | None)
    assert_type(Employee.age, Column[int | None])
    assert_type(Manager.email, Column[str])
    assert_type(Manager("Sales", 2, "bob@contoso.com", reports=3).reports, int)
    assert_type(Employee.id.in_([1, 2]) | (Manager.reports > 3), Condition)
    assert assert_type(replace(ANN, age=30), Employee).age == 30


def test_wrong_columns_are_found() -> None:
    with pytest.raises(TypeError):
        Employee("Sales", 1)  # type: ignore[call-arg] # it is the point
    Employee("Sales", "1", "ann@contoso.com")  # type: ignore[arg-type] # as above
    replace(ANN, id="1")  # type: ignore[arg-type] # as above
    Employee.id.between("a", "b")  # type: ignore[arg-type] # as above
    _: bool = Employee.id > 3  # type: ignore[assignment] # as above
    with pytest.raises(FrozenInstanceError):
        ANN.age = 3  # type: ignore[arg-type] # as above


def test_wrong_programs_are_found(table_client: TableClient) -> None:
    staff = Table(table_client, Employee)
    with pytest.raises(EntityValueError):
        staff.insert(Department("Sales", "Rome"))  # type: ignore[arg-type] # it is the point
    number: int = staff.get(ANN)  # type: ignore[assignment] # it is the point
    assert number is None


def test_wrong_names_are_found() -> None:
    with pytest.raises(ImportError):
        from lazulite_patterns import Tabel  # type: ignore[attr-defined] # noqa: F401,PLC0415 - it is the point
    with pytest.raises(ImportError):
        from lazulite_patterns.aio import Tabel as _  # type: ignore[attr-defined] # noqa: F401,PLC0415 - as above
    with pytest.raises(ImportError):
        from lazulite_patterns.aio import Move  # type: ignore[attr-defined] # noqa: F401,PLC0415 - as above


async def test_entities_of_asynchronous_queries_have_their_types(
    connection_string: str, table_client: TableClient
) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        staff = AsyncTable(client, Employee)
        await staff.insert(ANN)
        query = staff.where(Employee.department == "Sales")
        assert assert_type(await query.first(1), list[Employee]) == [ANN]
        assert [assert_type(each, Employee).id async for each in query] == [1]
