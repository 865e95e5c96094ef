"""XML in and out: small documents, no surprises.

Invariants:
- a document without a DOCTYPE cannot define entities, so one with a DOCTYPE is refused before the parser sees it;
- bytes, elements and depth are bounded, so reading costs at most what the limits say;
- whatever the bytes are, reading them raises nothing but `ServiceError`.

Only UTF-8 is read, with or without a byte-order mark: the encoding that a document declares is ignored, so that nothing
can be smuggled past the check for a DOCTYPE in another encoding.

What is written begins with a byte-order mark and has no white space between elements, an empty element being
`<Cors />`, as the live service writes it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lxml import etree

from lazulite.protocol.errors import ServiceError

MAX_BYTES = 64 * 1024
MAX_ELEMENTS = 1_000
MAX_DEPTH = 16

_METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
_BOM = b"\xef\xbb\xbf"
_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"}
_START = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<([^!?/\s>])", re.DOTALL)
_SPECIAL = re.compile("[&<>\r\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Place(NamedTuple):
    """Where something stands in a document, both counted from 1."""

    line: int
    position: int


class Node(NamedTuple):
    """An element. Attributes, comments and processing instructions are left out: no document of ours uses them."""

    name: str
    """Local name, or `{namespace}name` when it has a namespace."""
    text: str
    """Its character data; of an element with children, what stands around them."""
    children: tuple["Node", ...]
    place: Place
    """Of the first character of its name."""


def read(
    body: bytes, *, max_bytes: int = MAX_BYTES, max_elements: int = MAX_ELEMENTS, max_depth: int = MAX_DEPTH
) -> Node:
    """Parse a document and return its root.

    Raises:
        ServiceError: `RequestBodyTooLarge` over `max_bytes`, `InvalidXmlDocument` for anything else that is wrong.
    """
    if len(body) > max_bytes:
        raise ServiceError("RequestBodyTooLarge")
    if b"<!DOCTYPE" in body:
        raise invalid_document("A document type declaration is not allowed.")
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise invalid_document("The document is not well-formed.", Place(*error.position)) from None
    assert root.getroottree().docinfo.internalDTD is None
    # `iter` is lazy: neither a wide nor a deep tree is walked further than the limit.
    places = _places(body)
    for count, (_, place) in enumerate(zip(root.iter(), _places(body), strict=False), 1):
        if count > max_elements:
            raise invalid_document(f"The document has more than {max_elements} elements.", place)
    return _node(root, max_depth, places)


def _places(body: bytes) -> Iterator[Place]:
    """Yield the places of a well-formed document's elements, in document order.

    lxml knows only lines. Outside comments, CDATA and processing instructions, each `<` before a name is an element.
    """
    text = body.removeprefix(_BOM)
    line, start, seen = 1, 0, 0
    for match in _START.finditer(text):
        if match[1]:
            at = match.start(1)
            line += text.count(b"\n", seen, at)
            start = max(start, text.rfind(b"\n", seen, at) + 1)
            seen = at
            yield Place(line, at - start + 1)


def _node(element: etree._Element, depth: int, places: Iterator[Place]) -> Node:
    place = next(places)
    if depth == 0:
        raise invalid_document("The document is nested too deeply.", place)
    children = tuple(_node(child, depth - 1, places) for child in element)
    text = (element.text or "") + "".join(child.tail or "" for child in element)
    return Node(str(element.tag), text, children, place)


def fields(node: Node, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Node]:
    """Return the children of `node` by name, in whatever order they came.

    Raises:
        ServiceError: `MissingRequiredXmlNode`, `UnsupportedXmlNode`, or `InvalidXmlDocument` for a child that comes
            twice and for text between the children.
    """
    only_children(node)
    found: dict[str, Node] = {}
    for child in node.children:
        if child.name not in required and child.name not in optional:
            raise ServiceError("UnsupportedXmlNode", details=_details(child.place, f"{child.name} is not known."))
        if child.name in found:
            raise invalid_document(f"{child.name} is specified more than once.", child.place)
        found[child.name] = child
    for name in required:
        if name not in found:
            reason = f"{node.name} needs {name}."
            raise ServiceError("MissingRequiredXmlNode", details=_details(node.place, reason))
    return found


def only_children(node: Node) -> tuple[Node, ...]:
    """Return the children of an element that may hold nothing else.

    Raises:
        ServiceError: `InvalidXmlDocument`, there is text between them.
    """
    if node.text.strip():
        raise invalid_document(f"{node.name} must not contain text.", node.place)
    return node.children


def text_of(node: Node) -> str:
    """Return the text of an element that may hold nothing else, without blanks around it.

    Raises:
        ServiceError: `InvalidXmlDocument`, it has children.
    """
    if node.children:
        raise invalid_document(f"{node.name} must contain text only.", node.place)
    return node.text.strip()


def invalid_document(reason: str, place: Place | None = None) -> ServiceError:
    """Return the refusal of a document that is malformed or breaks a limit."""
    return ServiceError("InvalidXmlDocument", details=_details(place, reason))


def invalid_value(node: Node, reason: str) -> ServiceError:
    """Return the refusal of one element's text."""
    return ServiceError("InvalidXmlNodeValue", details=_details(node.place, reason))


def _details(place: Place | None, reason: str) -> list[tuple[str, str]]:
    numbers = [] if place is None else [("LineNumber", str(place.line)), ("LinePosition", str(place.position))]
    return [*numbers, ("Reason", reason)]


def element(name: str, *children: str) -> str:
    """Return the markup of an element with the given children, which are markup."""
    inner = "".join(children)
    return f"<{name}>{inner}</{name}>" if inner else f"<{name} />"


def leaf(name: str, text: str) -> str:
    """Return the markup of an element with text; characters that XML cannot carry become U+FFFD."""
    return element(name, _escape(text))


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda match: _ESCAPES.get(match[0], "\ufffd"), text)


def document(root: str) -> bytes:
    """Return the bytes of a document with that root, as answers carry them."""
    return _BOM + (_DECLARATION + root).encode()


def error_document(code: str, message: str, details: Iterable[tuple[str, str]] = ()) -> bytes:
    """Return an error as the Table service spells it in XML (recorded; reference §3), without a byte-order mark.

    That the `details` follow the message under the same prefix is unverified; clients look at code and message.

    Args:
        code: the error code.
        message: its text, with the lines `RequestId:…` and `Time:…` already in it.
        details: extra elements (name, text) to follow the message.
    """
    parts = [leaf("m:code", code), f'<m:message xml:lang="en-US">{_escape(message)}</m:message>']
    parts += [leaf(f"m:{name}", text) for name, text in details]
    return f'{_DECLARATION}<m:error xmlns:m="{_METADATA}">{"".join(parts)}</m:error>'.encode()
