"""Atom bodies in: what an entity or a table is to be. Source: reference §7.

Of an entry only the properties count: title, id, author and links are ignored, as is `Timestamp`. White space in a
string is kept, whether `xml:space` asks for that or not (*unverified*: the service may drop some without it).

Invariants: the limits of protocol/xml/parser.py hold, with room for as many properties as a JSON body may have;
whatever is wrong with the XML itself, or with what stands where, is one `InvalidInput`.
"""

from collections.abc import Callable

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.document import Node
from lazulite.table.model.edm import BINARY, BOOLEAN, STRING
from lazulite.table.model.entity import KEYS, MALFORMED, Entity, build_entity
from lazulite.table.model.literals import Json
from lazulite.table.payload.atom_names import ATOM, DATA, METADATA

BODY_MAX_BYTES = 4 * 1024 * 1024
ELEMENTS_MAX = 2_048
"""Elements of a body; an entity has 255 properties, and an entry a dozen elements around them."""

_ENTRY = f"{{{ATOM}}}entry"
_CONTENT = f"{{{ATOM}}}content"
_PROPERTIES = f"{{{METADATA}}}properties"
_TYPE = f"{{{METADATA}}}type"
_NULL = f"{{{METADATA}}}null"
_TRUE = frozenset({"true", "1"})


def _boolean(text: str) -> Json:
    return {"1": True, "0": False}.get(text.strip(), text.strip())


_NO_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))

_READERS: dict[str, Callable[[str], Json]] = {
    STRING.name: lambda text: text,
    BOOLEAN.name: _boolean,
    BINARY.name: lambda text: text.translate(_NO_BLANKS),
}
"""Where a type's text in XML is not what the type takes from JSON, white space around it apart."""


def read_entity(body: bytes) -> Steps[Entity]:
    """Return the entity that a body describes, read in steps.

    Raises:
        ServiceError: `InvalidInput`, the body is no entry; as `build_entity`; `DuplicatePropertiesSpecified`.
    """
    values: dict[str, Json] = {}
    types: dict[str, Json] = {}
    for node in (yield from _properties(body)):
        yield
        name, type_name, value = _property(node)
        if name in values:
            raise ServiceError("DuplicatePropertiesSpecified")
        if name in KEYS and type_name != STRING.name:
            raise ServiceError("InvalidInput", MALFORMED)
        if name != "Timestamp":
            values[name] = value
            types[name] = type_name
    return (yield from build_entity(values, types))


def read_table_name(body: bytes) -> Steps[str]:
    """Return the name that a Create Table asks for.

    Raises:
        ServiceError: `InvalidInput`, there is no name, or there is something else.
    """
    nodes = yield from _properties(body)
    match list(map(_property, nodes)):
        case [("TableName", STRING.name, str(name))] if name:
            return name
    raise ServiceError("InvalidInput", MALFORMED)


def _properties(body: bytes) -> Steps[tuple[Node, ...]]:
    """Return the elements of the properties of the entry that a body is."""
    entry = yield from _read(body)
    if _plain(entry.name) != _ENTRY:
        raise _misplaced(entry)
    # Of an entry with media, the properties stand beside its content.
    contents = [child for child in entry.children if _plain(child.name) == _CONTENT]
    candidates = [child for parent in (*contents, entry) for child in parent.children]
    found = [child for child in candidates if _plain(child.name) == _PROPERTIES]
    if len(found) != 1:
        raise _misplaced(entry)
    return found[0].children


def _property(node: Node) -> tuple[str, str, Json]:
    """Return name, type and value of a property."""
    namespace, _, name = _plain(node.name).rpartition("}")
    if namespace != f"{{{DATA}":
        raise _misplaced(node)
    attributes = {_plain(key): text for key, text in node.attributes.items()}
    type_name = attributes.get(_TYPE, STRING.name)
    if attributes.get(_NULL, "").strip() in _TRUE:
        return name, type_name, None
    if node.children:
        raise _misplaced(node)
    return name, type_name, _READERS.get(type_name, str.strip)(node.text)


def _plain(name: str) -> str:
    """Return a name in the namespace that was meant: samples on the web say `https`, rewritten by a machine."""
    return name.replace("{https:", "{http:", 1)


def _read(body: bytes) -> Steps[Node]:
    try:
        return (yield from xml.reading(body, max_bytes=BODY_MAX_BYTES, max_elements=ELEMENTS_MAX))
    except ServiceError as error:
        if error.code != "InvalidXmlDocument":
            raise
        details = ", ".join(f"{name}: {text}" for name, text in error.details)
        raise ServiceError("InvalidInput", f"{MALFORMED} ({details})") from None


def _misplaced(node: Node) -> ServiceError:
    line, position = node.place
    reason = "An entity's entry has no such element in this place."
    return ServiceError("InvalidInput", f"{MALFORMED} (LineNumber: {line}, LinePosition: {position}, Reason: {reason})")
