"""One content of a database while it is written."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from lazulite.engine.content.contract import WINDOW_BYTES, ContentId
from lazulite.engine.contract import EngineError
from lazulite.engine.postgres.contents.windows import ContentWindows

TOUCH_SECONDS = 600.0
"""How often a slow writer says that it lives, which gives it another hour."""


class RowWriter:
    """Implements `ContentWriter`. While one window is written, another one is collected.

    Args:
        rows: of contents.
        content: its head exists.
        check_not_dropped: takes the number of a space, and raises `SpaceDroppedError` if it was dropped.
    """

    def __init__(self, rows: ContentWindows, content: ContentId, check_not_dropped: Callable[[int], None]) -> None:
        self.length = 0
        self._rows = rows
        self._content = content
        self._check_not_dropped = check_not_dropped
        self._collected = bytearray()
        self._count = 0
        self._writing: asyncio.Task[None] | None = None
        self._touched = asyncio.get_running_loop().time()
        self._sealed = False

    async def write(self, chunk: bytes) -> None:
        """See `ContentWriter`."""
        self.length += len(chunk)
        self._collected += chunk
        while len(self._collected) >= WINDOW_BYTES:
            window = bytes(memoryview(self._collected)[:WINDOW_BYTES])
            del self._collected[:WINDOW_BYTES]
            await self._add(window)

    async def copy(self, source: ContentId) -> None:
        """Take the bytes of another content, and no others.

        Raises:
            ContentMissingError: there is no such content.
            EngineUnavailableError: it cannot be copied.
        """
        self.length = await self._rows.copy(source, self._content)

    async def seal(self) -> ContentId:
        """See `ContentWriter`."""
        if self._collected:
            await self._add(bytes(self._collected))
        await self._written()
        self._check_not_dropped(self._content.space)
        await self._rows.seal(self._content, self.length)
        self._sealed = True
        return self._content

    async def discard(self) -> None:
        """See `ContentWriter`. What cannot be deleted now is deleted after its hour."""
        if self._sealed:
            return
        with suppress(EngineError):
            await self._written()
        with suppress(EngineError):
            await self._rows.delete(self._content.space, [self._content.number])

    async def _add(self, window: bytes) -> None:
        await self._written()
        self._writing = asyncio.create_task(self._write(self._count, window))
        self._count += 1

    async def _write(self, number: int, window: bytes) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._touched + TOUCH_SECONDS:
            await self._rows.touch(self._content)
            self._touched = now
        await self._rows.add(self._content, number, window)

    async def _written(self) -> None:
        if self._writing is not None:
            await asyncio.shield(self._writing)
