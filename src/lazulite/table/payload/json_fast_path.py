"""The short way from a JSON entity to its stored form, for bodies that have nothing unusual about them.

Programs send entities of few shapes: the same names and annotations in the same order, over and over. What a shape
means is worked out once and remembered; of each body only the values are looked at.

Invariants: whatever is wrong or unusual is left to the long way (`encode_plain` returns None), so that no refusal is
spelled here; the result is what the long way gives. What is remembered is bounded: `SHAPES_MAX` shapes of at most
`MEMBERS_MAX` members with names of at most `_NAME_MAX` characters.
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
    """Not for here."""


_Step = tuple[int, str | None, str]
"""One property: where its value stands among the members; the name of its type, None if the value itself tells it; what
precedes it in a row."""


class _Shape(NamedTuple):
    """Where the keys stand among the members (-1: nowhere), and the properties as sent and by name."""

    partition_at: int
    row_at: int
    as_sent: tuple[_Step, ...]
    by_name: tuple[_Step, ...]


def encode_plain(members: Members, by_name: bool, *, unescaped: bool = False) -> EncodedEntity | None:
    """Encode an entity's properties as sent or by name; None if that is not for here.

    Args:
        members: of the body.
        by_name: whether the properties go by name.
        unescaped: whether no text among the members has a character that is escaped in a literal.
    """
    spell = _SPELL_UNESCAPED if unescaped else _SPELL
    try:
        shape = _shape_of(
            tuple([name for name, _ in members]),
            tuple([value for name, value in members if "@" in name]),
        )
        values = [value for _, value in members]
        values.append(None)  # The last one is what a key that stands nowhere is.
        parts: list[str] = []
        for at, declared, prefix in shape.by_name if by_name else shape.as_sent:
            value = values[at]
            if value is not None:
                parts += prefix, spell[declared or type(value)](value)
    except (ServiceError, ValueError, TypeError, KeyError):
        return None
    text = "".join(parts)
    partition_key, row_key = values[shape.partition_at], values[shape.row_at]
    if type(partition_key) not in _KEY_TYPES or type(row_key) not in _KEY_TYPES or 2 * len(text) > STRING.limit:
        return None
    return EncodedEntity(cast("str | None", partition_key), cast("str | None", row_key), text)


@lru_cache(maxsize=SHAPES_MAX)
def _shape_of(names: tuple[str, ...], types: tuple[Json, ...]) -> _Shape:
    """Return what these names mean; `types` are the values of the annotations among them.

    Raises:
        ServiceError, ValueError, TypeError, KeyError: something is wrong or unusual.
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
    steps: dict[str, _Step] = {}
    for name in bare:
        if name not in KEYS:
            check_property_name(name)
            edm = declared.get(name)
            annotation = edm.name if edm is not None and edm.annotated else ""
            steps[name] = (names.index(name), edm and edm.name, member_prefix(name, annotation))
    partition_at, row_at = (names.index(name) if name in names else -1 for name in KEYS)
    return _Shape(partition_at, row_at, tuple(steps.values()), tuple(in_order(steps).values()))


def _is_annotation(name: str) -> bool:
    return name.endswith(ANNOTATION)


def _plain_double(value: Json) -> str:
    literal = DOUBLE.literal(value)
    if literal[0] == '"':  # Needs an annotation, which other Doubles have not.
        raise _UnusualError
    return literal


def _unescaped(text: Json) -> str:
    return '"' + text + '"'  # type: ignore[operator]  # a TypeError if it is not even a text


_SPELL: dict[str | type, _Literal] = {
    **{edm.name: edm.literal for edm in TYPES.values()},
    DOUBLE.name: _plain_double,
    str: STRING.literal,
    bool: BOOLEAN.literal,
    int: INT32.literal,
    float: DOUBLE.literal,
}
"""What spells a value, by the name of its declared type, else by what it is."""

_SPELL_UNESCAPED = _SPELL | {str: _unescaped, STRING.name: _unescaped}
_KEY_TYPES = (str, type(None))
