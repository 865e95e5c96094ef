"""One content as a file, for threads: every call here may block, except `SealedFile.read_cached`.

A `UnsealedFile` becomes a `SealedFile` by its footer. Nothing is synced before `finish`, except that no more than
`UNSYNCED_BYTES_MAX` wait for the disk, so that the sync at the end of 4 GiB is short.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from isal.isal_zlib import crc32

from lazulite.engine.content.contract import WINDOW_BYTES, ContentDamagedError
from lazulite.engine.content.footer import TRAILER_BYTES, Footer, footer_bytes, read_footer, write_footer

UNSYNCED_BYTES_MAX = 32 << 20
_TAIL_BYTES = 4096
"""Read at once from the end: the whole footer of a content of up to 200 MiB."""

_AHEAD_BYTES = 4 * WINDOW_BYTES
"""Asked of the disk when one window has to be waited for."""

sync_data = getattr(os, "fdatasync", os.fsync)
"""Windows and macOS have no fdatasync."""

_nowait: int | None = getattr(os, "RWF_NOWAIT", None)
_fadvise = getattr(os, "posix_fadvise", None)
"""Linux has both."""


def open_private(path: str, flags: int) -> int:
    """Open a file that is its owner's only."""
    return os.open(path, flags, 0o600)


class UnsealedFile:
    """A file that is being written.

    Args:
        path: where; it must not exist.
    """

    def __init__(self, path: Path) -> None:
        self.length = 0
        self._path = path
        self._file: FileIO | None = None
        self._checksums: list[int] = []
        self._unsynced = 0

    def append(self, chunks: Iterable[bytes]) -> None:
        """Write bytes behind the last ones.

        Raises:
            OSError: they cannot be written.
        """
        file = self._opened()
        for chunk in chunks:
            write_all(file, chunk)
            self._add_checksums(chunk)
            self._unsynced += len(chunk)
        if self._unsynced >= UNSYNCED_BYTES_MAX:
            sync_data(file.fileno())
            self._unsynced = 0

    def finish(self, owner: str) -> None:
        """Write the footer, and make the file durable, its name excepted.

        Raises:
            OSError: it cannot be made so.
        """
        file = self._opened()
        write_all(file, write_footer(Footer(self.length, owner, self._checksums)))
        sync_data(file.fileno())
        file.close()

    def remove(self) -> None:
        """Delete what was written.

        Raises:
            OSError: it cannot be deleted.
        """
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    def _opened(self) -> FileIO:
        if self._file is None:
            self._file = FileIO(self._path, "xb", opener=open_private)
        return self._file

    def _add_checksums(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            filled = self.length % WINDOW_BYTES
            part = view[: WINDOW_BYTES - filled]
            if filled:
                self._checksums[-1] = crc32(part, self._checksums[-1])
            else:
                self._checksums.append(crc32(part))
            self.length += len(part)
            view = view[len(part) :]


class SealedFile:
    """A file that is read.

    Args:
        path: where it is.

    Raises:
        FileNotFoundError: it is not there.
        ContentDamagedError: it has no valid footer.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._file = FileIO(path, "rb")
        try:
            self.trailer = b""
            """The end of the footer, which has a checksum of all of it."""
            self._footer = self._read_footer()
        except BaseException:
            self._file.close()
            raise

    @property
    def length(self) -> int:
        """The bytes of the content."""
        return self._footer.length

    @property
    def owner(self) -> str:
        """The partition that may refer to it."""
        return self._footer.owner

    def read(self, number: int) -> bytes:
        """Return a window of the content, and make the kernel read the next ones.

        Raises:
            ContentDamagedError: it is not what was written.
            OSError: it cannot be read.
        """
        start, length = self._extent(number)
        if _fadvise is not None:
            with suppress(OSError):  # Some file systems take no advice.
                _fadvise(self._file.fileno(), start, _AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
        data = self._read(start, length)
        self._check(number, data)
        return data

    def read_cached(self, number: int) -> bytearray | None:
        """Return a window of the content if the kernel has its bytes in memory; it does not block.

        None: the kernel has not, or cannot say. Then `read` also tells why bytes cannot be read.

        Raises:
            ContentDamagedError: it is not what was written.
        """
        if _nowait is None:
            return None
        start, length = self._extent(number)
        data = bytearray(length)
        try:
            count = os.preadv(self._file.fileno(), [data], start, _nowait)
        except OSError:
            return None
        if count < length:
            return None
        self._check(number, data)
        return data

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _extent(self, number: int) -> tuple[int, int]:
        """Return where a window begins, and its length."""
        start = number * WINDOW_BYTES
        return start, min(WINDOW_BYTES, self.length - start)

    def _check(self, number: int, data: bytes | bytearray) -> None:
        if crc32(data) != self._footer.checksums[number]:
            raise ContentDamagedError("the bytes of a content are damaged")

    def _read_footer(self) -> Footer:
        size = self._file.seek(0, os.SEEK_END)
        tail = self._read(max(0, size - _TAIL_BYTES), min(size, _TAIL_BYTES))
        self.trailer = bytes(tail[-TRAILER_BYTES:])
        length = footer_bytes(self.trailer, size)
        if length > len(tail):
            tail = self._read(size - length, length)
        return read_footer(tail[-length:])

    def _read(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        data = bytearray()
        while len(data) < length:
            more = self._file.read(length - len(data))
            if not more:
                raise ContentDamagedError("a content is shorter than it was")
            if len(more) == length:
                return more
            data += more
        return bytes(data)


def write_all(file: FileIO, data: bytes) -> None:
    """Write bytes; a write may take a part of them.

    Raises:
        OSError: they cannot be written.
    """
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]
