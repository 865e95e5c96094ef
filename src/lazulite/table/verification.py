"""The space of the tables in the registry: how `lazulite check` and copies read it and the tables' own spaces.

An entity's row is, byte for byte, the one that `row.assemble` makes of its keys, Timestamp and properties. All its
values are of their types. Its Timestamp is not above the greatest timestamp that the store ever gave.
"""

from lazulite.engine.contract import Key
from lazulite.records.spaces import TABLES, CatalogFormat, Nouns, Space
from lazulite.table.catalog import Table
from lazulite.table.model.row import assemble, decode_row, encode_keys, encode_properties, ticks_of


def _read_table(row: str, value: bytes) -> tuple[int, str]:
    table = Table.from_bytes(value)
    if table.name.lower() != row:
        raise ValueError(f"table {row} is called {table.name}")
    return table.space, table.name


def _verify_entity(key: Key, value: bytes, timestamp_max: int) -> None:
    row = decode_row(value)
    again = assemble(row.ticks, encode_keys(row.partition_key, row.row_key), encode_properties(row.properties))
    if again != value or (row.partition_key, row.row_key) != key:
        raise ValueError("the entity is not as Lazulite writes it")
    for edm, literal in row.properties.values():
        edm.decode(literal)
    if row.ticks > timestamp_max:
        raise ValueError("a Timestamp that the store never gave")


TABLES_SPACE = Space(
    number=TABLES,
    owner="table",
    title="the list of tables",
    watched=True,
    copied=True,
    content=True,
    catalog=CatalogFormat(Nouns("table", "tables", "entities"), _read_table, _verify_entity, ticks_of),
)
