"""Entities as classes: typed fields, keys, versions, several classes in one table."""

from lazulite_patterns.entities.columns import Extra, Flatten, Int32, Json, Name, Partition, Row
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.entities.registry import Schemas, entity, schema_of, upgrade
from lazulite_patterns.entities.rows_read import stored_of
from lazulite_patterns.entities.schema import Schema
from lazulite_patterns.keys.times import Ticks

__all__ = [
    "EntityFormatError",
    "EntityValueError",
    "Extra",
    "Flatten",
    "Int32",
    "Json",
    "Name",
    "Partition",
    "Row",
    "Schema",
    "SchemaError",
    "Schemas",
    "Ticks",
    "entity",
    "schema_of",
    "stored_of",
    "upgrade",
]
