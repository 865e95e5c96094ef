"""Files of jobs: what was uploaded, and what is downloaded. They have no name on the disk, and go with their job."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from typing import IO

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import WINDOW_BYTES, Request, Window
from lazulite.ui.calls import PageError

FILE_BYTES_MAX = 1 << 30
"""The longest file. The commands `export` and `import` have no such bound."""


class FileContent:
    """A file as the content of a response. Implements `ResponseContent`.

    Args:
        file: stays open, and may be read by several responses.
    """

    held_bytes = 0

    def __init__(self, file: IO[bytes]) -> None:
        self._descriptor = os.dup(file.fileno())
        self._length = os.fstat(self._descriptor).st_size

    @property
    def length(self) -> int:
        """See `ResponseContent`."""
        return self._length

    async def chunks(self) -> AsyncIterator[Window]:
        """See `ResponseContent`."""
        for start in range(0, self._length, WINDOW_BYTES):
            yield await asyncio.to_thread(os.pread, self._descriptor, WINDOW_BYTES, start)

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        os.close(self._descriptor)


def new_file() -> IO[bytes]:
    """Return an empty file without a name."""
    return tempfile.TemporaryFile(prefix="lazulite-ui-")


async def received(request: Request) -> IO[bytes]:
    """Return the body of a request as a file, at its start.

    Raises:
        PageError: it is longer than `FILE_BYTES_MAX`, or does not come.
    """
    file = new_file()
    try:
        async for chunk in _chunks(request):
            if file.tell() + len(chunk) > FILE_BYTES_MAX:
                raise PageError(413, f"the file is longer than {FILE_BYTES_MAX:,} bytes; use lazulite import")
            await asyncio.to_thread(file.write, chunk)
    except ServiceError as error:
        file.close()
        raise PageError(error.status, f"the file did not come: {error.code}") from None
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    if request.body_to_come is None:
        yield request.body
        return
    coming, request.body_to_come = request.body_to_come, None
    async for chunk in coming.chunks():
        yield chunk
