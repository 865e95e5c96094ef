"""Connections without sockets: a transport, a clock and a service that the tests hold in their hands."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.http.timeouts import Sweeper
from lazulite.server.limits import Limits
from lazulite.server.observability.exchange import Exchange, RepeatedExchange


class Clock:
    """Monotonic seconds that pass when asked to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Transport(asyncio.Transport):
    """Keeps what is written; `stall` makes it keep bytes back as a client does that reads nothing."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": ("192.0.2.7", 4711)})
        self.protocol = protocol
        self.written = b""
        self.eof = self.closed = self.aborted = self.stalled = self.reading_paused = False
        self.waiting_bytes = 0
        self._high_bytes = 65536

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = high or 65536

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed, "written after the end"
        assert not self.eof, "written after the end"
        self.written += bytes(data)
        if self.stalled:
            self.waiting_bytes += len(data)
            if self.waiting_bytes > self._high_bytes:
                self.protocol.pause_writing()

    def take(self, count: int) -> None:
        """The client reads."""
        self.waiting_bytes -= count
        if self.waiting_bytes == 0:
            self.protocol.resume_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.eof = True

    def pause_reading(self) -> None:
        assert not self.reading_paused
        self.reading_paused = True

    def resume_reading(self) -> None:
        assert self.reading_paused
        self.reading_paused = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True
        if not self.waiting_bytes:
            self._lose()

    def abort(self) -> None:
        self.aborted = self.closed = True
        self._lose()

    def _lose(self) -> None:
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class Echo:
    """Answers with what it was asked; `before` runs first and may wait or raise."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.before: Callable[[Request], Awaitable[None]] | None = None
        self.body: bytes | None = None
        self.status = 200
        self.responds: Callable[[Request], Awaitable[Response]] | None = None
        """Responds instead, once the credentials are good."""
        self.now: Callable[[Request], Response | None] | None = None
        """Returns the response if it is to be ready."""
        self.authenticates: Callable[[Request], Awaitable[bool]] | None = None
        """Says whether the credentials are good; without it, all are."""

    def respond(self, request: Request) -> EventualResponse:
        ready = None if self.now is None else self.now(request)
        return self.echo(request) if ready is None else ready

    async def echo(self, request: Request) -> Response:
        request.authenticated = self.authenticates is None or await self.authenticates(request)
        if not request.authenticated:
            return Response(403)
        try:
            if self.responds is not None:
                return await self.responds(request)
            await request.receive_body()
        except ServiceError as error:
            return self.reject(request, error)
        self.requests.append(request)
        if self.before is not None:
            await self.before(request)
        said = f"{request.method} {request.path}?{request.query} ".encode() + request.body
        return Response(self.status, [("X-Id", request.id)], said if self.body is None else self.body)

    def reject(self, request: Request, error: ServiceError) -> Response:
        return Response(error.status, [("X-Id", request.id)], error.code.encode(), error.code)


class Record:
    """A log in memory."""

    reads_heads = True

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.failures: list[tuple[str, BaseException]] = []

    def record(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)

    def repeat(self, exchange: RepeatedExchange) -> None:
        """See `ExchangeLog`."""
        self.record(exchange.exchange)

    def failed(self, request_id: str, failure: BaseException) -> None:
        self.failures.append((request_id, failure))


class Wire:
    """A server without a socket; `connect` gives it one more client."""

    def __init__(self, limits: Limits) -> None:
        self.clock, self.service, self.log = Clock(), Echo(), Record()
        self._count = 0
        self._begin(limits)

    def _begin(self, limits: Limits) -> None:
        self.state = ServerState(
            self.service, limits, self._next_id, self.clock, (self.log,), budgets=budgets_of(limits, self.clock)
        )
        self.sweeper = Sweeper(self.state.connections, self.clock)
        self.transport = self.connect()

    def _next_id(self) -> str:
        self._count += 1
        return f"id-{self._count}"

    def connect(self, scheme: str = "http") -> Transport:
        connection = Connection(self.state, scheme)
        transport = Transport(connection)
        connection.connection_made(transport)
        return transport

    def limit(self, **bounds: float) -> None:
        """Change bounds, and begin again."""
        self._begin(replace(self.state.limits, **bounds))  # type: ignore[arg-type]  # names and types vary

    async def send(self, data: bytes, transport: Transport | None = None) -> bytes:
        """Feed a client's bytes; return all that the client has been sent so far."""
        transport = transport or self.transport
        transport.protocol.data_received(data)
        await settle()
        return transport.written

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.now_s += seconds
        self.sweeper.sweep()
        await settle()


async def settle() -> None:
    for _ in range(40):
        await asyncio.sleep(0)
