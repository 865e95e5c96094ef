"""The frames of RocksDB's logs and MANIFESTs, looked at before RocksDB does.

A file is blocks of 32 KiB. A record, or a piece of one, has a header of seven bytes: a checksum (4), the length (2) and
the type (1), both little endian; none crosses a block's end. Types 1 to 4 are written here. Types 5 to 8 are those of
recycled logs, which Lazulite does not have; where RocksDB meets one it reads the same place for ever and never
opens. A flipped bit makes a 5 of a 1.

What is followed here is at least what RocksDB follows: it goes by the same lengths, and after what it cannot read on
from the next block.
"""

import struct
from pathlib import Path

from lazulite.engine.contract import StoreUnusableError

_BLOCK_BYTES = 32 << 10
_HEADER = struct.Struct("<IHB")
_RECYCLED = range(5, 9)


def refuse_recycled(path: Path) -> None:
    """Look at the logs and MANIFESTs of a store in a directory.

    Raises:
        StoreUnusableError: one is damaged such that RocksDB would not come back, or cannot be read.
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
