"""The common prefixes of names, up to a delimiter, by one regular expression over the keys of a slice."""

import re
from functools import lru_cache

from lazulite.blob.model.rows import CURRENT
from lazulite.engine.contract import JoinedKeys
from lazulite.engine.key_encoding import encode_text

_END, _SEPARATOR = b"\0", b"\xff"
"""Behind each name, and behind each row."""
_MARK = b"\xfe"
"""Stands for a delimiter of several bytes; it is in no text."""


def common_prefixes(keys: JoinedKeys, prefix: str, delimiter: str) -> list[bytes]:
    """Return the common prefixes of names, each once, up to the first name that has none or no current blob.

    A name with U+0000 ends them, too, if its prefix was not found before. All are returned without `prefix`, in CESU-8.

    Args:
        keys: of a container, in their order.
        prefix: the beginning of all names.
        delimiter: where a common prefix ends.
    """
    joined, skipped = keys.keys, keys.head + len(encode_text(prefix))
    mark = encode_text(delimiter)
    if len(mark) > 1:  # Heads may have it by chance, so they are taken away.
        heads = _SEPARATOR + joined[:skipped]
        joined = (_SEPARATOR + joined[:-1]).replace(heads, _SEPARATOR)[1:] + _SEPARATOR
        joined, mark, skipped = joined.replace(mark, _MARK), _MARK, 0
    found: list[bytes] = _pattern(mark, skipped).findall(joined)
    if not found[-1]:
        del found[-1]
    if _END in b"".join(found):
        del found[next(index for index, each in enumerate(found) if _END in each) :]
    return [each.replace(_MARK, encode_text(delimiter)) for each in found] if mark == _MARK else found


@lru_cache(maxsize=256)
def _pattern(mark: bytes, skipped: int) -> re.Pattern[bytes]:
    """Return a pattern of the keys with one common prefix, the group, if a current blob is first; else of all the rest.

    No repetition gives back what it took, so that the time is linear. A group with 00 is of a name that has no mark,
    or U+0000 before it: a class of two characters would exclude it, and takes longer. Rows are not empty, so an
    escaped 00 does not look like the end of a name.

    Args:
        mark: a byte.
        skipped: the length of what each key begins with.
    """
    skip, mark = b".{%d}" % skipped, re.escape(mark)
    first = b"%b([^%b]*+%b)[^\0]*+\0%b\xff" % (skip, mark, mark, re.escape(CURRENT.encode()))
    return re.compile(b"(?s:%b(?>(?:%b\\1[^\0]*+\0[^\xff]++\xff)*)|.+)" % (first, skip))
