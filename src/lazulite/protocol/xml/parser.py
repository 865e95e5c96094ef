"""Parse an XML document into a tree of named tuples.

Invariants:
- a document without a DOCTYPE cannot define entities, so one with a DOCTYPE is rejected before the parser sees it;
- bytes, elements, attributes and depth are limited, which bounds the cost of parsing;
- parsing leaves no state behind. Expat has a table of names for each document. Lxml has a global one that never
  shrinks, which a client could fill;
- whatever the bytes are, parsing them raises nothing but `ServiceError`.

Only UTF-8 is accepted, with or without a byte-order mark; the declared encoding is ignored. Otherwise a DOCTYPE in
another encoding would pass the check.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.parsers import expat

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps, finish

BYTES_MAX = 64 * 1024
ELEMENTS_MAX = 1_000
DEPTH_MAX = 16
ATTRIBUTES_MAX = 64
"""Attributes of an element, declarations of namespaces included."""
NAMESPACE_CHARACTERS_MAX = 256
"""Characters of a namespace's name."""

MARKUP_BYTES_MAX = 64 * 1024
"""Bytes of a tag, a comment or a processing instruction, each of which expat reads in one step."""

_PIECE = 32 * 1024
"""Bytes that expat is given at one time."""
_CDATA, _CDATA_END = b"<![CDATA[", b"]]>"
_DELIMITERS = ((b"<!--", b"-->"), (b"<?", b"?>"))
"""The beginning and the end of a comment, and of an instruction. Within them, nothing is a tag."""
_ATTRIBUTE = rb"""(?:"[^"<]*+"[^<>"']*+|'[^'<]*+'[^<>"']*+)"""
_WHOLE_TAG = re.compile(rb"""<[^<>"']*+(?>%b*)>""" % _ATTRIBUTE)
_TAG_OVER_LIMIT = re.compile(rb"""<[^<>"']*+%b{%d}""" % (_ATTRIBUTE, ATTRIBUTES_MAX + 1))
"""A tag with too many attributes. Such a tag is found before expat sees the document, for expat takes in all of a tag
before it calls a handler."""
_ATTRIBUTES_PER_ELEMENT = 4
"""Attributes in a document for each element that it may have."""
_MARKUP_PER_ELEMENT = 4
"""`<` in a document for each element that it may have: the two tags, and as much for all else that begins so."""
_PARSE_ERROR = "Error parsing Xml content"
"""Recorded for a character that XML does not allow; for other errors of syntax, *unverified*."""
_XML = "http://www.w3.org/XML/1998/namespace"
BOM = b"\xef\xbb\xbf"


class Position(NamedTuple):
    """A line and a column of a document, counted from 1."""

    line: int
    column: int


class Node(NamedTuple):
    """An element. Comments and processing instructions are left out."""

    name: str
    """Local name, or `{namespace}name` when it has a namespace."""
    text: str
    """Its character data, white space included; of an element with children, the text around them."""
    children: tuple["Node", ...]
    position: Position
    """The position of the first character of its name."""
    attributes: Mapping[str, str]
    """By name, which is spelled as an element's. Declarations of namespaces are none."""


def parse(
    body: bytes, *, max_bytes: int = BYTES_MAX, max_elements: int = ELEMENTS_MAX, max_depth: int = DEPTH_MAX
) -> Node:
    """Parse a short document at once and return its root. Raises as `parse_in_steps`."""
    return finish(parse_in_steps(body, max_bytes=max_bytes, max_elements=max_elements, max_depth=max_depth))


