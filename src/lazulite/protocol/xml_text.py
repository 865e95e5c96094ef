"""What XML can carry, and how text is written into it.

A name is one by the fourth edition of XML 1.0, which is narrower than the fifth: what reads either reads it.
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


@lru_cache(maxsize=4096)
def is_name(text: str) -> bool:
    """Tell whether a text can be the name of an element, without a prefix."""
    if _NO_NAME.search(text):
        return False
    if text.isascii():
        return True
    try:
        expat.ParserCreate("utf-8").Parse(f"<{text}/>".encode(), True)
    except (expat.ExpatError, UnicodeEncodeError):
        return False
    return True


def content(text: str) -> str:
    """Return a text as it stands between tags; what XML cannot carry becomes U+FFFD."""
    if not is_text(text):
        text = _ILLEGAL.sub("\ufffd", text)
    for character, escape in _CONTENT_ESCAPES:
        text = text.replace(character, escape)
    return text


def attribute(text: str) -> str:
    """Return a text as it stands between double quotes in a tag; what XML cannot carry becomes U+FFFD."""
    text = content(text)
    for character, escape in _ATTRIBUTE_ESCAPES:
        text = text.replace(character, escape)
    return text
