"""The byte keys of the embedded store.

A row's key is three parts, one after the other:

    space      8 bytes, unsigned, big endian
    partition  its text as described below, each 00 byte written as 00 FF, then one 00 byte that ends it
    row        its text as described below, up to the end of the key

*Text* is UTF-8, except that a character above U+FFFF is written as its two UTF-16 surrogates, each in the three bytes
that UTF-8 would use (ED A0 80 to ED BF BF). This is CESU-8. Surrogates thus sort above U+D7FF and below U+E000, as in
UTF-16. All other characters sort by code point in UTF-8. So bytes compare as UTF-16 code units do.

Order: no byte of CESU-8 is above EF. If a partition ends where a longer one continues with U+0000, the shorter one has
00 and then the row's first byte (or nothing), and the longer one 00 FF. So the shorter partition comes first, whatever
its row is. A row needs neither escape nor end, as nothing follows it.

Injectivity: the first 00 without a following FF ends the partition.

A space whose number has the bit `LISTED` has an *index of keys*: for each row a key with an empty value, which is the
row's key with the first bit set. So the keys of a list lie together, whatever the values between the rows' own keys.

The last space, 2**64 - 1, belongs to no table: it holds the store's metadata, under short ASCII names.
"""

import re
from collections.abc import Sequence

from lazulite.engine.contract import LISTED, JoinedKeys, Key, KeyRange

SPACE_BYTES = 8
"""The length of the number of a space, with which a key begins."""

SPACE_MAX = 2**63 - 2
"""The greatest number of a space of rows."""

INDEX_START = (1 << 63).to_bytes(SPACE_BYTES, "big")
"""The bound above every key of a row, and below the indexes of keys."""

LISTED_START = LISTED.to_bytes(SPACE_BYTES, "big")
"""The bound below every key of a space that has an index of keys, up to `INDEX_START`."""

META_PREFIX = b"\xff" * SPACE_BYTES
"""The prefix of the keys of the store's metadata."""

_INDEX_BIT = INDEX_START[0]
_END = b"\x00"
_ESCAPED_NUL = b"\x00\xff"
_SEPARATOR = b"\xff"
"""Is in no text."""
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def space_prefix(space: int) -> bytes:
    """Return the prefix of every key of a space, which is also the bound below them."""
    if not 0 <= space <= SPACE_MAX:
        raise ValueError(f"a space is a number from 0 to {SPACE_MAX}")
    return space.to_bytes(SPACE_BYTES, "big")


def space_end(space: int) -> bytes:
    """Return the bound above every key of a space."""
    return (space + 1).to_bytes(SPACE_BYTES, "big")


def is_listed(key: bytes) -> bool:
    """Tell whether a row's key, or the prefix of a space, is of a space that has an index of keys."""
    return LISTED_START <= key < INDEX_START


def index_key(key: bytes) -> bytes:
    """Return the key in the index for the key of a row, or the bound in the index for a bound of rows."""
    return bytes((key[0] | _INDEX_BIT,)) + key[1:]


def space_bounds(space: int) -> tuple[bytes, bytes]:
    """Return the bounds of the keys of a space."""
    return space_prefix(space), space_end(space)


def space_of(key: bytes) -> int:
    """Return the space of a key that `encode_key` made."""
    return int.from_bytes(key[:SPACE_BYTES], "big")


def partition_prefix(space: int, partition: str) -> bytes:
    """Return the prefix of the keys of one partition; a row's key is that and `encode_text(row)`."""
    return space_prefix(space) + escape_partition(encode_text(partition)) + _END


def encode_key(space: int, partition: str, row: str) -> bytes:
    """Return the key of a row. Raises ValueError for a lone surrogate (UnicodeEncodeError) or an impossible space."""
    if partition.isascii() and row.isascii() and "\0" not in partition:  # The common case: nothing to escape.
        return space_prefix(space) + f"{partition}\0{row}".encode()
    return partition_prefix(space, partition) + encode_text(row)


def encode_keys(space: int, partition: str, rows: Sequence[str]) -> list[bytes]:
    """Return the keys of rows of one partition; raises as `encode_key`."""
    if len(rows) == 1:
        return [encode_key(space, partition, rows[0])]
    prefix = partition_prefix(space, partition)
    if "".join(rows).isascii():
        return [prefix + row.encode() for row in rows]
    return [prefix + encode_text(row) for row in rows]


def decode_key(key: bytes) -> Key:
    """Return (partition, row) of a key that `encode_key` made."""
    end = key.index(_END, SPACE_BYTES)
    while key.startswith(_ESCAPED_NUL, end):
        end = key.index(_END, end + 2)
    partition = key[SPACE_BYTES:end].replace(_ESCAPED_NUL, _END)
    return decode_text(partition), decode_text(key[end + 1 :])


def decode_keys(keys: Sequence[bytes]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the partitions, and the rows, of keys of one space that `encode_key` made."""
    if keys and (together := _decode_together(keys)) is not None:
        texts = together.split("\0")
        return texts[:-1:2], texts[1::2]
    pairs = [decode_key(key) for key in keys]
    return [partition for partition, _ in pairs], [row for _, row in pairs]


def _decode_together(keys: Sequence[bytes]) -> str | None:
    """Return the partitions and rows of keys as one text, each ended by U+0000; None: one of them has U+0000."""
    head = _SEPARATOR + keys[0][:SPACE_BYTES]
    together = _SEPARATOR.join((b"", *keys)).replace(head, _END)[len(_END) :] + _END
    # Each U+0000 in a text leaves a separator, or one end more.
    if _SEPARATOR in together or together.count(_END) != 2 * len(keys):
        return None
    return decode_text(together)


def join_keys(keys: Sequence[bytes], head: int) -> JoinedKeys:
    """Join keys in the form of `encode_key`, with the number of the space (a `head` of 8 bytes) or without (0)."""
    return JoinedKeys(_SEPARATOR.join(keys) + _SEPARATOR, head)


def escape_partition(encoded: bytes) -> bytes:
    """Return a partition in CESU-8 as it is in a key."""
    return encoded.replace(_END, _ESCAPED_NUL)


def range_bounds(space: int, key_range: KeyRange) -> tuple[bytes, bytes]:
    """Return the first key of a range and the bound above its last one."""
    lower, upper = key_range
    return encode_key(space, *lower), space_end(space) if upper is None else encode_key(space, *upper)


def encode_text(text: str) -> bytes:
    """Return text as CESU-8."""
    encoded = text.encode()
    if text.isascii() or max(encoded) < 0xF0:  # 0xF0 and above lead the four-byte forms, and only them.
        return encoded
    return _ASTRAL.sub(_surrogate_pair, text).encode("utf-8", "surrogatepass")


def decode_text(encoded: bytes) -> str:
    """Return the text of CESU-8 bytes."""
    if b"\xed" not in encoded:  # Every surrogate begins with ED.
        return encoded.decode()
    units = encoded.decode("utf-8", "surrogatepass")
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _surrogate_pair(match: re.Match[str]) -> str:
    offset = ord(match[0]) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))
