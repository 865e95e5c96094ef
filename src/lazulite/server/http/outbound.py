"""The writing half of a connection: responses as bytes, how they are sent and taken, and how the connection ends.

Each send may wake the client's side, which costs more than the send itself when that side sleeps in between. Responses
that come out of one pass of the event loop are therefore kept to its end and sent one right after the other.

A transport tells what waits in it. Over TLS that is not all: encrypted bytes wait in another transport beneath, which
does not tell. Linux tells of a TCP connection how many bytes its peer has acknowledged, which is enough for both.

Long bodies are sent window by window, and other tasks run in between.

Invariants:
- A response is one head, one body, nothing else: neither a header value nor a reason phrase can start another line.
  Content-Length always tells where the body ends, so the connection stays usable. A response's `opening` is checked by
  the service that makes it.
- What one connection posts leaves in the order it was posted. Nothing is kept beyond the pass, nor while more than
  `ANSWERS_MAX` responses wait, nor once a response has waited for `SECONDS_MAX` when another is posted.
- Nothing is written while something waits for a slow reader, so at most one response or window waits (over TLS twice
  that: it waits as it is, and encrypted). After `end`, nothing more is written.
- A connection that ends while its client may still be sending lingers: input is read and dropped for a while. Closing a
  socket with unread input resets it, and a reset can take the response away from the client (RFC 9112 section 9.6).
"""

import asyncio
import re
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from lazulite.protocol.errors import REASONS
from lazulite.protocol.joined_content import ONE_PIECE_BYTES, JoinedContent
from lazulite.protocol.message import ClientDisconnectedError, Response, ResponseContent, Window
from lazulite.service.time_slice import TimeSlice

_TCP_INFO = getattr(socket, "TCP_INFO", None)
_LAYOUT = struct.Struct("@24xI92xQ16xI")
"""The layout of the kernel's `struct tcp_info` (linux/tcp.h): tcpi_unacked, tcpi_bytes_acked, tcpi_notsent_bytes."""

