"""JSON bodies in: what an entity or a table is to be.

`Timestamp`, `odata.*` members and annotations of what is not there are ignored. Short bodies are read by the standard
decoder in one call, long or nested ones value by value (`json_walk`), in steps.

Invariants: the two ways give the same; whatever is wrong with the JSON itself is one `InvalidInput`.
"""

from codecs import BOM_UTF8

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.table.model.entity import MALFORMED, EncodedEntity, Entity, build_entity, encode_entity
from lazulite.table.model.literals import Json
from lazulite.table.payload.json_fast_path import ANNOTATION, Members, encode_plain
from lazulite.table.payload.json_walk import DECODER, DEPTH_MAX, MEMBERS_MAX, walk
from lazulite.table.payload.pattern_cache import TablePatterns

_SHORT_BYTES_MAX = 32 * 1024
"""Bodies of up to this many bytes take few milliseconds in one step, whatever they are."""

_SHORTEST_MEMBER = len('"":1')
_BLANKS = b" \t\r\n"


def _is_plain(body: bytes) -> bool:
    """Tell at a glance that a body is short, not nested too deeply, and has not too many members."""
    if len(body) > _SHORT_BYTES_MAX or (len(body) >= _SHORTEST_MEMBER * MEMBERS_MAX and body.count(b":") > MEMBERS_MAX):
        return False
    # Most are flat, which costs less to tell than the number of brackets.
    flat = body.rfind(b"{") <= 0 and body.find(b"[") < 0
    return flat or body.count(b"{") + body.count(b"[") <= DEPTH_MAX


def read_members(body: bytes) -> Steps[Members]:
    """Return the members of the JSON object that a body is.

    Raises:
        ServiceError: `InvalidInput`, the body is no JSON object; `TooManyProperties`, it is out of all proportion.
    """
    try:
        if _is_plain(body):
            text = body.removeprefix(BOM_UTF8).strip(_BLANKS).decode()
            members, end = DECODER.raw_decode(text)
            if end != len(text):
                raise ValueError("something follows the value")
        else:
            yield
            text = body.removeprefix(BOM_UTF8).decode()
            yield
            members = yield from walk(text)
    except ValueError:
        raise ServiceError("InvalidInput", MALFORMED) from None
    if not isinstance(members, tuple):
        raise ServiceError("InvalidInput", MALFORMED)
    return members


def read_entity(body: bytes) -> Steps[Entity]:
    """Return the entity that a body describes.

    Raises:
        ServiceError: as `read_members` and `build_entity`; `DuplicatePropertiesSpecified`.
    """
    return (yield from _build((yield from read_members(body))))


def read_encoded(body: bytes, by_name: bool, patterns: TablePatterns) -> Steps[EncodedEntity]:
    """Return the entity that a body describes, encoded as `encode_entity` does.

    Args:
        body: of a write.
        by_name: whether the properties are ordered by name.
        patterns: of the bodies of the table, which learn from this one.

    Raises:
        ServiceError: as `read_entity`.
    """
    members = yield from read_members(body)
    if len(body) <= _SHORT_BYTES_MAX:
        encoded = encode_plain(members, by_name)
        if encoded is not None:
            patterns.learn(body, members)
            return encoded
    return encode_entity((yield from _build(members)), by_name)


def _build(members: Members) -> Steps[Entity]:
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
    return (yield from build_entity(values, types))


def read_table_name(body: bytes) -> Steps[str]:
    """Return the name that a Create Table asks for.

    Raises:
        ServiceError: `InvalidInput`, there is no name, or there is something else.
    """
    members = yield from read_members(body)
    match [member for member in members if "@" not in member[0] and not member[0].startswith("odata.")]:
        case [("TableName", str(name))] if name:
            return name
    raise ServiceError("InvalidInput", MALFORMED)
