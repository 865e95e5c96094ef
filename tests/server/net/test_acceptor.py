"""Accepting connections, and the state in which none can be accepted."""

import asyncio
import errno
import select
import socket
import struct

import pytest

from lazulite.server.net import acceptor
from lazulite.server.net.acceptor import Acceptor


class Full(socket.socket):
    """A listening socket that cannot accept until it is asked to."""

    full = True
    tries = 0

    def __init__(self) -> None:
        super().__init__()
        self.tried_thrice = asyncio.Event()

    def accept(self) -> tuple[socket.socket, object]:
        if self.full:
            self.tries += 1
            if self.tries == 3:
                self.tried_thrice.set()
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


@pytest.fixture
def listening() -> Full:
    listening = Full()
    listening.setblocking(False)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening


class Guests:
    """Come in, and are kept."""

    def __init__(self) -> None:
        self.inside: list[socket.socket] = []

    async def receive(self, client: socket.socket) -> None:
        self.inside.append(client)

    def leave(self) -> int:
        for client in self.inside:
            client.close()
        return len(self.inside)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_without_a_file_descriptor_left_the_loop_rests(listening: Full) -> None:
    doors = Acceptor(listening, lambda _: None)
    with socket.create_connection(listening.getsockname()):
        doors.start()
        await turns(100)
        tries = listening.tries
        await doors.stop(reject=True)
    assert tries == 1


async def test_who_waited_comes_in_once_there_is_one(listening: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "PAUSE_SECONDS", 0)
    came = asyncio.Event()

    async def receive(client: socket.socket) -> None:
        client.close()
        came.set()

    doors = Acceptor(listening, receive)
    with socket.create_connection(listening.getsockname()):
        doors.start()
        await listening.tried_thrice.wait()
        assert not came.is_set()
        listening.full = False
        await came.wait()
        await doors.stop(reject=False)
    assert doors.waiting_count == 0


async def test_whom_the_kernel_let_in_is_let_in_by_a_stop(listening: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKE_SECONDS", 0)
    listening.full = False
    guests, clients = Guests(), []
    doors = Acceptor(listening, guests.receive)
    for _ in range(3 * acceptor.ACCEPTED_PER_ITERATION // 2):
        clients.append(socket.create_connection(listening.getsockname()))
    await doors.stop(reject=False)
    for client in clients:
        client.close()
    assert guests.leave() == len(clients)


async def test_who_has_gone_already_does_not_come_in(listening: Full) -> None:
    listening.full = False
    guests = Guests()
    doors = Acceptor(listening, guests.receive)
    clients = [socket.create_connection(listening.getsockname()) for _ in range(3)]
    clients[1].sendall(b"GET")
    clients[2].sendall(b"GET")
    clients[2].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    clients[2].close()
    doors.start()
    await turns(20)
    assert len(guests.inside) == 2
    await doors.stop(reject=True)
    assert guests.leave()
    for client in clients:
        client.close()


async def test_while_a_stop_closes_the_kernel_lets_nobody_in(listening: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKE_SECONDS", 600)
    guests, (address, port) = Guests(), listening.getsockname()
    doors = Acceptor(listening, guests.receive)
    doors.start()
    listening.full = False
    stopping = asyncio.ensure_future(doors.stop(reject=False))
    await turns(1)
    with socket.socket() as late:
        late.setblocking(False)
        assert late.connect_ex((address, port)) == errno.EINPROGRESS
        await turns(100)
        assert select.select([], [late], [], 0)[1] == []  # On loopback it would be connected by now.
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    listening.close()
    assert guests.leave() == 0
