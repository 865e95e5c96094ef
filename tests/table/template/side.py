"""The Table service behind a connection without a socket, which gets the bytes of requests: with templates or without.

Two sides that get the same bytes give the same bytes, ids and all: their clocks stand still, and they count requests.
"""

import asyncio
from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Self

from lazulite.engine.contract import Clock as EngineClock
from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import unix_seconds
from lazulite.protocol.message import Request, Service
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.http.templates import TemplateCache
from lazulite.server.limits import Limits
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.table.credentials import table_string_to_sign
from tests.fuzz.memory import MemoryEngine
from tests.server.wire import Clock, Transport, settle
from tests.table.plan.world import ENTITY, JSON, NAME, VERSION, World

FIELDS = {"Host": "h", "Accept": JSON, "x-ms-version": VERSION, "User-Agent": "sdk"}


def in_memory(clock: EngineClock) -> RocksEngine:
    """Open the engine whose commits templates join."""
    return RocksEngine.open(None, clock)


class Lines:
    """A log that reads no heads, as the request log is."""

    reads_heads = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    def record(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        said = f"{request.record} {response.status} {response.error_code} {exchange.bytes_in} {exchange.bytes_out}"
        self.lines.append(f"{request.id} {request.method} {request.client} {said}")

    def repeat(self, exchange: RepeatedExchange) -> None:
        """See `ExchangeLog`."""
        self.record(exchange.exchange)

    def failed(self, request_id: str, failure: BaseException) -> None:
        raise failure


class Scheduler(FairScheduler):
    """A scheduler for which work takes no time, so that no response depends on the machine's speed."""

    def __init__(self) -> None:
        clock = Clock()
        super().__init__(clock, clock, clock)

    async def _back_off(self, seconds: float) -> None:
        """Go on."""


class Side:
    """See above.

    Args:
        templates: whether there are any.
        wrap: what stands in front of the service.
        open_engine: opens the engine.

    Attributes:
        world: the service, and what a test changes of it.
    """

    def __init__(
        self,
        *,
        templates: bool = True,
        wrap: Callable[[Service], Service] = lambda service: service,
        open_engine: Callable[[EngineClock], Engine] = MemoryEngine,
    ) -> None:
        self.world, self.clock, self.log = World(open_engine), Clock(), Lines()
        self._count = 0
        limits = Limits()
        budgets = budgets_of(limits, self.clock)
        self.state = ServerState(
            wrap(self.world.service),
            limits,
            self._next_id,
            self.clock,
            (self.log,),
            scheduler=Scheduler(),
            budgets=budgets,
        )
        if not templates:
            self.state.templates = None
        self.transport = self.connect()

    @property
    def templates(self) -> TemplateCache:
        assert self.state.templates is not None
        return self.state.templates

    def _next_id(self) -> str:
        self._count += 1
        return f"id-{self._count}"

    def connect(self, scheme: str = "http") -> Transport:
        connection = Connection(self.state, scheme)
        transport = Transport(connection)
        connection.connection_made(transport)
        return transport

    async def prepare(self) -> Self:
        """Make the table `orders` with two entities."""
        await self.world.prepare()
        assert (await self.world.ask("PUT", "orders(PartitionKey='p',RowKey='second')", body={"A": 2})).status == 204
        return self

    async def settle(self) -> None:
        """Let the connection do all that it can do now, whatever is to be synced."""
        await settle()
        while self.is_syncing:  # noqa: ASYNC110 - a thread does it, which tells the connection
            await asyncio.sleep(0.0001)
        await settle()

    @property
    def is_syncing(self) -> bool:
        """Whether the service works on a request that is whole."""
        running = self.transport.protocol.running  # type: ignore[attr-defined]  # a Connection
        return running is not None and running.complete

    async def send(self, *pieces: bytes) -> bytes:
        """Feed a client's bytes, read by read; return what it is sent. After the end of a connection, make another."""
        transport = self.transport
        for piece in pieces:
            if not transport.closed:
                transport.protocol.data_received(piece)
                await self.settle()
        written, transport.written = transport.written, b""
        if transport.closed or transport.eof:
            transport.abort()
            await settle()
            self.transport = self.connect()
        return written

    # The bytes of requests.

    def head(
        self,
        method: str = "GET",
        path: str = ENTITY,
        query: str | None = None,
        body: bytes = b"",
        fields: Mapping[str, str] | None = None,
        *,
        without: str = "",
    ) -> bytes:
        """Return a request, by SAS or, with an empty query, signed by Shared Key."""
        query = self.world.sas() if query is None else query
        sent = {**FIELDS, **(fields or {})}
        if body:
            sent = {**sent, "Content-Type": JSON, "Content-Length": str(len(body))}
        if not query:
            sent |= self.signed(method, path, sent)
        sent.pop(without, None)
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        target = f"/{NAME}/{path}" + (f"?{query}" if query else "")
        return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body

    def signed(self, method: str, path: str, fields: Mapping[str, str]) -> dict[str, str]:
        """Return the fields that sign a request now."""
        date = fields.get("x-ms-date") or formatdate(unix_seconds(self.world.now), usegmt=True)
        headers = {name.lower(): value for name, value in {**fields, "x-ms-date": date}.items()}
        text = table_string_to_sign("SharedKey", Request(method, "", "", headers), NAME, f"/{NAME}/{path}", None)
        signature = self.world.account.signers[0].sign(text.encode()).decode()
        return {"x-ms-date": date, "Authorization": f"SharedKey {NAME}:{signature}"}

    async def warm(self, data: bytes) -> bytes:
        """Send a request until it has a template; return the response that the template gives."""
        for _ in range(3):
            await self.send(data)
        hits = self.templates.hits
        response = await self.send(data)
        assert self.templates.hits == hits + 1, self.templates.outcomes
        return response
