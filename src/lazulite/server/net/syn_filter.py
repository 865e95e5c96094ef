"""How a listening socket stops listening without losing a client.

Closing it resets the connections that the kernel has made on it and that are not accepted yet, perhaps with a request
under way on them. No order of accepting and closing avoids that: there is always a moment in between. So the kernel is
instructed first to make no more connections. A client that tries meanwhile gets no reply, and tries again after a
second as TCP does. Its connection is refused then, so the client knows that its request was not executed.
"""

import contextlib
import socket
import struct
from array import array

_SO_ATTACH_FILTER = 26
_FLAGS_OFFSET = 13
_SYN = 2
_FILTER = (
    (0x30, 0, 0, _FLAGS_OFFSET),  # Load the byte of the TCP header that has its flags.
    (0x45, 0, 1, _SYN),  # If it opens a connection, go on, else skip one.
    (0x06, 0, 0, 0),  # Drop all of it.
    (0x06, 0, 0, 0xFFFFFFFF),  # Take all of it.
)
"""A program for the kernel (`struct sock_filter`): code, jumps if true and if false, operand."""


def drop_new_syns(listening: socket.socket) -> None:
    """Have no more connections made on a listening socket; nothing happens where the kernel cannot do that."""
    program = array("B", b"".join(struct.pack("HBBI", *each) for each in _FILTER))
    address, _ = program.buffer_info()
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_FILTER), address))