_LINGER_NONE = struct.pack("ii", 1, 0)
"""The value of `SO_LINGER` with which closing a socket resets its connection."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

REASON_MAX = 256
"""Characters of a reason phrase."""

_STATUS_LINES = {status: f"HTTP/1.1 {status} {reason}" for status, reason in REASONS.items()}

_NOT_IN_REASON = re.compile(r"[^ -~]")

_BODILESS = frozenset({204, 304})

ANSWERS_MAX = 64
SECONDS_MAX = 0.002

_HIDING_BYTES = 16 * 1024
"""A shorter body over TLS is not looked for: it costs no more than the buffers of TLS at rest."""

_JOIN_BYTES = 64 * 1024
"""Up to here, copying a body behind its head is cheaper than writing two buffers."""


class _Sent(NamedTuple):
    """`unacked`: segments on their way. `acked_bytes`: so far. `unsent_bytes`: those the kernel holds back."""

    unacked: int
    acked_bytes: int
    unsent_bytes: int

    @property
    def waits(self) -> bool:
        """Whether something has not arrived."""
        return self.unacked > 0 or self.unsent_bytes > 0


_UNKNOWN = _Sent(0, 0, 0)


class AckProgress:
    """The acknowledgements of one connection.

    Args:
        transport: whatever it is; where there is no TCP, or the kernel is another, only what waits in it counts.
    """

    __slots__ = ("_acked_bytes", "_transport", "_waiting_bytes")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._waiting_bytes = 0
        self._acked_bytes = 0

    @property
    def waits(self) -> bool:
        """Whether something was sent that has not arrived."""
        return self._transport.get_write_buffer_size() > 0 or self._ask().waits

    def progress(self) -> bool:
        """Return whether some of what waits has arrived since the last call; False if nothing waits any more."""
        before_bytes, self._waiting_bytes = self._waiting_bytes, self._transport.get_write_buffer_size()
        sent = self._ask()
        before_acked, self._acked_bytes = self._acked_bytes, sent.acked_bytes
        taken = 0 < self._waiting_bytes < before_bytes or self._acked_bytes > before_acked
        return taken and (self._waiting_bytes > 0 or sent.waits)

    def _ask(self) -> _Sent:
        connection = self._transport.get_extra_info("socket")
        if connection is None or _TCP_INFO is None:
            return _UNKNOWN
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _LAYOUT.size)
        except OSError:
            return _UNKNOWN
        return _Sent(*_LAYOUT.unpack(info)) if len(info) == _LAYOUT.size else _UNKNOWN


def encode_head(response: Response, *, keep_alive: bool, http_1_0: bool) -> bytes:
    """Return the head of a response.

    A response to HEAD has the Content-Length of the body it does not have. 204 has `Content-Length: 0`, which RFC 9110
    forbids but the live Table service sends and clients read.
    """
    status = response.status
    if response.opening and not response.headers and not response.reason and keep_alive and not http_1_0:
        head = f"{_STATUS_LINES[status]}\r\n{response.opening}Content-Length: {length_of(response)}\r\n\r\n"
        return head.encode("latin-1")
    lines = [_status_line(status, response.reason), *map(": ".join, response.fields())]
    if status != 304:
        lines.append(f"Content-Length: {length_of(response)}")
    if not keep_alive:
        lines.append("Connection: close")
    elif http_1_0:
        lines.append("Connection: keep-alive")
    run_on = "".join(lines)
    if "\n" in run_on or "\r" in run_on or "\0" in run_on:
        lines = [_one_line(line) for line in lines]
    head = "\r\n".join(lines)
    return head.encode("latin-1", "replace") + b"\r\n\r\n"


def body_of(response: Response, method: str) -> bytes:
    """Return the body that is sent of a response without content."""
    return b"" if method == "HEAD" or response.status in _BODILESS else response.body


def length_of(response: Response) -> int:
    """Return the Content-Length of a response."""
    if response.status in _BODILESS:
        return 0
    return len(response.body) if response.content is None else response.content.length


def _status_line(status: int, reason: str) -> str:
    """Return the first line of a head, with the first line of `reason`, if it has one, as the phrase."""
    line = re.split(r"[\r\n]", reason[:REASON_MAX], maxsplit=1)[0] if reason else ""
    if line:
        return f"HTTP/1.1 {status} {_NOT_IN_REASON.sub('?', line)}"
    return _STATUS_LINES.get(status) or f"HTTP/1.1 {status} "


def _one_line(line: str) -> str:
    return line.replace("\r", " ").replace("\n", " ").replace("\0", " ")


class WriteBatcher:
    """Keeps answers for a moment.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []
        self._send_by_s = 0.0

    def post(self, transport: asyncio.Transport, data: bytes) -> None:
        """Send these bytes soon."""
        now_s = self._clock()
        if not self._waiting:
            self._send_by_s = now_s + SECONDS_MAX
            asyncio.get_running_loop().call_soon(self.send)
        self._waiting.append((transport, data))
        if now_s >= self._send_by_s or len(self._waiting) >= ANSWERS_MAX:
            self.send()

    def send(self) -> None:
        """Send all that waits, now."""
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            if not transport.is_closing():
                try:
                    transport.write(data)
                except MemoryError:  # One client is disconnected; the others' answers go out.
                    transport.abort()


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

    async def flush(self) -> None:
        """Hand all that was written to the kernel.

        Raises:
            ClientDisconnectedError: the connection was lost.
        """
        self._write_batcher.send()
        if self.blocked:
            await self.writable()

    def reset(self) -> None:
        """Disconnect now, and have the kernel send a reset in place of an orderly end."""
        connection = self._transport.get_extra_info("socket")
        if connection is not None:
            with suppress(OSError):  # The client has gone.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
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
