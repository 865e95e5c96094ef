"""A range of keys, and the filter that asks for it."""

from typing import Literal, NamedTuple

from lazulite_patterns.keys.characters import MARK, utf16_order

KeyProperty = Literal["PartitionKey", "RowKey"]


class KeyRange(NamedTuple):
    """The keys from `lower` on and before `upper`, in the order of UTF-16 units; `upper` None is without an end."""

    lower: str
    upper: str | None = None

    @classmethod
    def starting_with(cls, text: str) -> "KeyRange":
        """Return the range of the keys whose unescaped text begins as that of the escaped text.

        `.` and U+FFFD is an escaped `/`. It begins with the text `.`, and is out of the range of it.
        """
        return cls(text, text + MARK)

    @classmethod
    def of(cls, first: str, last: str) -> "KeyRange":
        """Return the range from one key to another, both of them included.

        A space is the least character that a key may have: no key lies between a key and that key with a space added.
        """
        return cls(first, last + " ")

    def filter(self, name: KeyProperty = "RowKey") -> str:
        """Return the OData filter of the range."""
        parts = [f"{name} ge {quoted(self.lower)}"]
        if self.upper is not None:
            parts.append(f"{name} lt {quoted(self.upper)}")
        return " and ".join(parts)

    def __contains__(self, key: object) -> bool:
        """Tell whether a key is in the range."""
        if not isinstance(key, str):
            return False
        order = utf16_order(key)
        return utf16_order(self.lower) <= order and (self.upper is None or order < utf16_order(self.upper))


def quoted(text: str) -> str:
    """Return a text as a literal of OData."""
    return "'" + text.replace("'", "''") + "'"
