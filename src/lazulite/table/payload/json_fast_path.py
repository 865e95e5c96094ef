"""The fast path from a JSON entity to its stored form, for bodies without anything unusual.

Programs send entities of few shapes: the same names and annotations in the same order. A shape is analysed once and
cached; of each further body only the values are read.

Invariants: the general path handles everything invalid or unusual (`encode_plain` returns None), so no error is raised
here; both paths give the same result. The cache is bounded: `SHAPES_MAX` shapes of at most `MEMBERS_MAX` members with
names of at most `_NAME_MAX` characters.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, cast

from lazulite.protocol.errors import ServiceError
from lazulite.table.model.edm import BOOLEAN, DOUBLE, INT32, STRING, TYPES, Json
from lazulite.table.model.entity import KEYS, EncodedEntity
from lazulite.table.model.row import in_order, member_prefix
from lazulite.table.names import PROPERTY_NAME_MAX, check_property_name

SHAPES_MAX = 512
MEMBERS_MAX = 64
ANNOTATION = "@odata.type"
_NAME_MAX = PROPERTY_NAME_MAX + len(ANNOTATION)

Members = tuple[tuple[str, Json], ...]
"""The members of a JSON object, in order."""

_Literal = Callable[[Json], str]


class _UnusualError(ValueError):
    """The general path must handle the body."""


PropertySlot = tuple[int, str | None, str]
"""One property: the index of its value among the members, the name of its declared type, its prefix in a row."""


class Shape(NamedTuple):
    """The indices of the keys among the members (-1: absent), and the properties as sent and by name."""

    partition_at: int
    row_at: int
    as_sent: tuple[PropertySlot, ...]
    by_name: tuple[PropertySlot, ...]


def encode_plain(members: Members, by_name: bool) -> EncodedEntity | None:
    """Encode an entity's properties as sent or by name. Return None if the general path must do it."""
    try:
        shape = shape_of(members)
        values = [value for _, value in members]
        values.append(None)  # The value of a key that is absent: index -1.
        parts: list[str] = []
        for at, declared, prefix in shape.by_name if by_name else shape.as_sent:
            value = values[at]
            if value is not None:
                parts += prefix, _SERIALIZERS[declared or type(value)](value)
    except (ServiceError, ValueError, TypeError, KeyError):
        return None
    text = "".join(parts)
    partition_key, row_key = values[shape.partition_at], values[shape.row_at]
    if type(partition_key) not in _KEY_TYPES or type(row_key) not in _KEY_TYPES or 2 * len(text) > STRING.limit:
        return None
    return EncodedEntity(cast("str | None", partition_key), cast("str | None", row_key), text)


def shape_of(members: Members) -> Shape:
    """Return the shape of a body.

    Raises:
        ServiceError, ValueError, TypeError, KeyError: the shape is invalid or unusual.
    """
    return _analyse(
        tuple([name for name, _ in members]),
        tuple([value for name, value in members if "@" in name]),
    )


@lru_cache(maxsize=SHAPES_MAX)
def _analyse(names: tuple[str, ...], types: tuple[Json, ...]) -> Shape:
    """Analyse a shape, given its names and the values of the annotations among them.

    Raises:
        ServiceError, ValueError, TypeError, KeyError: the shape is invalid or unusual.
    """
    annotations = [name for name in names if "@" in name]
    bare = [name for name in names if "@" not in name and name != "Timestamp" and not name.startswith("odata.")]
    if len(names) > MEMBERS_MAX or max(map(len, names), default=0) > _NAME_MAX:
        raise _UnusualError
    if len(set(names)) < len(names) or not all(map(_is_annotation, annotations)):
        raise _UnusualError
    declared = {
        name.removesuffix(ANNOTATION): TYPES[cast("str", type_name)]  # A KeyError if it is not even a text.
        for name, type_name in zip(annotations, types, strict=True)
    }
    if any(declared.get(name, STRING) is not STRING for name in KEYS):
        raise _UnusualError
    slots: dict[str, PropertySlot] = {}
    for name in bare:
        if name not in KEYS:
            check_property_name(name)
            edm = declared.get(name)
            annotation = edm.name if edm is not None and edm.annotated else ""
            slots[name] = (names.index(name), edm and edm.name, member_prefix(name, annotation))
    partition_at, row_at = (names.index(name) if name in names else -1 for name in KEYS)
    return Shape(partition_at, row_at, tuple(slots.values()), tuple(in_order(slots).values()))


def _is_annotation(name: str) -> bool:
    return name.endswith(ANNOTATION)


def _plain_double(value: Json) -> str:
    literal = DOUBLE.literal(value)
    if literal[0] == '"':  # Needs an annotation, which other Doubles have not.
        raise _UnusualError
    return literal


_SERIALIZERS: dict[str | type, _Literal] = {
    **{edm.name: edm.literal for edm in TYPES.values()},
    DOUBLE.name: _plain_double,
    str: STRING.literal,
    bool: BOOLEAN.literal,
    int: INT32.literal,
    float: DOUBLE.literal,
}
"""From a value to its literal, by the name of its declared type, else by its Python type."""

_KEY_TYPES = (str, type(None))
