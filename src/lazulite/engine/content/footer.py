"""The end of a content's file: what says that the file is whole, and for whom.

    data       the content itself, from offset 0
    owner      the partition that may refer to it, UTF-8
    checksums  CRC-32 of each window of the data, 4 bytes each
    trailer    length of the data (8), length of the owner (4), CRC-32 of owner, checksums and both lengths (4), MAGIC

Integers are big endian. A file without a valid footer was never sealed, or is damaged.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from lazulite.engine.content.contract import WINDOW_BYTES, ContentDamagedError, ContentUnsealedError

MAGIC = b"LAZUCON1"
"""The format; its last character is the version."""
_LENGTHS = struct.Struct(">QI")
_TRAILER = struct.Struct(">QII8s")
TRAILER_BYTES = _TRAILER.size


class Footer(NamedTuple):
    """What a footer says."""

    length: int
    owner: str
    checksums: Sequence[int]


def windows(length: int) -> int:
    """Return the number of windows of so many bytes."""
    return -(-length // WINDOW_BYTES)


def write_footer(footer: Footer) -> bytes:
    """Return the bytes of a footer."""
    owner = footer.owner.encode()
    body = owner + struct.pack(f">{len(footer.checksums)}I", *footer.checksums)
    lengths = (footer.length, len(owner))
    return body + _TRAILER.pack(*lengths, zlib.crc32(body + _LENGTHS.pack(*lengths)), MAGIC)


def footer_bytes(trailer: bytes, file_bytes: int) -> int:
    """Return the length of the whole footer, from the last `TRAILER_BYTES` of a file.

    Raises:
        ContentUnsealedError: a file of this size cannot end so.
    """
    if len(trailer) == TRAILER_BYTES:
        length, owner, _, magic = _TRAILER.unpack(trailer)
        size: int = owner + 4 * windows(length) + TRAILER_BYTES
        if magic == MAGIC and length + size == file_bytes:
            return size
    raise ContentUnsealedError("a content has no end")


def read_footer(data: bytes) -> Footer:
    """Read a whole footer.

    Raises:
        ContentDamagedError: it is damaged.
    """
    body, trailer = data[:-TRAILER_BYTES], data[-TRAILER_BYTES:]
    length, owner_bytes, checksum, _ = _TRAILER.unpack(trailer)
    if zlib.crc32(body + _LENGTHS.pack(length, owner_bytes)) != checksum:
        raise ContentDamagedError("the end of a content is damaged")
    owner, checksums = body[:owner_bytes], body[owner_bytes:]
    return Footer(length, owner.decode(), struct.unpack(f">{len(checksums) // 4}I", checksums))
