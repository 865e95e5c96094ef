"""JSON bodies in: what an entity or a table is to be.

`Timestamp`, `odata.*` members and annotations of what is not there are ignored. Invariants: nothing is built from a
body that is nested deeper than `DEPTH_MAX`; whatever is wrong with the JSON itself is one `InvalidInput`.
"""

import json
import re
from codecs import BOM_UTF8
from typing import NoReturn

from lazulite.protocol.errors import ServiceError
from lazulite.table.edm import Json
from lazulite.table.entity import MALFORMED, EncodedEntity, Entity, build_entity, encode_entity
from lazulite.table.payload.json_shape import ANNOTATION, Members, encode_plain

DEPTH_MAX = 32
"""Brackets open at one time. An entity is flat; what is deeper is refused either way, this bounds the work."""

MEMBERS_MAX = 2048
"""Members of a body, annotations and nulls included; an entity has 255 properties, each annotated at most once."""

_PLAIN_BYTES_MAX = 32 * 1024
"""Most longer bodies are too long for the short way, which would notice at its end."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string; also what begins as one and never ends, lest each quote in it be tried as a beginning again."""
_SHORTEST_MEMBER = len('"":1')
_BLANKS = b" \t\r\n"
_DELETE = "\x7f"
"""Of ASCII, the one control character that JSON allows in a string as it is, and a literal does not."""
_NOT_BRACKETS = re.compile(rb"[^\[\]{}]+")


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=_refuse_constant)
"""An object becomes the tuple of its members, as opposed to an array, which becomes a list."""


def _check_structure(body: bytes) -> None:
    """Refuse, before anything is built, what is nested too deeply or has far more members than an entity."""
    # Most are flat, which shows at a glance; counting brackets costs several times as much.
    flat = body.rfind(b"{") <= 0 and body.find(b"[") < 0
    shallow = flat or body.count(b"{") + body.count(b"[") <= DEPTH_MAX
    if shallow and (len(body) < _SHORTEST_MEMBER * MEMBERS_MAX or body.count(b":") <= MEMBERS_MAX):
        return
    bare = _STRING.sub(b"", body)
    if bare.count(b":") > MEMBERS_MAX:
        raise ServiceError("TooManyProperties")
    if _is_too_deep(bare):
        raise ServiceError("InvalidInput", MALFORMED)


def _is_too_deep(bare: bytes) -> bool:
    depth = 0
    for bracket in _NOT_BRACKETS.sub(b"", bare):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            return True
    return False


def read_members(body: bytes) -> Members:
    """Return the members of the JSON object that a body is.

    Raises:
        ServiceError: `InvalidInput`, the body is no JSON object; `TooManyProperties`, it is out of all proportion.
    """
    return _read(body)[1]


def _read(body: bytes) -> tuple[str, Members]:
    """Return the text of a body, and what `read_members` does."""
    _check_structure(body)
    try:
        text = body.removeprefix(BOM_UTF8).strip(_BLANKS).decode()
        members, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise ServiceError("InvalidInput", MALFORMED) from None
    if end != len(text) or not isinstance(members, tuple):
        raise ServiceError("InvalidInput", MALFORMED)
    return text, members


def read_entity(body: bytes) -> Entity:
    """Return the entity that a body describes.

    Raises:
        ServiceError: as `read_members` and `build_entity`; `DuplicatePropertiesSpecified`.
    """
    return _build(read_members(body))


def read_encoded(body: bytes, by_name: bool) -> EncodedEntity:
    """Return the entity that a body describes, encoded as `encode_entity` does.

    Raises:
        ServiceError: as `read_entity`.
    """
    text, members = _read(body)
    if len(body) <= _PLAIN_BYTES_MAX:
        encoded = encode_plain(members, by_name, unescaped=_is_unescaped(text))
        if encoded is not None:
            return encoded
    return encode_entity(_build(members), by_name)


def _is_unescaped(body: str) -> bool:
    """Tell whether every string in well-formed JSON is its literal already: nothing is escaped, nor has to be."""
    return body.isascii() and "\\" not in body and _DELETE not in body


def _build(members: Members) -> Entity:
    values: dict[str, Json] = {}
    types: dict[str, Json] = {}
    for name, value in members:
        if "@" in name:
            if name.endswith(ANNOTATION):
                types[name.removesuffix(ANNOTATION)] = value
        elif name != "Timestamp" and not name.startswith("odata."):
            if name in values:
                raise ServiceError("DuplicatePropertiesSpecified")
            values[name] = value
    return build_entity(values, types)


def read_table_name(body: bytes) -> str:
    """Return the name that a Create Table asks for.

    Raises:
        ServiceError: `InvalidInput`, there is no name, or there is something else.
    """
    match [member for member in read_members(body) if "@" not in member[0] and not member[0].startswith("odata.")]:
        case [("TableName", str(name))] if name:
            return name
    raise ServiceError("InvalidInput", MALFORMED)
