"""Input that waits in the kernel."""

import socket

from lazulite.server.net.unread import unread_bytes


def test_input_is_counted_until_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert unread_bytes(ours) == 0
        theirs.sendall(b"x" * 1000)
        assert unread_bytes(ours) == 1000
        ours.recv(1000)
        assert unread_bytes(ours) == 0


def test_a_closed_socket_has_no_input() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    assert unread_bytes(ours) == 0
