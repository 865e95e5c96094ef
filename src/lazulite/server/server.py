"""The listening sockets, plain and TLS, and their connections.

Invariants: once `stop` has returned, no connection, running request or timer is left. A request that began before
`stop` gets its response unless that takes longer than the drain.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lazulite.protocol.message import Service
from lazulite.server.admission.budgets import Budgets, budgets_of
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.allocator import return_freed_memory
from lazulite.server.http.server_state import ServerState
from lazulite.server.http.timeouts import Sweeper
from lazulite.server.limits import Limits
from lazulite.server.net.acceptors import Acceptor, PlainAcceptor, TlsAcceptor
from lazulite.server.net.certificate import Certificate
from lazulite.server.observability.exchange import ExchangeLog

_BACKLOG = 4096
_UNSENT_BYTES_MAX = 128 * 1024
"""The unsent bytes of a connection in the kernel. Without this bound, a client that does not read fills 4 MiB there."""


class BindError(Exception):
    """The address cannot be listened on; the text is one line for the operator."""


class SecurePort(NamedTuple):
    """A port for HTTPS, 0 for any free one, and its certificate."""

    port: int
    certificate: Certificate


class Ports(NamedTuple):
    """The listening ports; None where there is none."""

    http: int | None
    https: int | None


class Sockets(NamedTuple):
    """Sockets that listen already."""

    http: socket.socket | None
    https: socket.socket | None

    @property
    def ports(self) -> Ports:
        """The ports of the sockets."""
        return Ports(*(None if each is None else _port_of(each) for each in self))

    def descriptors(self) -> list[int]:
        """Return the file descriptors of the sockets."""
        return [each.fileno() for each in self if each is not None]

    def close(self) -> None:
        """Close the sockets in this process."""
        for each in self:
            if each is not None:
                each.close()


class Server:
    """Serves one service on one address. Usable by hand in tests, or through `lifecycle.serve`.

    Args:
        host: a name or an IPv4 or IPv6 address. Of a name with several addresses, one is used, IPv4 first.
        port: for plain HTTP; 0 for any free one, None for none.
        secure: for HTTPS.
        new_request_id: returns a unique id.
        logs: receive every exchange; the list may change while the server runs.
        clock: returns monotonic seconds.
        scheduler: schedules slow work; None for a scheduler of this server's own.
        budgets: bound memory and connections of the process; None for budgets of this server's own.
        on_leave: called when the server is about to stop.
    """

    def __init__(  # noqa: PLR0913 - most have a default
        self,
        service: Service,
        *,
        host: str,
        port: int | None,
        secure: SecurePort | None = None,
        new_request_id: Callable[[], str],
        limits: Limits | None = None,
        logs: Sequence[ExchangeLog] = (),
        clock: Callable[[], float] = time.monotonic,
        scheduler: FairScheduler | None = None,
        budgets: Budgets | None = None,
        on_leave: Callable[[], None] = lambda: None,
    ) -> None:
        self._host = host
        self._asked_port = port
        self._secure = secure
        self._on_leave = on_leave
        self._gone = asyncio.Event()
        self._forced = asyncio.Event()
        limits = limits or Limits()
        self._state = ServerState(
            service,
            limits,
            new_request_id,
            clock,
            logs,
            scheduler=scheduler or FairScheduler(),
            on_last=self._gone.set,
            budgets=budgets or budgets_of(limits, clock),
        )
        self._sweeper = Sweeper(self._state.connections, clock, self._return_memory)
        self._plain_acceptor = PlainAcceptor(self._state)
        self._plain: Acceptor | None = None
        self._secured: Acceptor | None = None
        self._ports = Ports(None, None)

    @property
    def limits(self) -> Limits:
        """The limits of this server."""
        return self._state.limits

    @property
    def ports(self) -> Ports:
        """The listening ports, since `start`."""
        return self._ports

    @property
    def port(self) -> int:
        """The port for plain HTTP."""
        assert self._ports.http is not None, "not started, or not for plain HTTP"
        return self._ports.http

    @property
    def connection_count(self) -> int:
        """Connections now, including handshakes, and requests that still run after their client left."""
        return len(self._state.connections) + self._handshakes() + self._plain_acceptor.waiting_count

    @property
    def buffered_bytes(self) -> int:
        """The bytes of request bodies that the process holds now."""
        return self._state.budgets.buffered_bytes

    @property
    def template_outcomes(self) -> Mapping[str, int]:
        """How many requests templates have answered, or not, by the outcome."""
        templates = self._state.all_templates
        return {} if templates is None else templates.outcomes

    def allow_templates(self, *, allowed: bool) -> None:
        """Answer requests by templates, or not: rules of faults look at each request."""
        self._state.allow_templates(allowed=allowed)

    async def start(self, sockets: Sockets | None = None) -> None:
        """Listen, or use these sockets.

        Raises:
            BindError: the address is in use, unknown or not allowed.
        """
        http, https = sockets or (None, None)
        if self._asked_port is not None:
            http = http or await _listen(self._host, self._asked_port)
            self._ports = Ports(_port_of(http), None)
            self._plain = Acceptor(http, self._plain_acceptor.receive)
            self._plain.start()
        if self._secure is not None:
            https = https or await _listen(self._host, self._secure.port)
            self._ports = Ports(self._ports.http, _port_of(https))
            self._secured = Acceptor(
                https, TlsAcceptor(self._secure.certificate, self._state, self._handshakes).receive
            )
            self._secured.start()
        self._sweeper.start()

    def leave(self) -> None:
        """Serve on, but ask clients to reconnect elsewhere: `stop` follows."""
        self._state.stopping = True
        self._on_leave()

    async def stop(self) -> None:
        """Stop accepting, respond to requests in flight, close the rest; the drain and `force_stop` bound it."""
        state = self._state
        state.stopping = True
        self._plain_acceptor.release()
        if self._plain is not None:
            await self._plain.stop(reject=False)
        if self._secured is not None:
            await self._secured.stop(reject=True)
        await asyncio.sleep(0)  # Received bytes are read before their connection is judged idle.
        state.draining = True
        self._gone.clear()
        for connection in list(state.connections):
            connection.begin_drain()
        try:
            if state.connections:
                await self._drained()
        finally:  # Also when `stop` itself is cancelled: the event loop must be able to close.
            tasks = [connection.abandon() for connection in list(state.connections)]
            self._sweeper.stop()
            self._state.scheduler.close()
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        if state.connections:
            await self._gone.wait()

    def _return_memory(self) -> None:
        """Return the memory of a crowd of clients to the kernel, once it has gone or was evicted."""
        budgets = self._state.budgets
        if budgets.peak.has_fallen(budgets.held_bytes, budgets.evicted_bytes):
            asyncio.get_running_loop().run_in_executor(None, return_freed_memory)

    def force_stop(self) -> None:
        """End a running or later `stop` without waiting for requests in flight."""
        self._forced.set()

    def _handshakes(self) -> int:
        return 0 if self._secured is None else self._secured.waiting_count

    async def _drained(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._gone, self._forced)]
        await asyncio.wait(waits, timeout=self._state.limits.drain_seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


def _port_of(listening: socket.socket) -> int:
    port: int = listening.getsockname()[1]
    return port


async def listen_together(host: str, port: int | None, count: int) -> Sequence[socket.socket | None]:
    """Return listening sockets that share a port, among which the kernel spreads new connections; None for no port.

    Raises:
        BindError: with the reason in one line.
    """
    if port is None:
        return [None] * count
    # A socket without SO_REUSEPORT is bound first: it fails if another service has the port, even a shared one.
    first = await _listen(host, port)
    port = _port_of(first)
    first.close()
    together: list[socket.socket] = []
    try:
        for _ in range(count):
            together.append(await _listen(host, port, state=True))
    except BindError:
        for each in together:
            each.close()
        raise
    return together


async def _listen(host: str, port: int, *, state: bool = False) -> socket.socket:
    """Return a listening socket, which may share the port with others of this kind.

    Raises:
        BindError: with the reason in one line.
    """
    if not 0 <= port <= 65535:
        raise BindError(f"port {port} is not between 0 and 65535")
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise BindError(f"cannot resolve the address {host}: {error.strerror or error}") from error
    # `localhost` is two addresses; connection strings have the IPv4 one.
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        if state:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.setblocking(False)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES_MAX)
        listening.bind(address)
        # Bound is not enough: with SO_REUSEADDR, two sockets can be bound to a port, but only one can listen.
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise BindError(f"cannot listen on {host} port {port}: {(error.strerror or str(error)).lower()}") from error
    return listening
