"""Atom: bodies in, what an entity or a table is to be; payloads out, entries, feeds and errors. Source: reference §7.

Of an entry that comes in only the properties count: title, id, author and links are ignored, as is `Timestamp`. White
space in a string is kept, whether `xml:space` asks for that or not (*unverified*: the service may drop some without
it). Elements that go out are in the order of OData 1.0.

Invariants:
- The limits of protocol/xml/parser.py hold, with room for as many properties as a JSON body may have; whatever is wrong
  with the XML itself, or with what stands where, is one `InvalidInput`.
- What is written is well-formed, whatever is stored. The names of stored properties are names in XML too
  (table/names.py). Their texts may have characters that JSON carries and XML does not (U+0001, U+FFFE, half a surrogate
  pair). An entity with one of them is rejected in Atom: a client that changed another property would write a changed
  text back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps, finish
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.document import Node, leaf
from lazulite.protocol.xml.text import attribute, content, escaped, is_name, is_text
from lazulite.table.model.edm import (
    BINARY,
    BOOLEAN,
    DATETIME,
    DOUBLE,
    GUID,
    INT32,
    INT64,
    STRING,
    Json,
    format_datetime,
)
from lazulite.table.model.entity import KEYS, MALFORMED, Entity, build_entity
from lazulite.table.model.row import LARGE_BYTES, DecodedRow, Property, decode_row, etag_of
from lazulite.table.payload.feed import FeedFrame
from lazulite.table.payload.links import entity_link, table_link

ATOM = "http://www.w3.org/2005/Atom"
DATA = "http://schemas.microsoft.com/ado/2007/08/dataservices"
METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
SCHEME = "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme"


BODY_MAX_BYTES = 4 * 1024 * 1024
ELEMENTS_MAX = 2_048
"""Elements of a body; an entity has 255 properties, and an entry a dozen elements around them."""

_ENTRY = f"{{{ATOM}}}entry"
_CONTENT = f"{{{ATOM}}}content"
_PROPERTIES = f"{{{METADATA}}}properties"
_TYPE = f"{{{METADATA}}}type"
_NULL = f"{{{METADATA}}}null"
_TRUE = frozenset({"true", "1"})

_NO_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))

_DECLARATION = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>'
_NAMESPACES = f'xmlns:d="{DATA}" xmlns:m="{METADATA}" xmlns="{ATOM}"'
_AUTHOR = "<author><name /></author>"
_RETURN = "&#xD;"
_LARGE_PROPERTY = 4096
"""Characters of an element that takes longer to write than a step costs."""
_DOUBLES = {'"NaN"': "NaN", '"Infinity"': "INF", '"-Infinity"': "-INF"}


def _boolean(text: str) -> Json:
    return {"1": True, "0": False}.get(text.strip(), text.strip())


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
    for node in (yield from _property_nodes(body)):
        yield
        name, type_name, value = _read_property(node)
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
    nodes = yield from _property_nodes(body)
    match list(map(_read_property, nodes)):
        case [("TableName", STRING.name, str(name))] if name:
            return name
    raise ServiceError("InvalidInput", MALFORMED)


def _property_nodes(body: bytes) -> Steps[tuple[Node, ...]]:
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


def _read_property(node: Node) -> tuple[str, str, Json]:
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
        return (yield from xml.parse_in_steps(body, max_bytes=BODY_MAX_BYTES, max_elements=ELEMENTS_MAX))
    except ServiceError as error:
        if error.code != "InvalidXmlDocument":
            raise
        details = ", ".join(f"{name}: {text}" for name, text in error.details)
        raise ServiceError("InvalidInput", f"{MALFORMED} ({details})") from None


def _misplaced(node: Node) -> ServiceError:
    line, position = node.position
    reason = "An entity's entry has no such element in this place."
    return ServiceError("InvalidInput", f"{MALFORMED} (LineNumber: {line}, LinePosition: {position}, Reason: {reason})")


def _string(literal: str) -> str:
    text = literal[1:-1] if "\\" not in literal else str(STRING.decode(literal))
    if not is_text(text):
        raise ValueError("XML cannot carry this")
    return escaped(text)


def _double(literal: str) -> str:
    return _DOUBLES.get(literal) or literal.removesuffix(".0")


def _bare(literal: str) -> str:
    return literal


def _unquoted(literal: str) -> str:
    return literal[1:-1]


_TEXTS: dict[str, Callable[[str], str]] = {
    STRING.name: _string,
    BOOLEAN.name: _bare,
    INT32.name: _bare,
    INT64.name: _unquoted,
    DOUBLE.name: _double,
    DATETIME.name: _unquoted,
    GUID.name: _unquoted,
    BINARY.name: _unquoted,
}
"""From the canonical literal of a value to its content in XML, by the type's name."""


