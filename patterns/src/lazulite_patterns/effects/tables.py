"""Effects on tables. `table` is the name by which the driver knows a client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.filters import Filter

Properties = Mapping[str, object]
"""A property bag, as the SDK has it: an Int64 is an `EntityProperty`."""


class EntityKey(NamedTuple):
    """The keys of an entity."""

    partition_key: str
    row_key: str


class Stored(NamedTuple):
    """An entity as the service has it. `properties` have the two keys, too."""

    properties: Properties
    etag: str
    timestamp: datetime | None = None
    date: datetime | None = None
    """The service's time when it answered, in whole seconds; not by `Page`."""

    @property
    def key(self) -> EntityKey:
        """The entity's keys."""
        return EntityKey(str(self.properties["PartitionKey"]), str(self.properties["RowKey"]))


class Kind(Enum):
    """What is done to an entity. REPLACE, MERGE and DELETE are conditional if there is an ETag."""

    INSERT = "insert"
    REPLACE = "replace"
    MERGE = "merge"
    PUT = "put"
    """Insert or replace."""
    PUT_MERGE = "put_merge"
    """Insert or merge."""
    DELETE = "delete"


@dataclass(frozen=True)
class Operation:
    """One write of one entity."""

    kind: Kind
    key: EntityKey
    properties: Properties = field(default_factory=dict)
    etag: str | None = None
    """The ETag that the entity must have; None for any."""


@dataclass(frozen=True)
class Read(Effect[Stored | None]):
    """Read one entity; None if it is absent."""

    table: str
    key: EntityKey
    select: tuple[str, ...] = ()
    """The properties to read; none for all."""


@dataclass(frozen=True)
class Write(Effect[str]):
    """Write one entity. The result is its new ETag, empty after a delete."""

    table: str
    operation: Operation


@dataclass(frozen=True)
class Batch(Effect[tuple[str, ...]]):
    """Write entities of one partition, all or none. The result are their new ETags."""

    table: str
    operations: tuple[Operation, ...]


Continuation = tuple[str, str]
"""PartitionKey and RowKey from which the service goes on."""


class Found(NamedTuple):
    """A page of a query, and where the next one begins; None after the last one."""

    entities: tuple[Stored, ...]
    continuation: Continuation | None


@dataclass(frozen=True)
class Page(Effect[Found]):
    """Read one page of a query."""

    table: str
    filter: Filter | None = None
    select: tuple[str, ...] = ()
    top: int | None = None
    continuation: Continuation | None = None
