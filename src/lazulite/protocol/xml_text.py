"""What XML can carry, and how text is written into it.

A name is one by the fourth edition of XML 1.0, which is narrower than the fifth: what reads either reads it.
"""

import re
from functools import lru_cache
from xml.parsers import expat

_CONTENT_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"}
_ATTRIBUTE_ESCAPES = {**_CONTENT_ESCAPES, '"': "&quot;", "\t": "&#x9;", "\n": "&#xA;"}
_NONE = "\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
"""What stands for no character in XML, not even as a reference."""
_ILLEGAL = re.compile(f"[{_NONE}]")
_IN_CONTENT = re.compile(f"[&<>\r{_NONE}]")
_IN_ATTRIBUTES = re.compile(f'[&<>"\t\n\r{_NONE}]')
_NO_NAME = re.compile(r"[\x00-,/:-@\[-^`{-\x7f]|^[\d.-]|^$", re.ASCII)
"""The ASCII that no name has, or none begins with; the colon, too, which would make it two names."""


def is_text(text: str) -> bool:
    """Tell whether XML can carry every character of a text."""
    return _ILLEGAL.search(text) is None


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
    return _IN_CONTENT.sub(lambda match: _CONTENT_ESCAPES.get(match[0], "\ufffd"), text)


def attribute(text: str) -> str:
    """Return a text as it stands between double quotes in a tag; what XML cannot carry becomes U+FFFD."""
    return _IN_ATTRIBUTES.sub(lambda match: _ATTRIBUTE_ESCAPES.get(match[0], "\ufffd"), text)
