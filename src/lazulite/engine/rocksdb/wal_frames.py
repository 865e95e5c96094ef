"""A check of the frames of RocksDB's logs and MANIFESTs before RocksDB reads them.

A file is blocks of 32 KiB. A record, or a piece of one, has a header of seven bytes: a checksum (4), the length (2) and
the type (1), both little endian; none crosses a block's end. Lazulite's stores have types 1 to 4. Types 5 to 8 belong
to recycled logs, which Lazulite does not use: RocksDB reads such a record for ever and never opens. A flipped bit turns
a 1 into a 5.

The check visits at least the records that RocksDB visits: it uses the same lengths, and goes on with the next block
after a record that cannot be read.
"""

import struct
from pathlib import Path

from lazulite.engine.contract import StoreUnusableError

_BLOCK_BYTES = 32 << 10
_HEADER = struct.Struct("<IHB")
_RECYCLED = range(5, 9)


def reject_recycled(path: Path) -> None:
    """Check the logs and MANIFESTs of the store in a directory.

    Raises:
        StoreUnusableError: one cannot be read, or is damaged such that RocksDB would never return.
    """
    try:
        for file in sorted([*path.glob("*.log"), *path.glob("MANIFEST-*")]):
            at = recycled_at(file)
            if at is not None:
                raise StoreUnusableError(
                    f"{path} is damaged: {file.name} has a record of an impossible type at byte {at}; "
                    "restore it from a backup"
                )
    except OSError as error:
        raise StoreUnusableError(f"{path} cannot be read: {error.strerror}") from error


def recycled_at(file: Path) -> int | None:
    """Return where the first record of a recycled log is in a file, None if there is none."""
    start = 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            at = 0
            while at + _HEADER.size <= len(block):
                _, length, kind = _HEADER.unpack_from(block, at)
                if kind in _RECYCLED:
                    return start + at
                step = _HEADER.size + length
                at += step if 0 < kind < 5 and step <= _BLOCK_BYTES - at else _BLOCK_BYTES
            start += len(block)
    return None
