"""Ordinal order of text: by UTF-16 code unit, as .NET's `string.CompareOrdinal` and so the Table service compares.

Python orders text by code point. The two differ only where a character above U+FFFF meets one of U+E000–U+FFFF.
*Unverified* on the live service for those characters; implied by the service's use of .NET.
"""


def ordinal(text: str) -> bytes:
    """Return a sort key: `ordinal(a) < ordinal(b)` exactly when `a` comes before `b`."""
    return text.encode("utf-16-be", "surrogatepass")


def after_prefix(prefix: str) -> str | None:
    """Return the least text that comes after all texts with a prefix; None: there is none.

    The code units of surrogates stand between U+D7FF and U+E000, so the characters above U+FFFF do.
    """
    rest = prefix.rstrip("\uffff")
    if not rest:
        return None
    return rest[:-1] + (_SUCCESSORS.get(rest[-1]) or chr(ord(rest[-1]) + 1))


_SUCCESSORS = {"\ud7ff": "\U00010000", "\U0010ffff": "\ue000"}
