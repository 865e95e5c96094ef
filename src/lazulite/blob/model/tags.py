"""Index tags of a blob: at most 10 names with values, of few characters. Source: REST reference, Set Blob Tags.

Names and values are case-sensitive. Tags keep the order in which they were sent.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias
from urllib.parse import unquote_plus

from lazulite.protocol.errors import ServiceError

Tags: TypeAlias = Mapping[str, str]
"""Name -> value."""

TAGS_MAX = 10
NAME_MAX = 128
VALUE_MAX = 256
CHARACTERS = "-A-Za-z0-9 +./:=_"
"""Of names and values, as a class of a regular expression has them."""

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
