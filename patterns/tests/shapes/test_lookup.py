"""Joins by cached look-ups, and links of both directions, on the service."""

from dataclasses import replace

from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns.aio.shapes import Lookup as AsyncLookup
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.shapes import Lookup
from lazulite_patterns.table.table import Table

from .staff import Department, Employee, manages, works_in
from .support import counting

ANN, BOB, CAT, DAN = (
    Employee("Rome", number, name, None, unit)
    for number, (name, unit) in enumerate([("Ann", "Sales"), ("Bob", "Sales"), ("Cat", "IT"), ("Dan", None)])
)
SALES, IT = Department("Rome", "Sales", 0), Department("Rome", "IT")


def test_a_link_has_both_directions(table_client: TableClient) -> None:
    staff: Table[Employee | Department] = Table(table_client, Employee | Department)
    for each in (ANN, BOB, CAT, DAN, SALES, IT):
        staff.insert(each)
    assert works_in.key(ANN) == EntityKey("Rome", "dept!Sales")
    assert works_in.key(DAN) is None
    assert list(staff.where(*works_in.holders(SALES))) == [ANN, BOB]
    assert list(staff.where(*manages.holders(ANN))) == [SALES]
    assert list(staff.where(*manages.holders(BOB))) == []


def test_a_join_reads_each_entity_once_and_keeps_it(table_client: TableClient) -> None:
    now, count = [0.0], counting()
    table = Table(table_client, Department, runtime=Runtime(lambda: now[0], failpoints=count))
    Table(table_client, Department).insert(SALES)
    lookup = Lookup(table, seconds=60, size=2)
    joined = lookup.join([ANN, BOB, CAT, DAN], works_in)
    assert joined == [(ANN, SALES), (BOB, SALES), (CAT, None), (DAN, None)]
    assert count.count == 2
    sales = works_in.key(ANN)
    assert sales is not None
    now[0] = 59.9
    table_client.update_entity({"PartitionKey": "Rome", "RowKey": "dept!Sales", "manager_name": "Ann"})
    assert lookup.get(sales) == SALES, "it is kept for a minute"
    assert count.count == 2
    now[0] = 60
    assert lookup.get(sales) == replace(SALES, manager_name="Ann")
    lookup.forget(sales)
    assert lookup.get(sales) is not None
    assert count.count == 4
    lookup.get_many([EntityKey("Rome", f"dept!{number}") for number in range(2)])
    assert count.count == 6
    assert lookup.get(sales) is not None
    assert count.count == 7, "the one that was not used for the longest time is gone"
    assert lookup.get_many([]) == []


async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        table = AsyncTable(client, Department)
        await table.insert(SALES)
        lookup = AsyncLookup(table)
        assert await lookup.join([ANN, CAT], works_in) == [(ANN, SALES), (CAT, None)]
        assert await lookup.get(EntityKey("Rome", "dept!Sales")) == SALES
