"""New connections while clients without credentials hold much memory."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from lazulite.server.admission.evicting_budget import HELD_BYTES_MIN
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.net.plain_acceptor import PlainAcceptor
from tests.server.http.test_connection import GET
from tests.server.wire import Wire, settle


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
