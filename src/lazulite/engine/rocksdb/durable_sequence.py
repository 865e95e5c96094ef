"""The durable-sequence marker: RocksDB's sequence number of the last write that was synced.

    lazulite.mark   two slots, at 0 and 512: the number (8 bytes, big endian), then a CRC-32 of these (4 bytes)

At startup this distinguishes a torn, unacknowledged log tail from loss of acknowledged writes. RocksDB alone cannot:
both are unreadable bytes at the end of its log. Writes up to the marker may have been acknowledged, so a store that
recovers to less than its marker has lost acknowledged writes.

Invariants: the marker is never above what is durable, because it is written after the sync. It is not synced itself:
after a power cut it may be some seconds old, after the death of a process alone it is exact. Writes alternate between
the slots, so a torn write leaves the other slot. A torn slot is repaired and synced before the other one is written.
"""

import contextlib
import os
import zlib
from pathlib import Path

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.durable_files import sync_directory

NAME = "lazulite.mark"
_SLOTS = (0, 512)
_NUMBER_BYTES = 8
_SLOT_BYTES = _NUMBER_BYTES + 4
_BINARY: int = getattr(os, "O_BINARY", 0)
"""Windows writes CR LF without it."""


class DurableSequenceMarker:
    """The durable-sequence marker of an open store."""

    def __init__(self, path: Path, number: int) -> None:
        """Open the marker of a store in a directory, and set it. Raises OSError."""
        new = not (path / NAME).exists()
        self._file = os.open(path / NAME, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)
        self._writes = 0
        try:
            for slot in sorted(_SLOTS, key=self._is_good):
                _write(self._file, _encode(number), slot)
                os.fsync(self._file)
            if new:
                sync_directory(path)
        except OSError:
            self.close()
            raise

    def _is_good(self, slot: int) -> bool:
        content = _read(self._file, _SLOT_BYTES, slot)
        return content == _encode(int.from_bytes(content[:_NUMBER_BYTES], "big"))

    def advance(self, number: int) -> None:
        """Record that all writes up to a number are durable. If that fails, the marker stays, which is true as well."""
        slot = _SLOTS[self._writes % len(_SLOTS)]
        self._writes += 1
        with contextlib.suppress(OSError):
            _write(self._file, _encode(number), slot)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_marker(path: Path) -> int | None:
    """Return the marker of the store in a directory; None if it has none yet.

    Raises:
        StoreUnusableError: the marker is damaged.
    """
    try:
        content = (path / NAME).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnusableError(f"{path / NAME} cannot be read: {error.strerror}") from error
    slots = [content[at : at + _SLOT_BYTES] for at in _SLOTS]
    numbers = [int.from_bytes(slot[:_NUMBER_BYTES], "big") for slot in slots if slot]
    known = [number for number in numbers if _encode(number) in slots]
    if not known and not all(any(content[at : at + _SLOT_BYTES]) for at in _SLOTS):
        return None  # The power was cut before the new file was wholly written.
    if not known:
        raise StoreUnusableError(
            f"{path / NAME} is damaged; restore the store from a backup, or remove that file to do without"
        )
    return max(known)


def _read(file: int, count: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, count, offset)
    os.lseek(file, offset, os.SEEK_SET)  # Windows.
    return os.read(file, count)


def _write(file: int, content: bytes, offset: int) -> None:
    if hasattr(os, "pwrite"):
        os.pwrite(file, content, offset)
    else:
        os.lseek(file, offset, os.SEEK_SET)  # Windows.
        os.write(file, content)


def _encode(number: int) -> bytes:
    encoded = number.to_bytes(_NUMBER_BYTES, "big")
    return encoded + zlib.crc32(encoded).to_bytes(4, "big")
