"""Ordinal order of text: by UTF-16 code unit, as .NET's `string.CompareOrdinal` and so the Table service compares.

Python orders text by code point. The two differ only where a character above U+FFFF meets one of U+E000–U+FFFF.
*Unverified* on the live service for those characters; implied by the service's use of .NET.
"""


def ordinal(text: str) -> bytes:
    """Return a sort key: `ordinal(a) < ordinal(b)` exactly when `a` comes before `b`."""
    return text.encode("utf-16-be", "surrogatepass")
