"""Values of properties: their types, as text and as members of JSON, and guesses of types.

Invariant: `set_text` of what `type_of` and `text_of` return gives the same member again.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from lazulite.table.model.edm import (
    TYPES,
    Json,
    binary_literal,
    boolean_literal,
    datetime_literal,
    double_literal,
    guid_literal,
    int32_literal,
    int64_literal,
)

Entity: TypeAlias = dict[str, Json]
"""The members of an entity at minimal metadata, each annotation before its property."""

ANNOTATION = "@odata.type"
KEYS: Final = ("PartitionKey", "RowKey")
TIMESTAMP: Final = "Timestamp"
NULL = "Null"
"""The name of the type of a property that is there and has no value."""
STRING = "String"


class RowError(ValueError):
    """A row cannot be an entity. The text says why."""


TYPE_OF_JSON: Final[Mapping[type, str]] = {
    str: STRING,
    bool: "Boolean",
    int: "Int32",
    float: "Double",
    type(None): NULL,
}
"""The type of a member without an annotation."""


def _double(text: str) -> Json:
    literal = double_literal(text)
    return literal[1:-1] if literal[0] == '"' else float(literal)


def _boolean(text: str) -> Json:
    value = _BOOLEANS.get(text)
    return boolean_literal(text) == "true" if value is None else value


_BOOLEANS: Final = {"true": True, "false": False}


def _int32(text: str) -> Json:
    value = int(text) if text.isdigit() and text.isascii() else int(int32_literal(text))
    if value >= 1 << 31:
        raise ValueError("not an integer of this size")
    return value


class TypeReader(NamedTuple):
    """How a text of a type becomes a member."""

    convert: Callable[[str], Json] | None
    """Raises ValueError; None leaves the text."""
    annotation: str | None = None
    """None: the member needs none."""
    of_texts_only: bool = False
    """Only a member that is a text needs the annotation, as NaN."""
    has_empty: bool = False
    """The empty text is a value."""


READERS: Final[Mapping[str, TypeReader]] = {
    STRING: TypeReader(None, has_empty=True),
    "Boolean": TypeReader(_boolean),
    "Int32": TypeReader(_int32),
    "Int64": TypeReader(lambda text: int64_literal(text)[1:-1], "Edm.Int64"),
    "Double": TypeReader(_double, "Edm.Double", of_texts_only=True),
    "DateTime": TypeReader(lambda text: datetime_literal(text)[1:-1], "Edm.DateTime"),
    "Guid": TypeReader(lambda text: guid_literal(text)[1:-1], "Edm.Guid"),
    "Binary": TypeReader(lambda text: binary_literal(text)[1:-1], "Edm.Binary", has_empty=True),
    NULL: TypeReader(lambda _: None, has_empty=True),
}
"""By type."""

_NAMES: Final = {name.lower(): name for name in READERS}


def type_named(text: str) -> str:
    """Return the name of a type as files have it, such as `Int64`, given it in any case, with or without `Edm.`.

    Raises:
        RowError: there is no such type.
    """
    found = _NAMES.get(text.lower().removeprefix("edm."))
    if found is None:
        raise RowError(f"{text!r} is no type; the types are {', '.join(READERS)}")
    return found


def set_text(entity: Entity, name: str, type_name: str, text: str) -> None:
    """Set a property of an entity to the value that a text of a type has.

    Raises:
        RowError: the text is no value of the type.
    """
    convert, annotation, of_texts_only, _ = READERS[type_name]
    try:
        value = text if convert is None else convert(text)
    except ValueError:
        raise no_value(name, text, type_name) from None
    if annotation is not None and not (of_texts_only and type(value) is not str):
        entity[name + ANNOTATION] = annotation
    entity[name] = value


def no_value(name: str, text: str, type_name: str) -> RowError:
    """Return the error for a text that is no value of a type."""
    return RowError(f"{name}: {text[:80]!r} is no {type_name}")


def type_of(entity: Mapping[str, Json], name: str) -> str:
    """Return the type of a property.

    Raises:
        RowError: it has none, as it is an object or an array, or its annotation is none.
    """
    annotation = entity.get(name + ANNOTATION)
    if isinstance(annotation, str):
        return type_named(annotation)
    found = TYPE_OF_JSON.get(type(entity[name]))
    if found is None:
        raise RowError(f"{name} is an object or an array, which no property is")
    return found


def text_of(value: Json) -> str:
    """Return the text of a member."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else repr(value)


def property_names(entity: Mapping[str, Json]) -> list[str]:
    """Return the names of an entity's members without annotations and members of OData."""
    return [name for name in entity if "@" not in name and not name.startswith("odata.")]


def canonical(entity: Mapping[str, Json]) -> dict[str, tuple[str, str]]:
    """Return the type and the canonical literal of each property, so that equal entities compare equal.

    The Timestamp is left out, as the service sets it, and so are nulls, which it does not store.
    """
    found = {}
    for name in property_names(entity):
        kind = type_of(entity, name)
        if name != TIMESTAMP and kind != NULL:
            found[name] = kind, TYPES[f"Edm.{kind}"].literal(entity[name])
    return found


def check_keys(entity: Mapping[str, Json]) -> tuple[str, str]:
    """Return the keys of an entity.

    Raises:
        RowError: one is missing or no text.
    """
    keys = []
    for name in KEYS:
        key = entity.get(name)
        if not isinstance(key, str):
            raise RowError(f"{name} is missing" if key is None else f"{name} is no text")
        keys.append(key)
    return keys[0], keys[1]


_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,18})", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,7})?)?(?:Z|z|[+-]\d\d:?\d\d)", re.ASCII)
_HEX = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_EXACT_INTEGER = 1 << 53
"""Beyond it, a Double does not have every integer."""


def _is_integer(text: str, bits: int) -> bool:
    return _INTEGER.fullmatch(text) is not None and -(1 << bits) <= int(text) < 1 << bits


def _is_decimal(text: str) -> bool:
    if _DECIMAL.fullmatch(text) is None or float(text) in (float("inf"), float("-inf")):
        return False
    return not text.lstrip("-").isdigit() or abs(int(text)) <= _EXACT_INTEGER


_GUESSES: Final[Mapping[str, Callable[[str], bool]]] = {
    "Boolean": lambda text: text.lower() in ("true", "false"),
    "Int32": lambda text: _is_integer(text, 31),
    "Int64": lambda text: _is_integer(text, 63),
    "Double": _is_decimal,
    "DateTime": lambda text: _INSTANT.fullmatch(text) is not None,
    "Guid": lambda text: _HEX.fullmatch(text) is not None,
}
"""From the narrowest type: which texts it has. `007` is no number, as its zeros would be lost."""


def guess_type(texts: Iterable[str]) -> str:
    """Return the narrowest type that has all texts; String if there is none, or no text at all."""
    candidates: Sequence[str] = tuple(_GUESSES)
    seen = False
    for text in texts:
        if text:
            seen = True
            candidates = [each for each in candidates if _GUESSES[each](text)]
    return candidates[0] if seen and candidates else STRING
