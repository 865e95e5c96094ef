"""Who comes in, and what happens when nobody can."""

import asyncio
import errno
import socket

import pytest

from lazulite.server import entrance
from lazulite.server.entrance import Entrance


class Full(socket.socket):
    """A listening socket that cannot accept until it is told."""

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


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_without_a_file_descriptor_left_the_loop_rests(listening: Full) -> None:
    doors = Entrance(listening, lambda _: None)
    with socket.create_connection(listening.getsockname()):
        doors.start()
        await turns(100)
        tries = listening.tries
        await doors.stop(send_away=True)
    assert tries == 1


async def test_who_waited_comes_in_once_there_is_one(listening: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance, "PAUSE_SECONDS", 0)
    came = asyncio.Event()

    async def receive(client: socket.socket) -> None:
        client.close()
        came.set()

    doors = Entrance(listening, receive)
    with socket.create_connection(listening.getsockname()):
        doors.start()
        await listening.tried_thrice.wait()
        assert not came.is_set()
        listening.full = False
        await came.wait()
        await doors.stop(send_away=False)
    assert doors.waiting_count == 0