def parse_in_steps(body: bytes, *, max_bytes: int, max_elements: int, max_depth: int = DEPTH_MAX) -> Steps[Node]:
    """Parse a document in steps and return its root.

    Raises:
        ServiceError: `RequestBodyTooLarge` over `max_bytes`, `InvalidXmlDocument` for anything else that is wrong.
    """
    if len(body) > max_bytes:
        raise ServiceError("RequestBodyTooLarge")
    body = body.removeprefix(BOM)
    if body.startswith(BOM):  # Expat would skip it.
        raise invalid_document(_PARSE_ERROR, Position(1, 1))
    _check_encoding(body)
    yield
    if b"<!DOCTYPE" in body:
        raise invalid_document("A document type declaration is not allowed.")
    if body.count(b"<") > _MARKUP_PER_ELEMENT * max_elements:
        raise invalid_document(f"The document has more than {max_elements} elements.")
    yield
    yield from _check_markup(body)
    parser = expat.ParserCreate("utf-8")
    tree = _TreeBuilder(parser, max_elements, max_depth)
    try:
        for start in range(0, len(body), _PIECE):
            yield
            parser.Parse(body[start : start + _PIECE], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise invalid_document(_PARSE_ERROR, Position(error.lineno, error.offset + 1)) from None
    return tree.root()


def _check_markup(body: bytes) -> Steps[None]:
    """Reject tags with too many attributes, and markup that is too long."""
    at = body.find(b"<")
    while at >= 0:
        yield
        if body.startswith(_CDATA, at):
            end = yield from _end_of_cdata(body, at + len(_CDATA))
        else:
            end = _end_of_markup(body, at)
        at = body.find(b"<", end)


def _end_of_cdata(body: bytes, start: int) -> Steps[int]:
    while start < len(body):
        end = body.find(_CDATA_END, start, start + _PIECE)
        if end >= 0:
            return end + len(_CDATA_END)
        start += _PIECE - len(_CDATA_END) + 1
        yield
    return len(body)


def _end_of_markup(body: bytes, at: int) -> int:
    """Return where to look for more markup: after a comment or an instruction, or within the tag that begins here."""
    bound = at + MARKUP_BYTES_MAX
    for opening, closing in _DELIMITERS:
        if body.startswith(opening, at):
            closed_at = body.find(closing, at + len(opening), bound)
            if closed_at >= 0:
                return closed_at + len(closing)
            break
    else:
        if _TAG_OVER_LIMIT.match(body, at, bound):
            raise invalid_document(f"An element has more than {ATTRIBUTES_MAX} attributes.")
        if body.find(b"<", at + 1, bound) >= 0 or _WHOLE_TAG.match(body, at, bound):
            return at + 1
    if bound < len(body):
        raise invalid_document(f"A tag, comment or instruction is longer than {MARKUP_BYTES_MAX} bytes.")
    return len(body)


def _check_encoding(body: bytes) -> None:
    """Reject a body that is not UTF-8, or that has a NUL byte, which expat takes as a sign of UTF-16."""
    try:
        body.decode()
    except UnicodeDecodeError:
        raise invalid_document("The document is not UTF-8.") from None
    if b"\0" in body:
        raise invalid_document(_PARSE_ERROR)


class _OpenElement(NamedTuple):
    """An element whose end tag was not yet parsed."""

    name: str
    namespaces: Mapping[str, str]
    """By prefix; the default one has none."""
    attributes: Mapping[str, str]
    position: Position
    text: list[str]
    children: list[Node]


class _TreeBuilder:
    """Builds the tree: expat calls `_start`, `_text` and `_end`. A document that exceeds a limit is rejected.

    This class resolves namespaces, because expat would repeat a long namespace in every name.
    """

    def __init__(self, parser: expat.XMLParserType, max_elements: int, max_depth: int) -> None:
        self._parser = parser
        self._elements_left = self._max_elements = max_elements
        self._attributes_left = self._max_attributes = _ATTRIBUTES_PER_ELEMENT * max_elements
        self._max_depth = max_depth
        self._open = [_OpenElement("", {"xml": _XML}, {}, Position(1, 1), [], [])]
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.ProcessingInstructionHandler = self._check_instruction

    def root(self) -> Node:
        """Return the root, once the document is parsed."""
        (root,) = self._open[0].children
        return root

    def _start(self, name: str, pairs: list[str]) -> None:
        position = Position(self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 2)
        self._elements_left -= 1
        if self._elements_left < 0:
            raise invalid_document(f"The document has more than {self._max_elements} elements.", position)
        if len(self._open) > self._max_depth:
            raise invalid_document("The document is nested too deeply.", position)
        self._attributes_left -= len(pairs) // 2
        if self._attributes_left < 0:
            raise invalid_document(f"The document has more than {self._max_attributes} attributes.", position)
        attributes = dict(zip(pairs[::2], pairs[1::2], strict=True))
        try:
            namespaces = _declare(self._open[-1].namespaces, attributes)
            named = {_qualify(key, namespaces) if ":" in key else key: text for key, text in attributes.items()}
            qualified = _qualify(name, namespaces)
        except ValueError:
            raise invalid_document(_PARSE_ERROR, position) from None
        self._open.append(_OpenElement(qualified, namespaces, named, position, [], []))

    def _text(self, text: str) -> None:
        self._open[-1].text.append(text)

    def _check_instruction(self, target: str, _: str) -> None:
        """Reject an instruction whose target has a colon (Namespaces in XML 1.0, §7)."""
        if ":" in target:
            position = Position(self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 2)
            raise invalid_document(_PARSE_ERROR, position)

    def _end(self, _: str) -> None:
        name, _namespaces, attributes, position, text, children = self._open.pop()
        self._open[-1].children.append(Node(name, "".join(text), tuple(children), position, attributes))


def _declare(outer: Mapping[str, str], attributes: dict[str, str]) -> Mapping[str, str]:
    """Remove the declarations of namespaces from an element's attributes; return the namespaces inside of it."""
    if not attributes:
        return outer
    declarations = [name for name in attributes if name == "xmlns" or name.startswith("xmlns:")]
    if not declarations:
        return outer
    inner = dict(outer)
    for name in declarations:
        prefix = name[6:]
        namespace = attributes.pop(name)
        if len(namespace) > NAMESPACE_CHARACTERS_MAX or (prefix and not namespace):
            raise ValueError("not a namespace")
        inner[prefix] = namespace
    return inner


def _qualify(name: str, namespaces: Mapping[str, str]) -> str:
    prefix, colon, local = name.rpartition(":")
    namespace = namespaces.get(prefix, "")
    if colon and not (local and namespace):
        raise ValueError("a prefix that was not declared")
    return f"{{{namespace}}}{local}" if namespace else local


def invalid_document(reason: str, position: Position | None = None) -> ServiceError:
    """Return the rejection of a document that is malformed or breaks a limit."""
    return ServiceError("InvalidXmlDocument", details=format_details(position, reason))


def format_details(position: Position | None, reason: str) -> list[tuple[str, str]]:
    """Return the details of a rejection: its position and its reason."""
    numbers = [] if position is None else [("LineNumber", str(position.line)), ("LinePosition", str(position.column))]
    return [*numbers, ("Reason", reason)]
