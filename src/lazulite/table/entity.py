"""An entity as a client describes it, and the limits that every stored entity keeps.

Invariants: an `Entity` has passed every check that needs no stored state: names, types, values, count and size.
Source: reference §5.2; the size formula is the one of Microsoft's billing description.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.table.edm import BINARY, STRING, TYPES, DateTimeRangeError, EdmType, Json, type_of_json, utf16_length
from lazulite.table.names import check_property_name
from lazulite.table.row import Property, encode_properties, in_order

PROPERTIES_MAX = 252
MEMBERS_MAX = 4 * PROPERTIES_MAX
"""Members of a body, nulls included, which are no properties but take work too."""
ENTITY_MAX_BYTES = 1024 * 1024
_PROPERTY_OVERHEAD_BYTES = 8
KEYS = ("PartitionKey", "RowKey")
_STRING_TYPES = (None, STRING.name)
"""What a body may declare a string as."""
MALFORMED = "An error occurred while processing this request."
"""What the service says of a body that is wrong in no way that has a code of its own."""


@dataclass(slots=True)
class Entity:
    """What the body of a write says: its properties as sent. A key is None where the body leaves it out."""

    partition_key: str | None
    row_key: str | None
    properties: dict[str, Property]
    keys_are_strings: bool = True
    """False: the body declares a key as another type, which inserts alone refuse."""


class EncodedEntity(NamedTuple):
    """The same, its properties as a row has them (`row.encode_properties`)."""

    partition_key: str | None
    row_key: str | None
    members: str
    keys_are_strings: bool = True


def build_entity(values: dict[str, Json], types: Mapping[str, Json]) -> Entity:
    """Check the properties that a body describes and type them.

    Args:
        values: by name, as they came; a null is no property. The keys are taken out.
        types: names of types by names of properties; what has none is of the type that its value looks like.

    Raises:
        ServiceError: the exact code of each violation (reference §5.2, §5.3).
    """
    if len(values) > MEMBERS_MAX:
        raise ServiceError("TooManyProperties")
    keys = [_key(values.pop(name, None)) for name in KEYS]
    properties: dict[str, Property] = {}
    name = ""
    try:
        for name, value in values.items():
            check_property_name(name)
            if value is not None:
                type_name = types.get(name)
                edm = type_of_json(value) if type_name is None else _named_type(type_name)
                properties[name] = Property(edm, edm.literal(value))
    except DateTimeRangeError as error:
        message = f"The '{name}' parameter of value '{error.text}' is out of range."
        raise ServiceError("OutOfRangeInput", message) from None
    except ValueError:
        raise ServiceError("InvalidInput", MALFORMED) from None
    check_limits(keys[0] or "", keys[1] or "", properties)
    return Entity(keys[0], keys[1], properties, all(types.get(name) in _STRING_TYPES for name in KEYS))


def encode_entity(entity: Entity, by_name: bool) -> EncodedEntity:
    """Encode an entity, its properties as sent or by name."""
    properties = in_order(entity.properties) if by_name else entity.properties
    members = encode_properties(properties)
    return EncodedEntity(entity.partition_key, entity.row_key, members, entity.keys_are_strings)


def _key(value: Json) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ServiceError("InvalidInput", MALFORMED)


def _named_type(name: Json) -> EdmType:
    if not isinstance(name, str) or name not in TYPES:
        raise ValueError("not a primitive type")
    return TYPES[name]


def check_limits(partition_key: str, row_key: str, properties: Mapping[str, Property]) -> None:
    """Refuse an entity that has too many properties or too much in them.

    The whole is judged before its parts, as the service does: one binary of 1 MiB is an `EntityTooLarge`.

    Raises:
        ServiceError: `TooManyProperties`, `EntityTooLarge`, `PropertyValueTooLarge`.
    """
    if len(properties) > PROPERTIES_MAX:
        raise ServiceError("TooManyProperties")
    bound = 2 * sum([len(literal) for _, literal in properties.values()])
    if bound <= STRING.limit:
        return
    size = 4 + 2 * (utf16_length(partition_key) + utf16_length(row_key))
    too_large = False
    for name, (edm, literal) in properties.items():
        value_bytes = edm.size(literal)
        too_large = too_large or (edm in (STRING, BINARY) and value_bytes > edm.limit)
        size += _PROPERTY_OVERHEAD_BYTES + 2 * utf16_length(name) + value_bytes
    if size > ENTITY_MAX_BYTES:
        raise ServiceError("EntityTooLarge")
    if too_large:
        raise ServiceError("PropertyValueTooLarge")
