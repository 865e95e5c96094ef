"""Messages between two processes of one service, over a stream that only these two have.

A message is a tuple of plain values: numbers, text, bytes, None, and tuples, lists and dictionaries of such. All
messages of one iteration of the event loop are sent as one frame: its length (8 bytes, big endian), then the list of
messages, as `marshal` writes it. So the messages of a frame share the cost of a send, of a receive and of waking the
other process; a busy process sends more of them in a frame.

Both ends are the same program, run by the same interpreter under the same user, and no other process has the stream;
`marshal` requires that. It makes values only; nothing that is read is run.

Invariants: messages arrive whole and in their order; none after `lost` was called, which is once. A `patient` end
receives nothing more while the other end leaves 4 MiB unread, so that unsent responses are bounded by the requests. An
end closes the connection when the other one announces a frame of more than 1 GiB.
"""

import asyncio
import marshal
from collections.abc import Callable
from typing import TypeAlias, cast

from lazulite.engine.commit import Plain

Message: TypeAlias = tuple[Plain, ...]
"""A message's kind determines the types of its values, which are not checked."""

_HEAD_BYTES = 8
_MARSHAL_VERSION = 2  # Later versions look each object up to write it once only.
_MESSAGES_MAX = 64
"""So many messages are sent at once, before the iteration of the event loop ends."""
_UNSENT_BYTES_MAX = 4 << 20
FRAME_BYTES_MAX = 1 << 30
"""No frame is longer: it has up to 64 messages, and none of these is longer than 16 MiB."""


class Channel(asyncio.Protocol):
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
        """The beginning of a frame."""
        self._ended = False
        self._gone = asyncio.Event()

    def post(self, message: Message) -> None:
        """Send a message soon; drop it if the other end is gone."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self.send)
        self._outgoing.append(message)
        if len(self._outgoing) >= _MESSAGES_MAX:
            self.send()

    def send(self) -> None:
        """Send all posted messages now, or as soon as there is a stream."""
        if self._transport is None:
            return
        outgoing, self._outgoing = self._outgoing, []
        if outgoing and not self._ended:
            frame = marshal.dumps(outgoing, _MARSHAL_VERSION)
            self._transport.write(len(frame).to_bytes(_HEAD_BYTES, "big") + frame)

    def close(self) -> None:
        """Close this end once all posted messages are sent."""
        self.send()
        if self._transport is not None:
            self._transport.close()

    async def closed(self) -> None:
        """Return when this end is closed."""
        if self._transport is not None:
            await self._gone.wait()

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Use the transport, and send all posted messages."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_UNSENT_BYTES_MAX)
        self.send()

    def data_received(self, data: bytes) -> None:
        """Pass on each message that is complete."""
        incoming: bytes | bytearray = data
        if self._incoming:
            self._incoming += data
            incoming = self._incoming
        start, size = 0, len(incoming)
        while size - start >= _HEAD_BYTES and not self._ended:
            body = start + _HEAD_BYTES
            length = int.from_bytes(incoming[start:body], "big")
            end = body + length
            if length > FRAME_BYTES_MAX:
                self._hang_up()
                return
            if size < end:
                break
            messages = marshal.loads(memoryview(incoming)[body:end].toreadonly())  # noqa: S302 - see the module
            start = end
            for message in messages:
                self._received(message)
        if start or incoming is data:
            self._incoming = bytearray(memoryview(incoming)[start:])

    def _hang_up(self) -> None:
        """Hang up at once: the other end is no longer understood."""
        self._incoming = bytearray()
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Report the loss, once."""
        if not self._ended:
            self._ended = True
            self._gone.set()
            self._lost()

    def pause_writing(self) -> None:
        """Stop receiving while too much is unsent, if this end is patient."""
        if self._patient and self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Receive again."""
        if self._patient and self._transport is not None:
            self._transport.resume_reading()
