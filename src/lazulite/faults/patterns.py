"""Patterns of names: `*` stands for any text, everything else for itself.

Invariant: the time of a match grows with the length of the text, whatever the pattern: parts are found from left to
right, and none is tried again.
"""

from typing import NamedTuple


class Pattern(NamedTuple):
    """A pattern, cut at its stars."""

    first: str
    middle: tuple[str, ...]
    last: str | None
    """None: there is no star, so the text is `first`."""

    def matches(self, text: str) -> bool:
        """Return whether a whole text is of the pattern."""
        if self.last is None:
            return text == self.first
        end = len(text) - len(self.last)
        if not text.startswith(self.first) or not text.endswith(self.last) or end < len(self.first):
            return False
        at = len(self.first)
        for part in self.middle:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


def pattern(text: str) -> Pattern:
    """Return the pattern that a text spells."""
    first, *others = text.split("*")
    return Pattern(first, tuple(filter(None, others[:-1])), others[-1] if others else None)
