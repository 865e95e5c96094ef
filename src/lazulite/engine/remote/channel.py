"""Messages between two processes of one service, over a stream that only these two have.

A message is a tuple of plain values: numbers, text, bytes, None, and tuples, lists and dictionaries of such. All that
one turn of the event loop has to say goes as one frame: its length (8 bytes, big endian), then the list of messages, as
`marshal` writes it. So the cost of a send, of a receive and of waking the other side is shared by as many messages as
there are; a busy process sends more of them at a time.

Both ends are the same program, run by the same interpreter under the same user, and nobody else has the stream, which
is what `marshal` asks for. It makes values only; nothing that is read is run.

Invariants: messages arrive whole and in their order; none after `lost` was called, which is once. A `patient` end takes
nothing more from the other while that one does not take what it was sent, so what waits for it is bounded by what it
had asked for.
"""

import asyncio
import marshal
from collections.abc import Callable
from typing import Any, TypeAlias, cast

Plain: TypeAlias = Any
"""What messages are made of; who knows a message's kind knows the types in it, and takes them for granted."""

Message: TypeAlias = tuple[Plain, ...]

_HEAD_BYTES = 8
_MARSHAL_VERSION = 2  # Later ones look each object up, lest it is written twice.
_MESSAGES_MAX = 64
"""So many are not kept for the end of the turn."""
_UNSENT_BYTES_MAX = 4 << 20


class Link(asyncio.Protocol):
    """One end.

    Args:
        received: called with each message.
        lost: called when the other end is gone, or `close` has ended this one.
        patient: see above.
    """

    def __init__(self, received: Callable[[Message], None], lost: Callable[[], None], *, patient: bool = False) -> None:
        self._received = received
        self._lost = lost
        self._patient = patient
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[Message] = []
        self._incoming = bytearray()
        self._ended = False
        self._gone = asyncio.Event()

    def post(self, message: Message) -> None:
        """Send a message soon; it goes nowhere if the other end is gone."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self.send)
        self._outgoing.append(message)
        if len(self._outgoing) >= _MESSAGES_MAX:
            self.send()

    def send(self) -> None:
        """Send what waits, now, or as soon as there is a stream."""
        if self._transport is None:
            return
        outgoing, self._outgoing = self._outgoing, []
        if outgoing and not self._ended:
            frame = marshal.dumps(outgoing, _MARSHAL_VERSION)
            self._transport.write(len(frame).to_bytes(_HEAD_BYTES, "big") + frame)

    def close(self) -> None:
        """End this end, once all that was posted is sent."""
        self.send()
        if self._transport is not None:
            self._transport.close()

    async def closed(self) -> None:
        """Return when this end has ended."""
        if self._transport is not None:
            await self._gone.wait()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_UNSENT_BYTES_MAX)
        self.send()

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        incoming = self._incoming
        incoming += data
        start, size = 0, len(incoming)
        while size - start >= _HEAD_BYTES and not self._ended:
            body = start + _HEAD_BYTES
            end = body + int.from_bytes(incoming[start:body], "big")
            if size < end:
                break
            messages = marshal.loads(memoryview(incoming)[body:end].toreadonly())  # noqa: S302 - see the module
            start = end
            for message in messages:
                self._received(message)
        del incoming[:start]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """End."""
        if not self._ended:
            self._ended = True
            self._gone.set()
            self._lost()

    def pause_writing(self) -> None:
        """Take nothing more while so much is unsent."""
        if self._patient and self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        if self._patient and self._transport is not None:
            self._transport.resume_reading()
