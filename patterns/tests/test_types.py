"""`mypy --strict` infers what a query yields in a user's program. It must find each error that is ignored here."""

from dataclasses import dataclass
from typing import Annotated, assert_type

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.entities import EntityValueError, Partition, Row, entity
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.conditions import columns
from lazulite_patterns.indexes import Index
from lazulite_patterns.keys import Key, integer, text
from lazulite_patterns.table.query import Query
from lazulite_patterns.table.table import Table


class ReviewKey(Key):
    employee: str = text()
    year: int = integer(4)


@entity()
@dataclass(frozen=True)
class Employee:
    department: Annotated[str, Partition()]
    id: Annotated[int, Row(integer(6))]
    email: str


@entity()
@dataclass(frozen=True)
class Department:
    name: Annotated[str, Partition()]
    site: Annotated[str, Row()]


ANN = Employee("Sales", 1, "ann@contoso.com")


def test_entities_of_queries_have_their_types(table_client: TableClient) -> None:
    staff, e = Table(table_client, Employee, indexes=[Index("email", "email")]), columns(Employee)
    staff.insert(ANN)
    query = assert_type(staff.where(e.department == "Sales", e.id.between(1, 9)), Query[Employee])
    assert_type(staff.get(ANN), Employee | None)
    assert [assert_type(each, Employee).email for each in query] == ["ann@contoso.com"]
    assert assert_type(query.first(1), list[Employee]) == assert_type(query.page(size=1).items, list[Employee])
    assert assert_type(staff.any_of(query, query), list[Employee]) == list(staff.by("email", ANN.email)) == [ANN]
    both: Table[Employee | Department] = Table(table_client, Employee | Department)
    assert_type(both.where(e.department == "Sales").first(1), list[Employee | Department])
    assert_type(Table(table_client), Table[Bag])
    assert assert_type(ReviewKey("000123", 2012).year, int) == 2012


def test_wrong_programs_are_found(table_client: TableClient) -> None:
    staff = Table(table_client, Employee)
    with pytest.raises(EntityValueError):
        staff.insert(Department("Sales", "Rome"))  # type: ignore[arg-type] # it is the point
    number: int = staff.get(ANN)  # type: ignore[assignment] # it is the point
    assert number is None


async def test_entities_of_asynchronous_queries_have_their_types(
    connection_string: str, table_client: TableClient
) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        staff = AsyncTable(client, Employee)
        await staff.insert(ANN)
        query = staff.where(columns(Employee).department == "Sales")
        assert assert_type(await query.first(1), list[Employee]) == [ANN]
        assert [assert_type(each, Employee).id async for each in query] == [1]
