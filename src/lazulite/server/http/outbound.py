"""The writing half of a connection, and how it ends.

Invariants: nothing is written while something waits for a slow reader, so at most one response or window waits (over
TLS twice that: it waits as it is, and encrypted); after `end`, nothing more is written. A connection that ends while
its client may still be sending lingers: input is read and dropped for a while, because closing a socket with unread
input resets it, and a reset can take the response away from the client (RFC 9112 section 9.6).
"""

import asyncio
import sys

from lazulite.protocol.body import Window
from lazulite.protocol.message import ClientDisconnectedError
from lazulite.server.http.write_batch import WriteBatcher
from lazulite.server.net.tcp_progress import AckProgress

_HIDING_BYTES = 16 * 1024
"""A shorter body over TLS is not looked for: it costs no more than the buffers of TLS at rest."""

_JOIN_BYTES = 64 * 1024
"""Up to here, copying a body behind its head is cheaper than writing two buffers."""


def client_address(transport: asyncio.BaseTransport) -> str:
    """Return the client's address as a SAS's `sip` would spell it: IPv4 as such, without zone; "" when unknown."""
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple):
        return ""
    address = str(peer[0]).partition("%")[0]
    return address.removeprefix("::ffff:") if "." in address else address


class OutboundStream:
    """Wraps a transport.

    Args:
        write_batcher: sends what is small enough to wait for the end of the pass.
        discarded_bytes_max: what a lingering client may still send.
        is_tls: whether what is written may wait encrypted, where the transport does not tell of it.

    Attributes:
        blocked: something waits for a slow reader, so no more is to be written.
        reading: whether the transport is read from.
        hidden_bytes: what was written and may wait encrypted.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        write_batcher: WriteBatcher,
        discarded_bytes_max: int,
        *,
        is_tls: bool = False,
    ) -> None:
        self._hiding_bytes = _HIDING_BYTES if is_tls else sys.maxsize
        self.hidden_bytes = 0
        self._transport = transport
        self._write_batcher = write_batcher
        self._discarded_bytes_left = discarded_bytes_max
        self.blocked = False
        self.reading = True
        self._writable: asyncio.Future[bool] | None = None
        self._turn: asyncio.Future[bool] | None = None
        self._acks = AckProgress(transport)

    def write(self, head: bytes, body: Window) -> None:
        """Send a head and its body, or either of them, with one system call as a rule."""
        if len(body) >= self._hiding_bytes:
            self.hidden_bytes = len(body)
        if len(body) <= _JOIN_BYTES:
            self._write_batcher.post(self._transport, head + body)
        else:
            self._write_batcher.send()
            if head:
                self._transport.writelines((head, body))
            else:
                self._transport.write(body)

    def pause(self) -> None:
        """Note that something waits for a slow reader."""
        self.blocked = True

    def resume(self) -> None:
        """Note that nothing waits."""
        self.blocked = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(True)

    async def writable(self) -> None:
        """Return when nothing waits for the reader.

        Raises:
            ClientDisconnectedError: the connection was lost.
        """
        self._writable = asyncio.get_running_loop().create_future()
        # The exception is made here: kept in the future, it would keep this frame, and so the window, until the next
        # collection of garbage.
        if not await self._writable:
            raise ClientDisconnectedError

    def lose(self) -> None:
        """Note that the connection was lost."""
        for waiting in (self._writable, self._turn):
            if waiting is not None and not waiting.done():
                waiting.set_result(False)

    def turn(self) -> "asyncio.Future[bool]":
        """Return a future for a wait before the next window. It is False once the connection was lost."""
        self._turn = asyncio.get_running_loop().create_future()
        return self._turn

    def read(self, wanted: bool) -> bool:
        """Turn reading on or off; return whether it was on."""
        was = self.reading
        if wanted is not was:
            self.reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
        return was

    def end(self, *, linger: bool) -> None:
        """Close once all is written; with `linger`, when the client closes or someone calls `abort`."""
        self._write_batcher.send()
        if linger and self._transport.can_write_eof():
            self._transport.write_eof()
            self.read(True)
        else:
            self._transport.close()

    def discard(self, count: int) -> None:
        """Account for bytes that a lingering client sent; disconnect when it sends too many."""
        self._discarded_bytes_left -= count
        if self._discarded_bytes_left < 0:
            self._transport.abort()

    def abort(self) -> None:
        """Disconnect now."""
        self._transport.abort()

    @property
    def waiting_bytes(self) -> int:
        """What waits in the transport, or may wait beneath it."""
        return self._transport.get_write_buffer_size() + self.hidden_bytes

    @property
    def waits(self) -> bool:
        """Whether bytes wait for a slow reader."""
        return self._acks.waits

    def look_beneath(self) -> bool:
        """Return whether what may wait encrypted has arrived since the last look."""
        if not self.hidden_bytes or self._acks.waits:
            return False
        self.hidden_bytes = 0
        return True

    def progress(self) -> bool:
        """Return whether the client has taken some of what waits since the last call."""
        self._write_batcher.send()
        return self._acks.progress()
