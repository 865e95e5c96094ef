"""Entities as classes: typed columns, keys, indexes, versions, several classes in one table."""

from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.columns import Column, column, index, partition, row, unique
from lazulite_patterns.entities.conditions import Condition, QueryError
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.entities.indexes import Index, Listing
from lazulite_patterns.entities.registry import Schemas, columns, entity, schema_of, upgrade
from lazulite_patterns.entities.rows_read import stored_of
from lazulite_patterns.entities.schema import Schema
from lazulite_patterns.keys.times import Ticks

__all__ = [
    "Bag",
    "Column",
    "Condition",
    "EntityFormatError",
    "EntityValueError",
    "Index",
    "Listing",
    "QueryError",
    "Schema",
    "SchemaError",
    "Schemas",
    "Ticks",
    "column",
    "columns",
    "entity",
    "index",
    "partition",
    "row",
    "schema_of",
    "stored_of",
    "unique",
    "upgrade",
]
