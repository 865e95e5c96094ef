"""Long response bodies: their parts are joined while they are sent, one window at a time.

Joining and copying a body of many megabytes would hold the event loop for as long as that takes.
"""

from collections.abc import AsyncIterator, Iterable, Iterator

from lazulite.protocol.message import WINDOW_BYTES, ResponseContent, Window

ONE_PIECE_BYTES = 1024 * 1024
"""A longer body is sent in windows. Up to here, joining and copying it at once takes about a millisecond."""


class JoinedContent:
    """The concatenation of parts; implements `ResponseContent`. Each part is released once it is sent.

    Args:
        parts: of the body, in order.
    """

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = list(parts)
        self._parts.reverse()  # So that each can be taken from the end.
        self._length = sum(map(len, self._parts))

    @property
    def length(self) -> int:
        """See `ResponseContent`."""
        return self._length

    @property
    def held_bytes(self) -> int:
        """See `ResponseContent`."""
        return self._length

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `ResponseContent`. All but the last are of `WINDOW_BYTES`."""
        for window in _windows(self._parts):
            yield window

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        self._parts.clear()


class EnclosedContent:
    """Content between two short texts; implements `ResponseContent`.

    Args:
        opening: before it.
        content: closed with this.
        closing: behind it.
    """

    def __init__(self, opening: bytes, content: ResponseContent, closing: bytes) -> None:
        self._opening = opening
        self._content = content
        self._closing = closing

    @property
    def length(self) -> int:
        """See `ResponseContent`."""
        return len(self._opening) + self._content.length + len(self._closing)

    @property
    def held_bytes(self) -> int:
        """See `ResponseContent`."""
        return self._content.held_bytes

    async def chunks(self) -> AsyncIterator[Window]:
        """See `ResponseContent`."""
        yield self._opening
        async for chunk in self._content.chunks():
            yield chunk
        yield self._closing

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        await self._content.aclose()


def _windows(parts: list[bytes]) -> Iterator[bytes]:
    """Yield the bytes of reversed parts, and take each away."""
    window: list[bytes] = []
    room = WINDOW_BYTES
    while parts:
        part = parts.pop()
        start = 0
        while len(part) - start >= room:
            window.append(part[start : start + room])
            start += room
            yield b"".join(window)
            window, room = [], WINDOW_BYTES
        if start < len(part):
            window.append(part[start:])
            room -= len(part) - start
    if window:
        yield b"".join(window)
