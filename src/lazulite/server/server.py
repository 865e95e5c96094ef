"""The listening sockets, plain and TLS, and the connections that came through them.

Invariants: once `stop` has returned there is no connection, no running request and no timer left; a request that began
before `stop` is answered unless that takes longer than the drain.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lazulite.protocol.message import Service
from lazulite.server.admission.scheduler import Lane
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import Shared
from lazulite.server.http.timeouts import Sweeper
from lazulite.server.limits import Limits
from lazulite.server.net.acceptor import Entrance
from lazulite.server.net.certificate import Certificate
from lazulite.server.net.tls_acceptor import Doorman
from lazulite.server.observability.exchange import ExchangeLog

_BACKLOG = 4096


class BindError(Exception):
    """The address cannot be listened on; the text is one line for the operator."""


class Secure(NamedTuple):
    """A port for HTTPS, 0 for any free one, and what its clients are shown."""

    port: int
    certificate: Certificate


class Ports(NamedTuple):
    """The ports that are listened on."""

    http: int | None
    https: int | None


class Sockets(NamedTuple):
    """Sockets that listen already."""

    http: socket.socket | None
    https: socket.socket | None

    @property
    def ports(self) -> Ports:
        """Where they listen."""
        return Ports(*(None if each is None else _port_of(each) for each in self))

    def descriptors(self) -> list[int]:
        """Return the descriptors of those that there are."""
        return [each.fileno() for each in self if each is not None]

    def close(self) -> None:
        """Close them in this process."""
        for each in self:
            if each is not None:
                each.close()


class Server:
    """Serves one service on one address. Usable by hand in tests, or through `lifecycle.serve`.

    Args:
        host: a name or an IPv4 or IPv6 address; of a name with several addresses, one is listened on, IPv4 first.
        port: for plain HTTP; 0 for any free one, None for none.
        secure: for HTTPS.
        new_request_id: never the same twice.
        logs: are told of every exchange.
        clock: monotonic seconds.
        lane: what is slow goes by it; None for one of its own.
        on_leave: told that the server will stop soon.
    """

    def __init__(  # noqa: PLR0913 - most have a default
        self,
        service: Service,
        *,
        host: str,
        port: int | None,
        secure: Secure | None = None,
        new_request_id: Callable[[], str],
        limits: Limits | None = None,
        logs: Sequence[ExchangeLog] = (),
        clock: Callable[[], float] = time.monotonic,
        lane: Lane | None = None,
        on_leave: Callable[[], None] = lambda: None,
    ) -> None:
        self._host = host
        self._asked_port = port
        self._secure = secure
        self._on_leave = on_leave
        self._gone = asyncio.Event()
        self._hurried = asyncio.Event()
        self._shared = Shared(
            service,
            limits or Limits(),
            new_request_id,
            clock,
            tuple(logs),
            lane=lane or Lane(),
            on_last=self._gone.set,
        )
        self._sweeper = Sweeper(self._shared.connections, clock)
        self._plain: Entrance | None = None
        self._secured: Entrance | None = None
        self._ports = Ports(None, None)

    @property
    def limits(self) -> Limits:
        """Its bounds."""
        return self._shared.limits

    @property
    def ports(self) -> Ports:
        """What is listened on since `start`."""
        return self._ports

    @property
    def port(self) -> int:
        """The port for plain HTTP."""
        assert self._ports.http is not None, "not started, or not for plain HTTP"
        return self._ports.http

    @property
    def connection_count(self) -> int:
        """Connections now, with TLS handshakes and those whose client left while its request still runs."""
        return len(self._shared.connections) + self._handshakes()

    @property
    def buffered_bytes(self) -> int:
        """Of request bodies, held now."""
        return self._shared.buffered_bytes

    async def start(self, sockets: Sockets | None = None) -> None:
        """Listen, or use these sockets.

        Raises:
            BindError: the address is in use, unknown or not allowed.
        """
        http, https = sockets or (None, None)
        if self._asked_port is not None:
            http = http or await _listen(self._host, self._asked_port)
            self._ports = Ports(_port_of(http), None)
            self._plain = Entrance(http, self._receive)
            self._plain.start()
        if self._secure is not None:
            https = https or await _listen(self._host, self._secure.port)
            self._ports = Ports(self._ports.http, _port_of(https))
            self._secured = Entrance(https, Doorman(self._secure.certificate, self._shared, self._handshakes).receive)
            self._secured.start()
        self._sweeper.start()

    def leave(self) -> None:
        """Go on, but make clients go elsewhere: `stop` comes soon."""
        self._shared.leaving = True
        self._on_leave()

    async def stop(self) -> None:
        """Stop accepting, answer what is in flight, close the rest; bounded by the drain's seconds and `hurry`."""
        shared = self._shared
        shared.leaving = True
        if self._plain is not None:
            await self._plain.stop(send_away=False)
        if self._secured is not None:
            await self._secured.stop(send_away=True)
        await asyncio.sleep(0)  # What has arrived by now is read before its connection is judged idle.
        shared.draining = True
        self._gone.clear()
        for connection in list(shared.connections):
            connection.drain()
        try:
            if shared.connections:
                await self._drained()
        finally:  # Also when `stop` itself is cancelled: nothing may keep the event loop from closing.
            tasks = [connection.abandon() for connection in list(shared.connections)]
            self._sweeper.stop()
            self._shared.lane.close()
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        if shared.connections:
            await self._gone.wait()

    def hurry(self) -> None:
        """End a running or later `stop` without waiting for requests in flight."""
        self._hurried.set()

    def _handshakes(self) -> int:
        return 0 if self._secured is None else self._secured.waiting_count

    async def _receive(self, client: socket.socket) -> None:
        """Take a client in who speaks plain HTTP."""
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(lambda: Connection(self._shared), client)

    async def _drained(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._gone, self._hurried)]
        await asyncio.wait(waits, timeout=self._shared.limits.drain_seconds, return_when=asyncio.FIRST_COMPLETED)
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
    # One that shares with nobody goes first: a port that another service has, even a sharing one, is taken.
    first = await _listen(host, port)
    port = _port_of(first)
    first.close()
    together: list[socket.socket] = []
    try:
        for _ in range(count):
            together.append(await _listen(host, port, shared=True))
    except BindError:
        for each in together:
            each.close()
        raise
    return together


async def _listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
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
    # `localhost` is two addresses; the older one is what connection strings are written with.
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        if shared:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.setblocking(False)
        listening.bind(address)
        # Bound is not enough: with SO_REUSEADDR, two sockets can be bound to a port, but only one can listen.
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise BindError(f"cannot listen on {host} port {port}: {(error.strerror or str(error)).lower()}") from error
    return listening
