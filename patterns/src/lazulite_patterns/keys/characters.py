"""The characters of a key: what is escaped, so that keys sort as their values do.

Rules, in the order of UTF-16 code units, by which the service sorts keys:

- `# % / ? \\` become the character before them, then U+FFFD. The service rejects four of them in keys, and `%` is
  decoded twice by some clients. The pair sorts after every text that has the character before, and before the
  character after: U+FFFD is greater than every unit that a text may have.
- Components are separated by `!`. In a component with another after it, a space becomes `!` and U+FFFD, and `!` becomes
  `!` and two U+FFFD. Nothing sorts below the separator then, and no component contains one.
- Control characters, lone surrogates and U+FFFD to U+FFFF are rejected. So an escape cannot be part of a text.
"""

import re

from lazulite_patterns.errors import PatternsError

SEPARATOR = "!"
MARK = "\ufffd"
"""Follows the character that stands for another one; greater than every character of a text."""
UNITS_MAX = 1024
"""The most UTF-16 units of a PartitionKey or RowKey: a limit of the service."""

_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd-\uffff]")
_EVERYWHERE = {each: chr(ord(each) - 1) + MARK for each in "#%/?\\"}
_BEFORE_ANOTHER = {**_EVERYWHERE, " ": SEPARATOR + MARK, SEPARATOR: SEPARATOR + MARK + MARK}
_ESCAPE = {True: str.maketrans(_EVERYWHERE), False: str.maketrans(_BEFORE_ANOTHER)}
_ESCAPED = re.compile(f".{MARK}+|[ !]", re.DOTALL)
_UNESCAPE = {
    last: {escaped: plain for plain, escaped in table.items()}
    for last, table in ((True, _EVERYWHERE), (False, _BEFORE_ANOTHER))
}


class KeyValueError(PatternsError, ValueError):
    """A value cannot be part of a key. The message names the component."""


class KeyFormatError(PatternsError, ValueError):
    """A key of the service is none that this layout makes."""


def escape(text: str, *, last: bool) -> str:
    """Return the text of a component as it stands in a key.

    Args:
        text: the component's text.
        last: no other component follows.

    Raises:
        KeyValueError: the text has a character that no key may have.
    """
    if found := _FORBIDDEN.search(text):
        raise KeyValueError(f"the character U+{ord(found[0]):04X} cannot be part of a key")
    return text.translate(_ESCAPE[last])


def unescape(text: str, *, last: bool) -> str:
    """Return the text that `escape` made this of.

    Raises:
        KeyFormatError: `escape` makes no such text.
    """
    table = _UNESCAPE[last]

    def original(found: re.Match[str]) -> str:
        if last and found[0] in {" ", SEPARATOR}:
            return found[0]
        if (character := table.get(found[0])) is None:
            raise KeyFormatError(f"{found[0]!r} in a key is not the escape of a character")
        return character

    result = _ESCAPED.sub(original, text)
    if _FORBIDDEN.search(result) or result.translate(_ESCAPE[last]) != text:
        raise KeyFormatError(f"{text!r} is not the text of a component")
    return result


def plain(text: str) -> bool:
    """Tell whether a text can be part of a key without an escape."""
    return not _FORBIDDEN.search(text) and text.translate(_ESCAPE[True]) == text


def units(text: str) -> int:
    """Return the number of UTF-16 units of a text."""
    return len(text) if text.isascii() else len(utf16_order(text)) // 2


def utf16_order(text: str) -> bytes:
    """Return what sorts as the service sorts this text: its UTF-16 units, big-endian."""
    return text.encode("utf-16-be", "surrogatepass")
