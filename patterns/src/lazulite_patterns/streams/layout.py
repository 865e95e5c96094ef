"""The rows of a stream. The layout is that of Streamstone, a library for .NET, which can read and write them, too.

| RowKey | row |
|---|---|
| `SS-HEAD` | `Version`: the number of the last event |
| `SS-SE-0000000001` | the event of that version: `Id`, `Version`, and its properties |
| `SS-UID-<id>` | `Version`: of the event with that id |

All of them are in one partition, whose PartitionKey is the name of the stream. Versions begin at 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.effects.tables import EntityKey, Properties, Stored
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.ring import RING

HEAD = "SS-HEAD"
EVENT = "SS-SE-"
ID = "SS-UID-"
VERSION_MAX = 10**10 - 1
"""The greatest version that the key of an event has room for."""
OWN = frozenset({"PartitionKey", "RowKey", "Timestamp", "Id", "Version", RING})
"""Properties of an event that are not the program's."""


@dataclass(frozen=True)
class Event:
    """What happened.

    Attributes:
        properties: as the SDK takes them. The names `Id` and `Version` are the stream's.
        id: that no other event of the stream has; None for a new one. An event with the same id is not added again.
    """

    properties: Mapping[str, object] = field(default_factory=dict)
    id: str | None = None

    def __post_init__(self) -> None:
        """Reject names that are the stream's."""
        if wrong := OWN & set(self.properties):
            raise ValueError(f"{min(wrong)} is no property of an event: it is the stream's")


@dataclass(frozen=True)
class Recorded:
    """An event of a stream.

    Attributes:
        version: its number, from 1, without gaps.
        id: its id; None if another program wrote it without one.
        properties: as the SDK reads them.
    """

    version: int
    id: str | None
    properties: Properties


def head_key(stream: str) -> EntityKey:
    """Return the keys of a stream's head."""
    return EntityKey(stream, HEAD)


def event_key(stream: str, version: int) -> EntityKey:
    """Return the keys of an event."""
    return EntityKey(stream, f"{EVENT}{version:010}")


def id_key(stream: str, event_id: str) -> EntityKey:
    """Return the keys of the row of an event's id."""
    return EntityKey(stream, f"{ID}{event_id}")


def events_from(version: int) -> KeyRange:
    """Return the RowKeys of the events from a version on."""
    return KeyRange(f"{EVENT}{version:010}", f"{EVENT}:")


def version_of(row: Stored) -> int:
    """Return the property `Version` of a row: an Int64, or an Int32 of older writers.

    Raises:
        EntityFormatError: it has none.
    """
    found = row.properties.get("Version")
    value = found.value if isinstance(found, EntityProperty) else found
    if isinstance(value, bool) or not isinstance(value, int):
        raise EntityFormatError(f"{row.key}: no row of a stream, its Version is {found!r}")
    return value


def version_property(version: int, head: Stored | None) -> object:
    """Return a version as it is stored: in the type of the head, an Int64 for a new stream."""
    if head is not None and isinstance(head.properties.get("Version"), int):
        return version
    return EntityProperty(version, EdmType.INT64)


def recorded(row: Stored) -> Recorded:
    """Return the event of a row."""
    found = row.properties.get("Id")
    properties = {name: value for name, value in row.properties.items() if name not in OWN}
    return Recorded(version_of(row), None if found is None else str(found), properties)
