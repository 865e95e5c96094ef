"""A class with the indexes that a test wants: as if it were another class of the same shape."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from lazulite_patterns import Index
from lazulite_patterns.entities import Schema, schema_of

T = TypeVar("T")


def indexed(cls: type, indexes: Sequence[Index], make: Callable[[], T]) -> T:
    """Return a table that is made while its class declares these indexes."""
    schema: Schema[object] = schema_of(cls)
    declared, schema.indexes = schema.indexes, tuple(indexes)
    try:
        return make()
    finally:
        schema.indexes = declared
