"""Metadata and tags as people write them: a line `name = value` each."""

from collections.abc import Mapping
from xml.sax.saxutils import escape

from lazulite.ui.calls import PageError


def text_of(pairs: Mapping[str, str]) -> str:
    """Return pairs as lines."""
    return "\n".join(f"{name} = {value}" for name, value in pairs.items())


def pairs_of(text: str) -> dict[str, str]:
    """Return the pairs of lines.

    Raises:
        PageError: a line has no name, or two have the same.
    """
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not (name and equals):
            raise PageError(400, f"write each line as “name = value”, not {line[:80]!r}")
        if name in pairs:
            raise PageError(400, f"{name!r} is there twice")
        pairs[name] = value
    return pairs


def tags_document(tags: Mapping[str, str]) -> bytes:
    """Return the document of Set Blob Tags."""
    inner = "".join(f"<Tag><Key>{escape(name)}</Key><Value>{escape(text)}</Value></Tag>" for name, text in tags.items())
    return f'<?xml version="1.0" encoding="utf-8"?><Tags><TagSet>{inner}</TagSet></Tags>'.encode()


def tags_condition(tags: Mapping[str, str]) -> str:
    """Return the condition that a blob still has some tags; "" for none."""
    return " AND ".join(f"\"{name}\" = '{value}'" for name, value in tags.items())
