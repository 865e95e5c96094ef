"""Keys as the database orders and indexes them.

A key is the text's CESU-8 (see `engine.key_encoding`) in a `bytea` column. PostgreSQL compares its bytes as unsigned
ones, which is ordinal order, U+0000 included, without any collation.

A B-tree entry of PostgreSQL holds some 2,700 bytes, but the keys of a partition and a row may have 3,072 each. So a
*long* key, of more than `PREFIX_BYTES`, has a shorter *index key*: its first `PREFIX_BYTES` and the SHA-256 of the
whole key. The whole key is in another column. Different keys have different index keys, because a short key is never
as long as the index key of a long one. Index keys have the order of their keys, except among long keys with the same
prefix. Such a *group* is a contiguous range of index keys, and a scan sorts it by the whole keys (see `scan`).
"""

from hashlib import sha256

from lazulite.engine.key_encoding import encode_text

PREFIX_BYTES = 1268
_DIGEST_BYTES = 32
INDEX_KEY_BYTES_MAX = PREFIX_BYTES + _DIGEST_BYTES
"""Two of these, a space and PostgreSQL's overhead fit into an index entry of 2,704 bytes."""

__all__ = [
    "INDEX_KEY_BYTES_MAX",
    "PREFIX_BYTES",
    "after_group",
    "encode_text",
    "in_group",
    "index_key",
    "long_key",
    "text_index_key",
]


def index_key(key: bytes) -> bytes:
    """Return the index key of a key."""
    return key if len(key) <= PREFIX_BYTES else key[:PREFIX_BYTES] + sha256(key).digest()


def text_index_key(text: str) -> bytes:
    """Return the index key of a text."""
    if text.isascii() and len(text) <= PREFIX_BYTES:
        return text.encode()
    return index_key(encode_text(text))


def long_key(key: bytes) -> bytes | None:
    """Return the value of the column of whole keys: None for a short key."""
    return key if len(key) > PREFIX_BYTES else None


def in_group(key: bytes) -> bool:
    """Return whether a key (or a bound) is long, and so belongs to a group."""
    return len(key) > PREFIX_BYTES


def after_group(key: bytes) -> bytes:
    """Return the bound above all keys of a long key's group, which is below all other greater keys."""
    return key[: PREFIX_BYTES - 1] + bytes([key[PREFIX_BYTES - 1] + 1])  # No byte of CESU-8 is FF.
