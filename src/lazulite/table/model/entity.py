"""An entity as a client describes it, and the limits that every stored entity keeps.

Invariants: an `Entity` has passed every check that needs no stored state: names, types, values, count and size.
Source: reference §5.2; the size formula is the one of Microsoft's billing description.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.table.model.edm import (
    STRING,
    TYPES,
    DateTimeRangeError,
    EdmType,
    Json,
    string_size,
    type_of_json,
    utf16_length,
)
from lazulite.table.model.row import Property, encode_properties, in_order
from lazulite.table.names import check_property_name

PROPERTIES_MAX = 252
MEMBERS_MAX = 4 * PROPERTIES_MAX
"""Members of a body, nulls included, which are no properties but take work too."""
ENTITY_MAX_BYTES = 1024 * 1024
_PROPERTY_OVERHEAD_BYTES = 8
SURELY_SMALL = ENTITY_MAX_BYTES // 2
"""Bytes of literals, two a character: 252 properties of these are a legal entity with names of any length."""
_LARGE_LITERAL = 4096
"""Characters of a literal that takes longer to measure than a step costs."""
KEYS = ("PartitionKey", "RowKey")
_STRING_TYPES = (None, STRING.name)
"""The types that a body may declare for a key."""
MALFORMED = "An error occurred while processing this request."
"""The message for an invalid body without a more specific code."""


@dataclass(slots=True)
class Entity:
    """The entity in the body of a write, its properties as sent. A key is None if the body omits it."""

    partition_key: str | None
    row_key: str | None
    properties: dict[str, Property]
    keys_are_strings: bool = True
    """False: the body declares a key as another type, which only inserts reject."""


class EncodedEntity(NamedTuple):
    """An entity whose properties are encoded as a row has them (`row.encode_properties`)."""

    partition_key: str | None
    row_key: str | None
    members: str
    keys_are_strings: bool = True


def build_entity(values: dict[str, Json], types: Mapping[str, Json]) -> Steps[Entity]:
    """Check the properties that a body describes and type them, one in a step.

    Args:
        values: by name, in the order of the body; a null is no property. The keys are removed.
        types: names of types by names of properties; a property without one has the type of its JSON value.

    Raises:
        ServiceError: the exact code of each violation (reference §5.2, §5.3).
    """
    if len(values) > MEMBERS_MAX:
        raise ServiceError("TooManyProperties")
    keys = [_key(values.pop(name, None)) for name in KEYS]
    properties: dict[str, Property] = {}
    size = _Size(*keys)
    name = ""
    try:
        for name, value in values.items():
            yield
            check_property_name(name)
            if value is not None:
                type_name = types.get(name)
                edm = type_of_json(value) if type_name is None else _named_type(type_name)
                literal, value_bytes = _literal_and_size(edm, value)
                properties[name] = Property(edm, literal)
                size.add(name, edm, value_bytes)
    except DateTimeRangeError as error:
        message = f"The '{name}' parameter of value '{error.text}' is out of range."
        raise ServiceError("OutOfRangeInput", message) from None
    except ValueError:
        raise ServiceError("InvalidInput", MALFORMED) from None
    size.check()
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


def _literal_and_size(edm: EdmType, value: Json) -> tuple[str, int]:
    """Return a value's literal and its size; the literal is empty for a String that makes its entity too large.

    Raises:
        ValueError: the value is not of this type.
    """
    if edm is not STRING or not isinstance(value, str):
        literal = edm.literal(value)
        return literal, edm.size(literal)
    value_bytes = string_size(value)
    return "" if value_bytes > edm.limit else edm.literal(value), value_bytes


def is_surely_legal(properties: Mapping[str, Property]) -> bool:
    """Tell whether these properties are within the limits with names and keys of any length."""
    literals = sum([len(literal) for _, literal in properties.values()])
    return len(properties) <= PROPERTIES_MAX and 2 * literals <= SURELY_SMALL


def check_merged(partition_key: str, row_key: str, properties: Mapping[str, Property]) -> Steps[None]:
    """Reject an entity merged from two legal ones that has too many properties or is too large.

    Each large value is measured in a step.

    Raises:
        ServiceError: `TooManyProperties`, `EntityTooLarge`.
    """
    size = _Size(partition_key, row_key)
    for name, (edm, literal) in properties.items():
        size.add(name, edm, edm.size(literal))
        if len(literal) > _LARGE_LITERAL:
            yield
    size.check()


class _Size:
    """The size of an entity by the billing formula, added up property by property."""

    def __init__(self, partition_key: str | None, row_key: str | None) -> None:
        self._bytes = 4 + 2 * (utf16_length(partition_key or "") + utf16_length(row_key or ""))
        self._properties = 0
        self._value_too_large = False

    def add(self, name: str, edm: EdmType, value_bytes: int) -> None:
        """Add a property, given the size of its value."""
        self._properties += 1
        self._bytes += _PROPERTY_OVERHEAD_BYTES + 2 * utf16_length(name) + value_bytes
        self._value_too_large = self._value_too_large or value_bytes > edm.limit

    def check(self) -> None:
        """Reject an entity that has too many properties or is too large.

        The whole is checked before its parts, as the service does: one binary of 1 MiB is an `EntityTooLarge`.

        Raises:
            ServiceError: `TooManyProperties`, `EntityTooLarge`, `PropertyValueTooLarge`.
        """
        if self._properties > PROPERTIES_MAX:
            raise ServiceError("TooManyProperties")
        if self._bytes > ENTITY_MAX_BYTES:
            raise ServiceError("EntityTooLarge")
        if self._value_too_large:
            raise ServiceError("PropertyValueTooLarge")