def _property(name: str, found: Property | None) -> str:
    """Return the element of a property; `found` is None for a selected one that the entity lacks.

    Raises:
        ValueError: XML cannot carry it.
    """
    if found is None:
        return f'<d:{name} m:null="true" />'
    text = _TEXTS[found.edm.name](found.literal)
    if found.edm is not STRING:
        return f'<d:{name} m:type="{found.edm.name}">{text}</d:{name}>'
    bare = text.removeprefix(_RETURN).removesuffix(_RETURN).strip()
    space = "" if bare == text else ' xml:space="preserve"'
    return f"<d:{name}{space}>{text}</d:{name}>"


def _properties(table: str, keys: tuple[str, str], properties: Mapping[str, Property | None]) -> Steps[str]:
    """Return the elements of an entity's properties, one large property in a step.

    Raises:
        ServiceError: `AtomFormatNotSupported`, with what XML cannot carry.
    """
    parts = []
    for name, found in properties.items():
        try:
            parts.append(_property(name, found))
            if len(parts[-1]) > _LARGE_PROPERTY:
                yield
        except ValueError:
            where = f"The property '{name}' of the entity {entity_link(table, *keys)}"
            message = f"{where} cannot be spelled in XML, which lacks some of its characters. JSON has them."
            raise ServiceError("AtomFormatNotSupported", message) from None
    return "".join(parts)


def _whole(row: DecodedRow) -> dict[str, Property | None]:
    system = {
        "PartitionKey": Property(STRING, STRING.literal(row.partition_key)),
        "RowKey": Property(STRING, STRING.literal(row.row_key)),
        "Timestamp": Property(DATETIME, DATETIME.literal(format_datetime(row.ticks))),
    }
    return {**system, **row.properties}


def check(partition_key: str, row_key: str, properties: Mapping[str, Property]) -> Steps[None]:
    """Reject an entity about to be stored that could not be returned in Atom, in steps.

    Raises:
        ServiceError: `AtomFormatNotSupported`.
    """
    yield from _properties(
        "", (partition_key, row_key), _whole(DecodedRow(partition_key, row_key, 0, dict(properties)))
    )


class _Set:
    """The parts that all entries of one entity set have.

    Args:
        base: absolute URL of the account, with trailing slash.
        account: the account's name.
        name: the set's name.
        ticks: the time of the response.
    """

    def __init__(self, base: str, account: str, name: str, ticks: int) -> None:
        self._base = base
        self._name = attribute(name)
        self._updated = format_datetime(ticks - ticks % TICKS_PER_SECOND)
        self._category = f'<category term="{attribute(account)}.{self._name}" scheme="{SCHEME}" />'
        self.root = f' xml:base="{attribute(base)}" {_NAMESPACES}'
        """The attributes that the root of a document has."""

    def entry(self, opening: str, link: str, properties: str) -> bytes:
        """Return an entry, given its opening tag, its relative address, and the elements of its properties."""
        edit = f'<link rel="edit" title="{self._name}" href="{attribute(link)}" />'
        return (
            f'{opening}<id>{content(self._base + link)}</id><title type="text"></title>'
            f"<updated>{self._updated}</updated>{_AUTHOR}{edit}{self._category}"
            f'<content type="application/xml"><m:properties>{properties}</m:properties></content></entry>'
        ).encode()

    def feed(self, *, empty: bool) -> FeedFrame:
        """Return the document of a page without its entries; `empty`: it will have none."""
        author = _AUTHOR if empty else ""
        head = (
            f'{_DECLARATION}<feed{self.root}><title type="text">{self._name}</title>'
            f"<id>{content(self._base)}{self._name}</id><updated>{self._updated}</updated>{author}"
            f'<link rel="self" title="{self._name}" href="{self._name}" />'
        )
        return FeedFrame(head.encode(), b"", b"</feed>")


