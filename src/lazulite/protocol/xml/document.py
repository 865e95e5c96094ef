"""XML in and out: small documents, no surprises. How their bytes become a tree, and the limits: parser.py.

What is written begins with a byte-order mark and has no white space between elements, an empty element being
`<Cors />`, as the live service writes it.
"""

from collections.abc import Iterable, Sequence

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.xml.parser import (
    BOM,
    BYTES_MAX,
    DEPTH_MAX,
    ELEMENTS_MAX,
    Node,
    Position,
    format_details,
    invalid_document,
    parse,
    parse_in_steps,
)
from lazulite.protocol.xml.text import content

__all__ = [
    "BYTES_MAX",
    "DEPTH_MAX",
    "ELEMENTS_MAX",
    "Node",
    "Position",
    "document",
    "element",
    "error_document",
    "fields",
    "invalid_document",
    "invalid_value",
    "leaf",
    "only_children",
    "parse",
    "parse_in_steps",
    "text_of",
]

_METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'
_UNNAMED = ("InvalidXmlDocument", "InvalidXmlDocument")
_NAMED = ("MissingRequiredXmlNode", "UnsupportedXmlNode")


def fields(
    node: Node, required: Sequence[str], optional: Sequence[str] = (), *, names_code: bool = False
) -> dict[str, Node]:
    """Return the children of `node` by name, in whatever order they came.

    Args:
        node: the parent.
        required: the names of the children that must be there.
        optional: the names of other children that may be there.
        names_code: whether a missing and an unknown child have codes of their own.

    Raises:
        ServiceError: `InvalidXmlDocument`; with `names_code`, `MissingRequiredXmlNode` and `UnsupportedXmlNode`.
    """
    missing, unknown = _NAMED if names_code else _UNNAMED
    only_children(node)
    found: dict[str, Node] = {}
    for child in node.children:
        if child.name not in required and child.name not in optional:
            raise ServiceError(unknown, details=format_details(child.position, f"{child.name} is not known."))
        if child.name in found:
            raise invalid_document(f"{child.name} is specified more than once.", child.position)
        found[child.name] = child
    for name in required:
        if name not in found:
            reason = f"{node.name} needs {name}."
            raise ServiceError(missing, details=format_details(node.position, reason))
    return found


def only_children(node: Node) -> tuple[Node, ...]:
    """Return the children of an element that may hold nothing else.

    Raises:
        ServiceError: `InvalidXmlDocument`, there is text between them.
    """
    if node.text.strip():
        raise invalid_document(f"{node.name} must not contain text.", node.position)
    return node.children


def text_of(node: Node) -> str:
    """Return the text of an element that may hold nothing else, without blanks around it.

    Raises:
        ServiceError: `InvalidXmlDocument`, it has children.
    """
    if node.children:
        raise invalid_document(f"{node.name} must contain text only.", node.position)
    return node.text.strip()


def invalid_value(node: Node, reason: str) -> ServiceError:
    """Return the rejection of one element's text."""
    return ServiceError("InvalidXmlNodeValue", details=format_details(node.position, reason))


def element(name: str, *children: str) -> str:
    """Return the markup of an element with the given children, which are markup."""
    inner = "".join(children)
    return f"<{name}>{inner}</{name}>" if inner else f"<{name} />"


def leaf(name: str, text: str) -> str:
    """Return the markup of an element with text; characters that XML cannot carry become U+FFFD."""
    return element(name, content(text))


def document(root: str) -> bytes:
    """Return the bytes of a document with that root, as answers carry them."""
    return BOM + (_DECLARATION + root).encode()


def error_document(code: str, message: str, details: Iterable[tuple[str, str]] = ()) -> bytes:
    """Return an error as the Table service spells it in XML (recorded; reference §3), without a byte-order mark.

    That the `details` follow the message under the same prefix is unverified; clients look at code and message.

    Args:
        code: the error code.
        message: its text, with the lines `RequestId:…` and `Time:…` already in it.
        details: extra elements (name, text) to follow the message.
    """
    parts = [leaf("m:code", code), f'<m:message xml:lang="en-US">{content(message)}</m:message>']
    parts += [leaf(f"m:{name}", text) for name, text in details]
    return f'{_DECLARATION}<m:error xmlns:m="{_METADATA}">{"".join(parts)}</m:error>'.encode()
