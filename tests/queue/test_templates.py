"""Messages with templates and without: the same bytes, and the same lines in the log.

Two servers with the same clock and the same ids get the bytes of the same requests. One of them finds plans by the
bytes of heads. Beside that: what waits for a commit learns that it failed, and consumers do not share messages.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from random import Random
from urllib.parse import quote

import pytest

from lazulite.auth.canonicalize import string_to_sign
from lazulite.engine.contract import Clock as EngineClock
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND, unix_seconds
from lazulite.protocol.message import Request
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.limits import Limits
from tests.server.wire import Clock, Transport, settle
from tests.table.template.side import Lines, Scheduler

from .test_plans import BODIES, FOUND, HEAD, NAME, VERSIONS, Answer, Both, World, run

PATIENCE_SECONDS = 60


class StepRandom(Random):
    """Gives the same number all through a step, so that an operation that is tried twice has the same id."""

    step = 0

    def getrandbits(self, k: int, /) -> int:
        return Random(self.step).getrandbits(k)


class Wire(World):
    """A server without sockets.

    Attributes:
        signs: whether requests are signed; if not, they have a token.

    Args:
        templates: whether it finds plans by the bytes of heads.
        before_sync: called before each sync of the store.
    """

    def __init__(self, *, templates: bool = True, before_sync: Callable[[], None] = lambda: None) -> None:
        def open_engine(clock: EngineClock) -> RocksEngine:
            return RocksEngine.open(None, clock, failpoints={"before_sync": before_sync})

        self.random, self.signs = StepRandom(), False
        super().__init__(open_engine, self.random)
        self.log, self.clock = Lines(), Clock()
        limits = Limits()
        budgets = budgets_of(limits, self.clock)
        self.state = ServerState(
            self.service, limits, lambda: "id", self.clock, (self.log,), scheduler=Scheduler(), budgets=budgets
        )
        if not templates:
            self.state.templates = None
        self.transport = self.connect()

    @property
    def hits(self) -> int:
        """How many requests templates have answered."""
        return 0 if self.state.templates is None else self.state.templates.hits

    def connect(self) -> Transport:
        connection = Connection(self.state)
        transport = Transport(connection)
        connection.connection_made(transport)
        return transport

    def request(self, method: str, path: str, query: str = "", body: bytes = b"", version: str = VERSIONS[0]) -> bytes:
        fields = HEAD | {"x-ms-version": version}
        if body or method in ("POST", "PUT"):
            fields["content-length"] = str(len(body))
        if self.signs:
            fields["x-ms-date"] = formatdate(unix_seconds(self.now), usegmt=True)
            request = Request(method, f"/{NAME}/{path}", query, fields)
            text = string_to_sign("SharedKey", request, NAME, request.path, None)
            fields["authorization"] = f"SharedKey {NAME}:{self.signer.sign(text.encode()).decode()}"
        lines = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
        whole = query if self.signs else "&".join(filter(None, (query, self.sas)))
        target = f"{path}?{whole}" if whole else path
        return f"{method} /{NAME}/{target} HTTP/1.1\r\n{lines}\r\n".encode() + body

    async def exchange(self, transport: Transport, data: bytes) -> bytes:
        """Send bytes; return the response once it has come."""
        transport.protocol.data_received(data)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not transport.written:
                await settle()
        await settle()
        written, transport.written = transport.written, b""
        return written

    async def ask(
        self, method: str, path: str, query: str = "", body: bytes = b"", version: str = VERSIONS[0], *, steady: bool
    ) -> Answer:
        """Send the bytes of a request; return those of its response. After the end of a connection, make another."""
        self.random.step += 1
        hits = self.hits
        written = await self.exchange(self.transport, self.request(method, path, query, body, version))
        self.planned[method] += self.hits - hits
        if self.transport.closed or self.transport.eof:
            self.transport.abort()
            await settle()
            self.transport = self.connect()
        head, _, content = written.partition(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").split("\r\n")
        fields = tuple((name, text) for name, _, text in (each.partition(": ") for each in rest))
        return Answer(int(line.split(" ")[1]), fields, content, self.log.lines[-1])


async def put(world: Wire, count: int) -> None:
    for _ in range(count):
        world.now += 1
        assert (await world.ask("POST", "jobs/messages", "", BODIES[0], steady=True)).status == 201


@pytest.fixture(name="both")
async def _both() -> AsyncIterator[Both]:
    both = Both(Wire(), Wire(templates=False))
    assert (await both.ask("PUT", "jobs")).status == 201
    yield both
    [templates] = [world.state.templates for world in both.worlds if isinstance(world, Wire) and world.state.templates]
    assert templates.outcomes["failed"] == 0
    for world in both.worlds:
        await world.engine.close()


@pytest.fixture(name="world")
async def _world() -> AsyncIterator[Wire]:
    world = Wire()
    assert (await world.ask("PUT", "jobs", steady=True)).status == 201
    yield world
    await world.engine.close()


async def test_templates_change_no_byte(both: Both) -> None:
    await run(both, 3)
    assert min(both.planned[method] for method in ("POST", "GET", "DELETE")) > 5, both.planned


async def test_each_operation_has_one_template(both: Both) -> None:
    for _ in range(12):
        for world in both.worlds:
            world.now += 1
        await both.ask("POST", "jobs/messages", "", BODIES[0])
    for _ in range(12):
        [(message, receipt)] = FOUND.findall((await both.ask("GET", "jobs/messages")).body)
        query = f"popreceipt={quote(receipt, safe='')}"
        assert (await both.ask("DELETE", f"jobs/messages/{message.decode()}", query)).status == 204
        assert (await both.ask("DELETE", f"jobs/messages/{message.decode()}", query)).status == 404
    assert both.planned == {"POST": 10, "GET": 10, "DELETE": 10, "PUT": 0}


async def test_a_peek_of_known_messages_has_a_template(both: Both) -> None:
    peek = "peekonly=true&numofmessages=2"
    for number in range(6):
        for world in both.worlds:
            world.now += 1
        await both.ask("POST", "jobs/messages", f"messagettl={60 + number}", BODIES[number % 2])
    for world in both.worlds:
        world.now += 1
    for _ in range(6):
        assert (await both.ask("GET", "jobs/messages", peek)).body.count(b"<MessageId>") == 2
    assert both.planned["GET"] == 4
    seen = {(await both.ask("GET", "jobs/messages", peek)).body}
    [(message, receipt)] = FOUND.findall((await both.ask("GET", "jobs/messages")).body)
    seen |= {(await both.ask("GET", "jobs/messages", peek)).body for _ in range(3)}
    assert len(seen) == 2, "a message that was got is peeked no more"
    await both.ask("DELETE", f"jobs/messages/{message.decode()}", f"popreceipt={quote(receipt, safe='')}")
    for passed, count in ((0, 2), (62, 2), (1, 2), (1, 1), (10, 0)):
        for world in both.worlds:
            world.now += passed * TICKS_PER_SECOND
        bodies = [(await both.ask("GET", "jobs/messages", peek)).body for _ in range(2)]
        assert [body.count(b"<MessageId>") for body in bodies] == [count, count], passed
    await both.ask("POST", "jobs/messages", "", BODIES[0])
    await both.ask("POST", "jobs/messages", "", BODIES[1])
    for world in both.worlds:
        world.now += 1
    hits = both.planned["GET"]
    assert len({(await both.ask("GET", "jobs/messages", peek)).body for _ in range(3)}) == 1
    assert both.planned["GET"] > hits
    await both.ask("DELETE", "jobs/messages")
    assert b"<MessageId>" not in (await both.ask("GET", "jobs/messages", peek)).body


async def test_signed_requests_have_templates(both: Both) -> None:
    for world in both.worlds:
        assert isinstance(world, Wire)
        world.signs = True
    for number in range(12):
        for world in both.worlds:
            world.now += TICKS_PER_SECOND * number
        assert (await both.ask("POST", "jobs/messages", "", BODIES[number % 2])).status == 201
        [(message, receipt)] = FOUND.findall((await both.ask("GET", "jobs/messages", "numofmessages=2")).body)
        await both.ask("POST", "jobs/messages", "", BODIES[number % 2])
        query = f"popreceipt={quote(receipt, safe='')}"
        assert (await both.ask("DELETE", f"jobs/messages/{message.decode()}", query)).status == 204
        await both.ask("DELETE", "jobs/messages")
        await both.ask("DELETE", f"jobs/messages/{message.decode()}", query.replace("%3D", "%3D%0A"))
    assert both.planned["POST"] > 10
    assert both.planned["DELETE"] == 10


async def test_a_message_that_is_invisible_or_has_expired_is_not_handed_out(both: Both) -> None:
    for _ in range(2):
        for seconds in (1, 1, 1, 9):
            for world in both.worlds:
                world.now += 1
            await both.ask("POST", "jobs/messages", f"messagettl={seconds}", BODIES[0])
        for _ in range(2):
            assert (await both.ask("GET", "jobs/messages", "visibilitytimeout=1")).body
        for world in both.worlds:
            world.now += 2 * TICKS_PER_SECOND
        bodies = [(await both.ask("GET", "jobs/messages", "visibilitytimeout=1")).body for _ in range(3)]
        assert [len(FOUND.findall(body)) for body in bodies] == [1, 0, 0]
        for world in both.worlds:
            world.now += 9 * TICKS_PER_SECOND
    assert both.planned["GET"] > 0


async def test_consumers_are_handed_different_messages(world: Wire) -> None:
    await put(world, 30)
    others = [world.connect() for _ in range(8)]
    get = world.request("GET", "jobs/messages")
    for transport in (world.transport, world.transport, *others):
        await world.exchange(transport, get)
    hits = world.hits
    bodies = await asyncio.gather(*(world.exchange(transport, get) for transport in others))
    assert world.hits == hits + len(others)
    assert len({FOUND.findall(body)[0] for body in bodies}) == len(others)


async def test_a_store_that_fails_is_told_to_all_that_wait() -> None:
    broken = False

    def fail() -> None:
        if broken:
            raise OSError("the disk is gone")

    world = Wire(before_sync=fail)
    assert (await world.ask("PUT", "jobs", steady=True)).status == 201
    await put(world, 12)
    others = [world.connect() for _ in range(3)]
    get = world.request("GET", "jobs/messages")
    found = [FOUND.findall(await world.exchange(world.transport, get))[0] for _ in range(4)]
    deletes = [
        world.request("DELETE", f"jobs/messages/{message.decode()}", f"popreceipt={quote(receipt, safe='')}")
        for message, receipt in found
    ]
    for data in (get, world.request("POST", "jobs/messages", "", BODIES[0]), *deletes[:3]):
        for transport in others if data is not deletes[0] else others[:1]:
            await world.exchange(transport, data)
    hits, broken = world.hits, True
    sent = [get, world.request("POST", "jobs/messages", "", BODIES[0]), deletes[3]]
    responses = await asyncio.gather(*map(world.exchange, others, sent))
    assert world.hits == hits + 3
    assert [int(response[9:12]) for response in responses] == [503] * 3
    assert all(re.search(rb"x-ms-error-code: ServerBusy", response) for response in responses)
    broken = False
    await world.engine.close()
