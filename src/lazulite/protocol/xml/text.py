"""What XML can carry, and how text is written into it.

A name is one by the fourth edition of XML 1.0, which is narrower than the fifth: what reads either reads it. Expat
knows which characters those are; it is asked once about each, as names come by the thousand.
"""

import re
from functools import lru_cache
from xml.parsers import expat

_ILLEGAL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What stands for no character in XML, not even as a reference."""
_CONTENT_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#xD;"))
"""In this order, so that no escape is escaped."""
_ATTRIBUTE_ESCAPES = (('"', "&quot;"), ("\t", "&#x9;"), ("\n", "&#xA;"))
_NO_NAME = re.compile(r"[\x00-,/:-@\[-^`{-\x7f]|^[\d.-]|^$", re.ASCII)
"""The ASCII that no name has, or none begins with; the colon, too, which would make it two names."""


def is_text(text: str) -> bool:
    """Tell whether XML can carry every character of a text."""
    return text.isprintable() or _ILLEGAL.search(text) is None


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of an element, without a prefix."""
    if _NO_NAME.search(text):
        return False
    return text.isascii() or (_begins(text[0]) and all(map(_continues, text)))


@lru_cache(maxsize=0x10000)
def _begins(character: str) -> bool:
    return _is_read(f"<{character}/>")


@lru_cache(maxsize=0x10000)
def _continues(character: str) -> bool:
    return _is_read(f"<a{character}/>")


def _is_read(document: str) -> bool:
    try:
        expat.ParserCreate("utf-8").Parse(document.encode(), True)
    except (expat.ExpatError, UnicodeEncodeError):
        return False
    return True


def content(text: str) -> str:
    """Return a text as it stands between tags; what XML cannot carry becomes U+FFFD."""
    return escaped(text if is_text(text) else _ILLEGAL.sub("\ufffd", text))


def escaped(text: str) -> str:
    """Return a text that XML can carry as it stands between tags."""
    for character, escape in _CONTENT_ESCAPES:
        text = text.replace(character, escape)
    return text


def attribute(text: str) -> str:
    """Return a text as it stands between double quotes in a tag; what XML cannot carry becomes U+FFFD."""
    text = content(text)
    for character, escape in _ATTRIBUTE_ESCAPES:
        text = text.replace(character, escape)
    return text