class AtomEntityWriter:
    """Serializes entities of one table for one request.

    Args:
        base: absolute URL of the account, with trailing slash.
        account: the account's name.
        table: the table's name as the request wrote it.
        ticks: the time of the response.
        select: names selected, in order; None for all.

    Raises:
        ServiceError: `InvalidInput`, a selected name that no property can have.
    """

    def __init__(self, base: str, account: str, table: str, ticks: int, select: Sequence[str] | None = None) -> None:
        self._set = _Set(base, account, table, ticks)
        self._table = table
        if select is not None and not all(map(is_name, select)):
            raise ServiceError("InvalidInput")
        self._select = select

    def item(self, value: bytes) -> bytes:
        """Return the entry of one entity of a page."""
        return finish(self.item_steps(value))

    def entity(self, value: bytes) -> bytes:
        """Return the document that one entity is."""
        return finish(self.entity_steps(value))

    def item_steps(self, value: bytes) -> Steps[bytes]:
        """Return what `item` does, in steps."""
        return self._entry("<entry", value)

    def entity_steps(self, value: bytes) -> Steps[bytes]:
        """Return what `entity` does, in steps."""
        return self._entry(f"{_DECLARATION}<entry{self._set.root}", value)

    def feed(self, *, empty: bool) -> FeedFrame:
        """Return the document of a page without what `item` gives for each entity; `empty`: it will have none."""
        return self._set.feed(empty=empty)

    def _entry(self, opening: str, value: bytes) -> Steps[bytes]:
        row = decode_row(value)
        if len(value) > LARGE_BYTES:
            yield
        keys = row.partition_key, row.row_key
        whole = _whole(row)
        wanted = whole if self._select is None else {name: whole.get(name) for name in self._select}
        properties = yield from _properties(self._table, keys, wanted)
        opening = f'{opening} m:etag="{attribute(etag_of(row.ticks))}">'
        return self._set.entry(opening, entity_link(self._table, *keys), properties)


class AtomTableWriter:
    """Serializes tables for one request; arguments as `AtomEntityWriter`'s."""

    def __init__(self, base: str, account: str, ticks: int) -> None:
        self._set = _Set(base, account, "Tables", ticks)

    def table(self, name: str) -> bytes:
        """Return the document that one table is."""
        return self._entry(f"{_DECLARATION}<entry{self._set.root}>", name)

    def feed(self, names: Iterable[str]) -> bytes:
        """Return the document of a page of tables."""
        entries = [self._entry("<entry>", name) for name in names]
        return self._set.feed(empty=not entries).whole(entries)

    def _entry(self, opening: str, name: str) -> bytes:
        return self._set.entry(opening, table_link(name), leaf("d:TableName", name))


def error_payload(error: ServiceError, request_id: str, time: str) -> bytes:
    """Return the document of an error; `time` has all seven digits of its fraction."""
    text = content(f"{error.message}\nRequestId:{request_id}\nTime:{time}")
    message = f'<message xml:lang="en-US">{text}</message>'
    return f'{_DECLARATION}<error xmlns="{METADATA}">{leaf("code", error.code)}{message}</error>'.encode()
