"""Whether what was sent arrives: what a slow reader takes of it, as far as that can be seen from here.

A transport tells what waits in it. Over TLS that is not all: encrypted bytes wait in another transport beneath, which
does not tell. Linux tells of a TCP connection how many bytes its peer has acknowledged, which is enough for both.
"""

import asyncio
import socket
import struct
from typing import NamedTuple

_TCP_INFO = getattr(socket, "TCP_INFO", None)
_LAYOUT = struct.Struct("@24xI92xQ16xI")
"""Of the kernel's `struct tcp_info` (linux/tcp.h): tcpi_unacked, tcpi_bytes_acked, tcpi_notsent_bytes."""


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
    """Of one connection.

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
