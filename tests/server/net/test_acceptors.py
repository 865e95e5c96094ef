"""Accepting connections, the state in which none can be accepted, and one in which those without credentials wait."""

import asyncio
import errno
import select
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from lazulite.server.admission.budgets import HELD_BYTES_MIN
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.net import acceptors
from lazulite.server.net.acceptors import Acceptor, PlainAcceptor, unread_bytes
from tests.server.http.test_connection import GET
from tests.server.wire import Wire, settle


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
    monkeypatch.setattr(acceptors, "PAUSE_SECONDS", 0)
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
    monkeypatch.setattr(acceptors, "HANDSHAKE_SECONDS", 0)
    listening.full = False
    guests, clients = Guests(), []
    doors = Acceptor(listening, guests.receive)
    for _ in range(3 * acceptors.ACCEPTED_PER_ITERATION // 2):
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
    monkeypatch.setattr(acceptors, "HANDSHAKE_SECONDS", 600)
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


class SchedulerStub(FairScheduler):
    """Gives a turn when it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], bool]] = []
        self.postponed: list[Callable[[], bool]] = []

    def enter(self, go: Callable[[], bool], *, slices: int | None = None) -> None:
        self.waiting.append(go)

    def postpone(self, go: Callable[[], bool]) -> None:
        self.postponed.append(go)


class Stranger:
    """Holds memory, and lets go of nothing."""

    def evict(self) -> None: ...


class Clients:
    """Sockets of clients, and what becomes of them."""

    def __init__(self, wire: Wire) -> None:
        self.scheduler = wire.state.scheduler = SchedulerStub()
        self.acceptor = PlainAcceptor(wire.state)
        self.others: list[socket.socket] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def come(self, said: bytes) -> socket.socket:
        """Return the client's side of a connection by which it has said something."""
        ours, theirs = socket.socketpair()
        self.others.append(theirs)
        ours.setblocking(False)
        theirs.settimeout(5)
        theirs.sendall(said)
        self.tasks.append(asyncio.ensure_future(self.acceptor.receive(ours)))
        await settle()
        return theirs

    async def answer(self, client: socket.socket) -> bytes:
        """Return the beginning of what a client is answered."""
        return await asyncio.to_thread(client.recv, 12)


@pytest.fixture(name="clients")
def _clients(wire: Wire) -> Iterator[Clients]:
    clients = Clients(wire)
    yield clients
    for other in clients.others:
        other.close()


@pytest.fixture(name="crowded")
def _crowded(wire: Wire) -> None:
    budget, limits = wire.state.unauthenticated, wire.state.limits
    budget.update(Stranger(), limits.unauthenticated_bytes // 2)
    assert not budget.is_crowded
    budget.update(Stranger(), HELD_BYTES_MIN)
    assert budget.is_crowded


async def test_new_connections_are_read_at_once_while_there_is_room(clients: Clients) -> None:
    assert await clients.answer(await clients.come(GET)) == b"HTTP/1.1 200"
    assert not clients.scheduler.waiting


@pytest.mark.usefixtures("crowded")
async def test_new_connections_wait_for_a_turn_and_those_with_bulk_for_a_later_one(clients: Clients) -> None:
    bulk = await clients.come(GET + b"GET /" + b"a" * 20_000)
    small = await clients.come(GET)
    assert clients.acceptor.waiting_count == 2
    for go in clients.scheduler.waiting:
        assert go()
    assert await clients.answer(small) == b"HTTP/1.1 200"
    assert clients.acceptor.waiting_count == 1
    assert clients.scheduler.postponed[0]()
    assert await clients.answer(bulk) == b"HTTP/1.1 200"
    assert clients.acceptor.waiting_count == 0


@pytest.mark.usefixtures("crowded")
async def test_a_turn_takes_over_carried_over_cost(wire: Wire, clients: Clients) -> None:
    wire.state.carried_over.leave(0.0005)
    await clients.come(GET)
    clients.scheduler.waiting[0]()
    await settle()
    assert wire.state.carried_over.seconds == 0.0


@pytest.mark.usefixtures("crowded")
async def test_a_stop_ends_all_waits(wire: Wire, clients: Clients) -> None:
    bulk = await clients.come(GET + b"GET /" + b"a" * 20_000)
    wire.state.stopping = True
    clients.acceptor.release()
    assert await clients.answer(bulk) == b"HTTP/1.1 200"
    assert await clients.answer(await clients.come(GET)) == b"HTTP/1.1 200"
    assert not clients.scheduler.waiting[0](), "it is passed over"


@pytest.mark.usefixtures("crowded")
async def test_a_connection_over_the_limit_is_reported_so_at_once(wire: Wire, clients: Clients) -> None:
    wire.limit(connections=2)
    clients.acceptor = PlainAcceptor(wire.state)
    wire.state.unauthenticated.update(Stranger(), wire.state.limits.unauthenticated_bytes)
    wire.state.scheduler = clients.scheduler
    await clients.come(GET)
    assert len(clients.scheduler.waiting) == 1
    assert await clients.answer(await clients.come(GET)) == b"HTTP/1.1 200"
    assert await clients.answer(await clients.come(GET)) == b"HTTP/1.1 503"


@pytest.mark.usefixtures("crowded")
async def test_a_wait_that_is_cancelled_closes_the_socket(clients: Clients) -> None:
    client = await clients.come(GET)
    clients.tasks[0].cancel()
    with suppress(asyncio.CancelledError):
        await clients.tasks[0]
    with suppress(ConnectionResetError):
        assert await clients.answer(client) == b""
    assert clients.acceptor.waiting_count == 0


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
