"""The common prefixes of names, up to a delimiter, by one regular expression over the keys of a slice."""

import re
from functools import lru_cache

from lazulite.blob.model.rows import CURRENT

_MARK = "\ud800"
"""Stands for a delimiter of several characters; it is in no name."""


def common_prefixes(text: str, prefix: str, delimiter: str) -> list[str]:
    """Return the common prefixes of names, each once, up to the first name that has none or no current blob.

    Args:
        text: names without the prefix, and rows, in the order of the keys; see `Slice.text`.
        prefix: the beginning of all names.
        delimiter: where a common prefix ends.
    """
    mark = delimiter if len(delimiter) == 1 else _MARK
    found: list[str] = _pattern(mark).findall(text.replace(delimiter, mark))
    if not found[-1]:
        del found[-1]
    if "\0" in "".join(found):
        del found[next(index for index, each in enumerate(found) if "\0" in each) :]
    if not prefix and mark == delimiter:
        return found
    return [prefix + each.replace(mark, delimiter) for each in found]


@lru_cache(maxsize=64)
def _pattern(mark: str) -> re.Pattern[str]:
    """Return a pattern of the keys with one common prefix, the group, if a current blob is first; else of all the rest.

    The repetitions are possessive, so that the time is linear. A group with U+0000 begins with a name that has no mark:
    a class of two characters would exclude it, and takes longer.
    """
    mark = re.escape(mark)
    name, text = f"([^{mark}]*+{mark})[^\0]*+\0", "[^\0]*+\0"
    return re.compile(f"{name}{CURRENT}\0(?:\\1{text}{text})*+|(?s:.+)")
