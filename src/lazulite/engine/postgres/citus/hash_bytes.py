"""PostgreSQL's hashes of `bytea` and `bigint` values, by which Citus distributes rows.

It is Bob Jenkins' lookup3 in the form of PostgreSQL's `hash_bytes` (src/common/hashfn.c). PostgreSQL keeps it the same
over its versions, because hash partitions and indexes depend on it.
"""

_MASK = 0xFFFFFFFF
_START = 0x9E3779B9 + 3923095


def hash_bytes(key: bytes) -> int:
    """Return the hash of a value, from 0 to 2**32 - 1."""
    size = len(key)
    a = b = c = (_START + size) & _MASK
    at = 0
    while size - at >= 12:
        a = (a + int.from_bytes(key[at : at + 4], "little")) & _MASK
        b = (b + int.from_bytes(key[at + 4 : at + 8], "little")) & _MASK
        c = (c + int.from_bytes(key[at + 8 : at + 12], "little")) & _MASK
        a, b, c = _mix(a, b, c)
        at += 12
    a = (a + int.from_bytes(key[at : at + 4], "little")) & _MASK
    b = (b + int.from_bytes(key[at + 4 : at + 8], "little")) & _MASK
    c = (c + (int.from_bytes(key[at + 8 : at + 11], "little") << 8)) & _MASK  # The lowest byte is for the size.
    return _final(a, b, c)


def bigint_bytes(number: int) -> bytes:
    """Return the bytes whose hash is that of a `bigint` value (`hashint8` in src/backend/access/hash/hashfunc.c)."""
    high = number >> 32 if number >= 0 else ~(number >> 32)
    return ((number ^ high) & _MASK).to_bytes(4, "little")


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    a, c = ((a - c) & _MASK) ^ _rotated(c, 4), (c + b) & _MASK
    b, a = ((b - a) & _MASK) ^ _rotated(a, 6), (a + c) & _MASK
    c, b = ((c - b) & _MASK) ^ _rotated(b, 8), (b + a) & _MASK
    a, c = ((a - c) & _MASK) ^ _rotated(c, 16), (c + b) & _MASK
    b, a = ((b - a) & _MASK) ^ _rotated(a, 19), (a + c) & _MASK
    c, b = ((c - b) & _MASK) ^ _rotated(b, 4), (b + a) & _MASK
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    c = ((c ^ b) - _rotated(b, 14)) & _MASK
    a = ((a ^ c) - _rotated(c, 11)) & _MASK
    b = ((b ^ a) - _rotated(a, 25)) & _MASK
    c = ((c ^ b) - _rotated(b, 16)) & _MASK
    a = ((a ^ c) - _rotated(c, 4)) & _MASK
    b = ((b ^ a) - _rotated(a, 14)) & _MASK
    return ((c ^ b) - _rotated(b, 24)) & _MASK


def _rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & _MASK
