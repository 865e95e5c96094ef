"""The minimal server for blobs: the least code that reads a range of a file, verifies it and sends it.

The same httptools, uvloop, allocator, windows and checksums. Nothing is checked but the signature and the bytes, by
checksums from the server's start. It knows files instead of blobs, and reads them in the event loop. The difference
between this and Lazulite is Lazulite's own code. Arguments: port, directory.
"""

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from isal.isal_zlib import crc32

from benchmarks.baseline_server import Responder, serve
from benchmarks.requests import ACCOUNT, is_account_sas
from lazulite.engine.content.contract import WINDOW_BYTES
from lazulite.server.allocator import keep_freed_memory

_RANGE = re.compile(rb"bytes=(\d+)-(\d+)")


class _File:
    """A file that is read in windows."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        starts = range(0, os.fstat(self._file).st_size, WINDOW_BYTES)
        self._checksums = [crc32(self._read(start)) for start in starts]

    def window(self, start: int) -> bytes:
        """Return the window that begins there."""
        data = self._read(start)
        if crc32(data) != self._checksums[start // WINDOW_BYTES]:
            raise OSError("a file is damaged")
        return data

    def _read(self, start: int) -> bytes:
        return os.pread(self._file, WINDOW_BYTES, start)


class _Connection(Responder):
    """A connection, and the files by the path of a request."""

    def __init__(self, files: Mapping[bytes, _File]) -> None:
        super().__init__()
        self._files, self._url, self._range = files, b"", range(0)
        self._writable = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._transport.set_write_buffer_limits(WINDOW_BYTES)
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def on_url(self, url: bytes) -> None:
        self._url, self._range = url, range(0)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"range" and (found := _RANGE.fullmatch(value)) is not None:
            self._range = range(int(found[1]), int(found[2]) + 1, WINDOW_BYTES)

    def on_message_complete(self) -> None:
        path, _, query = self._url.partition(b"?")
        file = self._files.get(path)
        if not is_account_sas(query):
            self._transport.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        elif file is None:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        else:
            self._sending = asyncio.create_task(self._send(file, self._range))

    async def _send(self, file: _File, starts: range) -> None:
        length = starts.stop - starts.start
        self._transport.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\n\r\n" % length)
        for start in starts:
            self._transport.write(file.window(start))
            await self._writable.wait()
            await asyncio.sleep(0)


if __name__ == "__main__":
    keep_freed_memory()
    directory = Path(sys.argv[2])
    files = {f"/{ACCOUNT}/{each.relative_to(directory)}".encode(): _File(each) for each in directory.glob("*/*")}
    serve(lambda: _Connection(files), int(sys.argv[1]))
