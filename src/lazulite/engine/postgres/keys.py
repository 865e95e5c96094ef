"""Keys as the database orders and indexes them.

A key is the text's CESU-8 (see `engine.key_encoding`) in a `bytea` column, whose bytes PostgreSQL compares as unsigned
ones: ordinal order, U+0000 and all, and no collation to depend on.

An entry of a B-tree of PostgreSQL holds some 2,700 bytes, and a partition and a row may have 3,072 each. So a *long*
key, of more than `PREFIX_BYTES`, is indexed by its *form*: its first `PREFIX_BYTES` and the SHA-256 of all of it. The
whole key stands in a column beside. Forms are as different as their keys, because a short key is never as long as the
form of a long one. Their order is that of the keys but among long keys with the same prefix: such a *group* is a
contiguous range of forms, and a scan sorts it by the whole keys (see `scan`).
"""

from hashlib import sha256

from lazulite.engine.key_encoding import encode_text

PREFIX_BYTES = 1268
_DIGEST_BYTES = 32
FORM_BYTES_MAX = PREFIX_BYTES + _DIGEST_BYTES
"""Two of these, a space and what PostgreSQL adds are below 2,704 bytes, the most of an index entry."""

__all__ = [
    "FORM_BYTES_MAX",
    "PREFIX_BYTES",
    "after_group",
    "encode_text",
    "form",
    "in_group",
    "text_form",
    "whole_if_long",
]


def form(key: bytes) -> bytes:
    """Return what a key is indexed by."""
    return key if len(key) <= PREFIX_BYTES else key[:PREFIX_BYTES] + sha256(key).digest()


def text_form(text: str) -> bytes:
    """Return what the key that some text is is indexed by."""
    if text.isascii() and len(text) <= PREFIX_BYTES:
        return text.encode()
    return form(encode_text(text))


def whole_if_long(key: bytes) -> bytes | None:
    """Return what stands in the column of whole keys."""
    return key if len(key) > PREFIX_BYTES else None


def in_group(key: bytes) -> bool:
    """Say whether a key (or a bound) is a long one, and so one of a group."""
    return len(key) > PREFIX_BYTES


def after_group(key: bytes) -> bytes:
    """Return the bound above all keys of a long key's group, which is below all other greater keys."""
    return key[: PREFIX_BYTES - 1] + bytes([key[PREFIX_BYTES - 1] + 1])  # No byte of CESU-8 is FF.
