"""Index tags of a blob: at most 10 names with values, of few characters.

Names and values are case-sensitive. Tags keep the order in which they were sent: as a header, or as a `Tags` document.

Source: REST reference, Get and Set Blob Tags.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias
from urllib.parse import unquote_plus

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.xml import document as xml

Tags: TypeAlias = Mapping[str, str]
"""Name -> value."""

TAGS_MAX = 10
NAME_MAX = 128
VALUE_MAX = 256
CHARACTERS = "-A-Za-z0-9 +./:=_"
"""The characters of names and values, as a class of a regular expression has them."""

_TEXT = re.compile(f"[{CHARACTERS}]*+")


def check_tags(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return names with values as tags.

    Raises:
        ServiceError: `TagsTooLarge`, `EmptyTagName`, `InvalidTag`, `DuplicateTagNames`.
    """
    tags: dict[str, str] = {}
    for name, value in pairs:
        if not name:
            raise ServiceError("EmptyTagName")
        if len(name) > NAME_MAX or len(value) > VALUE_MAX or len(tags) == TAGS_MAX:
            raise ServiceError("TagsTooLarge")
        if not is_tag_text(name) or not is_tag_text(value):
            raise ServiceError("InvalidTag")
        if name in tags:
            raise ServiceError("DuplicateTagNames")
        tags[name] = value
    return tags


def is_tag_text(text: str) -> bool:
    """Tell whether a name or a value may hold each of these characters."""
    return _TEXT.fullmatch(text) is not None


def read_tags_header(text: str) -> dict[str, str]:
    """Return the tags of `x-ms-tags`, which is encoded as a query string: `name=value&name=value`.

    Raises:
        ServiceError: as `check_tags`.
    """
    if not text:
        return {}
    pairs = (pair.partition("=") for pair in text.split("&", TAGS_MAX + 1))
    return check_tags((_decode(name), _decode(value)) for name, _, value in pairs)


def _decode(text: str) -> str:
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise ServiceError("InvalidTag") from None


def read_tags(body: bytes) -> dict[str, str]:
    """Return the tags of a document; an empty `TagSet` has none.

    Raises:
        ServiceError: `InvalidXmlDocument`, `RequestBodyTooLarge`, or as `check_tags`.
    """
    root = xml.parse(body)
    if root.name != "Tags":
        raise xml.invalid_document("The root must be Tags.", root.position)
    (tag_set,) = _children(root, "TagSet")
    tags = xml.only_children(tag_set)
    for tag in tags:
        if tag.name != "Tag":
            raise xml.invalid_document("Only Tag is expected here.", tag.position)
    return check_tags(_read_tag(tag) for tag in tags)


def _read_tag(node: xml.Node) -> tuple[str, str]:
    name, value = _children(node, "Key", "Value")
    if name.children or value.children:
        raise xml.invalid_document("Key and Value must contain text only.", node.position)
    return name.text, value.text  # With the blanks around them.


def _children(node: xml.Node, *names: str) -> list[xml.Node]:
    """Return the children of an element that has these and no others, each once."""
    children = {child.name: child for child in xml.only_children(node)}
    if children.keys() != set(names) or len(node.children) != len(names):
        raise xml.invalid_document(f"{node.name} needs {' and '.join(names)}.", node.position)
    return [children[name] for name in names]


def write_tags(tags: Tags) -> bytes:
    """Return the document."""
    return xml.document(tags_element(tags))


def tags_element(tags: Tags) -> str:
    """Return the markup of tags, as documents and lists have it."""
    pairs = (xml.element("Tag", xml.leaf("Key", name), xml.leaf("Value", value)) for name, value in tags.items())
    return xml.element("Tags", xml.element("TagSet", *pairs))
