"""The writing half of a connection, and how it ends.

Invariants: what waits for a slow reader is bounded by the transport's high-water mark plus one response (over TLS by
twice that: it waits as it is, and encrypted); after `end`, nothing more is written. A connection that ends while its
client may still be sending lingers: input is read and dropped for a while, because closing a socket with unread input
resets it, and a reset can take the response away from the client (RFC 9112 section 9.6).
"""

import asyncio

from lazulite.server.http.write_batch import Outbox
from lazulite.server.net.tcp_progress import Delivery

_JOIN_BYTES = 64 * 1024
"""Up to here, copying a body behind its head is cheaper than writing two buffers."""


def client_address(transport: asyncio.BaseTransport) -> str:
    """Return the client's address as a SAS's `sip` would spell it: IPv4 as such, without zone; "" when unknown."""
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple):
        return ""
    address = str(peer[0]).partition("%")[0]
    return address.removeprefix("::ffff:") if "." in address else address


class Outlet:
    """Wraps a transport.

    Args:
        outbox: sends what is small enough to wait for the end of the turn.
        discarded_bytes_max: what a lingering client may still send.

    Attributes:
        reading: whether the transport is read from.
    """

    def __init__(self, transport: asyncio.Transport, outbox: Outbox, discarded_bytes_max: int) -> None:
        self._transport = transport
        self._outbox = outbox
        self._discarded_bytes_left = discarded_bytes_max
        self.reading = True
        self._delivery = Delivery(transport)

    def write(self, head: bytes, body: bytes) -> None:
        """Send a head and its body, with one system call as a rule."""
        if len(body) <= _JOIN_BYTES:
            self._outbox.post(self._transport, head + body)
        else:
            self._outbox.send()
            self._transport.writelines((head, body))

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
        self._outbox.send()
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
        """What waits in the transport."""
        return self._transport.get_write_buffer_size()

    @property
    def waits(self) -> bool:
        """Whether bytes wait for a slow reader."""
        return self._delivery.waits

    def progress(self) -> bool:
        """Return whether the client has taken some of what waits since the last call."""
        self._outbox.send()
        return self._delivery.progress()
