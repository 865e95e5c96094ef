"""How many bytes of a socket's input wait in the kernel, where the kernel tells."""

import array
import socket

try:
    from fcntl import ioctl
    from termios import FIONREAD
except ImportError:  # Windows

    def unread_bytes(client: socket.socket) -> int:  # noqa: ARG001 - the interface has it
        """Return 0: the kernel does not tell."""
        return 0
else:

    def unread_bytes(client: socket.socket) -> int:
        """Return the bytes that have arrived and are not read yet."""
        count = array.array("i", [0])
        try:
            ioctl(client.fileno(), FIONREAD, count)
        except (OSError, ValueError):
            return 0
        return count[0]
