"""Sends long bodies of responses window by window, and lets other tasks run in between."""

from collections.abc import Awaitable, Callable

from lazulite.protocol.joined_content import ONE_PIECE_BYTES, JoinedContent
from lazulite.protocol.message import Response, ResponseContent, Window
from lazulite.service.time_slice import TimeSlice


def content_of(response: Response) -> ResponseContent | None:
    """Return what is to be sent of a response in windows; None: its body is sent in one piece."""
    if response.content is None and len(response.body) > ONE_PIECE_BYTES:
        return JoinedContent([response.body])
    return response.content


async def send_windows(
    content: ResponseContent, send: Callable[[Window], Awaitable[None]], time_slice: TimeSlice
) -> None:
    """Send content.

    Args:
        content: is not closed here.
        send: sends one window; what it raises ends the sending.
        time_slice: has a checkpoint after each window.

    Raises:
        ValueError: the content has not the length that it announced. No more than that was sent.
    """
    length, made_bytes = content.length, 0
    async for window in content.chunks():
        made_bytes += len(window)
        if made_bytes > length:
            break
        await send(window)
        await time_slice.checkpoint()
    if made_bytes != length:
        raise ValueError(f"content of {length} bytes had {made_bytes}")
