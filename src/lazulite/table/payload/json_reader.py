"""JSON bodies in: what an entity or a table is to be.

`Timestamp`, `odata.*` members and annotations of what is not there are ignored. Short bodies are read by the standard
decoder in one call, long or nested ones value by value (`json_walk`), in steps.

Invariants: the two ways give the same; whatever is wrong with the JSON itself is one `InvalidInput`.
"""

from codecs import BOM_UTF8

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.table.model.edm import Json
from lazulite.table.model.entity import MALFORMED, EncodedEntity, Entity, build_entity, encode_entity
from lazulite.table.payload.json_fast_path import ANNOTATION, Members, encode_plain
from lazulite.table.payload.json_walk import DECODER, DEPTH_MAX, MEMBERS_MAX, walk

_SHORT_BYTES_MAX = 32 * 1024
"""Bodies of up to this many bytes take few milliseconds in one step, whatever they are."""

_SHORTEST_MEMBER = len('"":1')
_BLANKS = b" \t\r\n"
_DELETE = "\x7f"
"""Of ASCII, the one control character that JSON allows in a string as it is, and a literal does not."""


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
    return (yield from _read(body))[1]


def _read(body: bytes) -> Steps[tuple[str, Members]]:
    """Return the text of a body, and what `read_members` does."""
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
    return text, members


def read_entity(body: bytes) -> Steps[Entity]:
    """Return the entity that a body describes.

    Raises:
        ServiceError: as `read_members` and `build_entity`; `DuplicatePropertiesSpecified`.
    """
    return (yield from _build((yield from read_members(body))))


def read_encoded(body: bytes, by_name: bool) -> Steps[EncodedEntity]:
    """Return the entity that a body describes, encoded as `encode_entity` does.

    Raises:
        ServiceError: as `read_entity`.
    """
    text, members = yield from _read(body)
    if len(body) <= _SHORT_BYTES_MAX:
        encoded = encode_plain(members, by_name, unescaped=_is_unescaped(text))
        if encoded is not None:
            return encoded
    return encode_entity((yield from _build(members)), by_name)


def _is_unescaped(body: str) -> bool:
    """Tell whether every string in well-formed JSON is its literal already: nothing is escaped, nor has to be."""
    return body.isascii() and "\\" not in body and _DELETE not in body


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
