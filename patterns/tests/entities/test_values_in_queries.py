"""A value of each type of property is found by a query for it."""

from datetime import UTC, date, datetime
from uuid import UUID

from azure.data.tables import TableClient

from lazulite_patterns import Ticks, columns
from lazulite_patterns.entities.conditions import Compared
from lazulite_patterns.table.table import Table

from .classes import Colour, Everything, Level

FULL = Everything(
    "x",
    text="it's",
    int64=-(2**40),
    int32=-7,
    real=-1.5e-9,
    flag=True,
    octets=b"\x00\xff",
    time=datetime(2014, 7, 31, 18, 30, 0, 123456, tzinfo=UTC),
    ticks=Ticks(635424282000000007),
    uuid=UUID(int=5),
    colour=Colour.BLUE,
    level=Level.HIGH,
    day=date(2014, 7, 31),
    state="done",
    renamed="r",
)


def test_every_type_is_found_by_its_value(table_client: TableClient) -> None:
    everything = Table(table_client, Everything)
    everything.insert(FULL)
    everything.insert(Everything("y", int64=3))
    for field in FULL.__struct_fields__:
        if field != "tree":
            condition = Compared(Everything, field, "eq", getattr(FULL, field))
            assert list(everything.where(condition, scan=True)) == [FULL], field
    assert [each.id for each in everything.where(columns(Everything).int64 == 3, scan=True)] == ["y"]
