"""Connections from their arrival to their first read: the accept loop of a listening socket, plain HTTP, and TLS.

Closing a listening socket resets the connections that the kernel has made on it and that are not accepted yet, perhaps
with a request under way on them. No order of accepting and closing avoids that: there is always a moment in between. So
the kernel is instructed first to make no more connections. A client that tries meanwhile gets no reply, and tries again
after a second as TCP does. Its connection is refused then, so the client knows that its request was not executed.

Invariants, of which the event loop's own server has none of the first three:

- While the process has no file descriptor or memory for one more client, the event loop stays idle. New connections
  wait in the kernel's backlog, for `PAUSE_SECONDS` at a time.
- After `stop`, no connection is accepted, and none is being set up.
- `stop` accepts every connection that the kernel has completed.
- Plain HTTP: while clients without credentials hold much memory, each new connection waits for a time slice of the
  scheduler before its first read. One that has sent bulk by then waits behind the others. A waiting connection stays
  with the kernel. So a flood of large heads costs time slices, instead of evicting itself from memory and coming again
  without one. A good client's first request, which is rarely large, goes past it. After `release` nothing waits.
- TLS: a client that waits here counts as a connection. It has `tls_handshake_seconds` for its first byte and the
  handshake together; nothing of TLS is made before that byte has come. Plain HTTP gets an error, in plain HTTP.
"""

import array
import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Coroutine
from functools import partial

from lazulite.protocol.errors import ServiceError
from lazulite.server.admission.accounts import BULK_BYTES
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.net.certificate import Certificate

ACCEPTED_PER_ITERATION = 64
PAUSE_SECONDS = 1.0
HANDSHAKE_SECONDS = 0.05
"""How long `stop` waits for connections that the kernels of both sides are about to make: a round trip."""

_SO_ATTACH_FILTER = 26
_FLAGS_OFFSET = 13
_SYN = 2
_FILTER = (
    (0x30, 0, 0, _FLAGS_OFFSET),  # Load the byte of the TCP header that has its flags.
    (0x45, 0, 1, _SYN),  # If it opens a connection, go on, else skip one.
    (0x06, 0, 0, 0),  # Drop all of it.
    (0x06, 0, 0, 0xFFFFFFFF),  # Take all of it.
)
"""A program for the kernel (`struct sock_filter`): code, jumps if true and if false, operand."""

Admission = asyncio.Future[None]

_TLS_HANDSHAKE = b"\x16"
"""The first byte of a TLS connection (RFC 8446 section 5.1): no request begins with it."""

_TLS_HANDSHAKE_SECONDS = 0.0015
"""What a handshake costs the event loop, more or less."""

_NEVER_SECONDS = 24 * 60 * 60.0


class Acceptor:
    """Accepts connections.

    Args:
        listening: not blocking; closed by `stop`.
        receive: takes over a client's non-blocking socket, and returns the setup of the connection, such as a TLS
            handshake. None: there is nothing to set up, or the client was rejected.
    """

    def __init__(
        self, listening: socket.socket, receive: Callable[[socket.socket], Coroutine[object, object, None] | None]
    ) -> None:
        self._listening = listening
        self._receive = receive
        self._waiting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    @property
    def waiting_count(self) -> int:
        """Connections that are being set up."""
        return len(self._waiting)

    def start(self) -> None:
        """Accept from now on, on the running loop."""
        self._pause = None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    async def stop(self, *, reject: bool) -> None:
        """Stop accepting; cancel connections that are being set up if `reject`, otherwise wait for them."""
        if self._listening.fileno() >= 0:
            drop_new_syns(self._listening)
            await asyncio.sleep(HANDSHAKE_SECONDS)
            if self._pause is not None:
                self._pause.cancel()
            asyncio.get_running_loop().remove_reader(self._listening)
            if not reject:
                with contextlib.suppress(OSError, MemoryError):
                    while self._accept_one():
                        pass
            self._listening.close()
        waiting = list(self._waiting)
        if reject:
            for task in waiting:
                task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_PER_ITERATION):
            try:
                if not self._accept_one():
                    return
            except (OSError, MemoryError):
                loop.remove_reader(self._listening)
                self._pause = loop.call_later(PAUSE_SECONDS, self.start)
                return

    def _accept_one(self) -> bool:
        """Accept one connection; return False if the backlog is empty."""
        try:
            client, _address = self._listening.accept()
        except BlockingIOError:
            return False
        except ConnectionAbortedError:
            return True
        client.setblocking(False)
        if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):  # Reset already; a look is cheap.
            client.close()
            return True
        received = self._receive(client)
        if received is not None:
            task = asyncio.get_running_loop().create_task(received)
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)
        return True


def drop_new_syns(listening: socket.socket) -> None:
    """Have no more connections made on a listening socket; nothing happens where the kernel cannot do that."""
    program = array.array("B", b"".join(struct.pack("HBBI", *each) for each in _FILTER))
    address, _ = program.buffer_info()
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_FILTER), address))


try:
    from fcntl import ioctl
    from termios import FIONREAD
except ImportError:  # Windows

    def unread_bytes(client: socket.socket) -> int:  # noqa: ARG001 - the interface has it
        """Return 0: the kernel does not tell."""
        return 0
else:

    def unread_bytes(client: socket.socket) -> int:
        """Return the bytes that have arrived and are not read yet."""
        count = array.array("i", [0])
        try:
            ioctl(client.fileno(), FIONREAD, count)
        except (OSError, ValueError):
            return 0
        return count[0]


class PlainAcceptor:
    """Makes connections of sockets.

    Args:
        state: of the server's connections.

    Attributes:
        waiting_count: connections that wait for a time slice.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._admissions: set[Admission] = set()

    @property
    def waiting_count(self) -> int:
        """Connections that wait for a time slice."""
        return len(self._admissions)

    async def receive(self, client: socket.socket) -> None:
        """Make a connection of a client's socket; see `Acceptor`."""
        try:
            if self._is_crowded:
                await self._wait(client)
        except asyncio.CancelledError:
            client.close()
            raise
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(lambda: Connection(self._state), client)

    def release(self) -> None:
        """End all waits: the server stops, and what has been accepted is served."""
        for admission in list(self._admissions):
            _take(admission)

    @property
    def _is_crowded(self) -> bool:
        state = self._state
        is_full = state.budgets.connection_count + len(self._admissions) >= state.limits.connections
        return state.unauthenticated.is_crowded and not is_full and not state.stopping

    async def _wait(self, client: socket.socket) -> None:
        scheduler = self._state.scheduler
        for enter in (scheduler.enter, scheduler.postpone):
            admission: Admission = asyncio.get_running_loop().create_future()
            self._admissions.add(admission)
            enter(partial(_take, admission))
            try:
                await admission
            finally:
                self._admissions.discard(admission)
            if not self._is_crowded or unread_bytes(client) < BULK_BYTES:
                break
        scheduler.charge(self._state.carried_over.take_over())


def _take(admission: Admission) -> bool:
    if admission.done():
        return False
    admission.set_result(None)
    return True


class TlsAcceptor:
    """Leads clients through the handshake.

    Args:
        certificate: each handshake uses the one that there is when it begins.
        handshakes: says how many clients are here.
    """

    def __init__(self, certificate: Certificate, state: ServerState, handshakes: Callable[[], int]) -> None:
        self._certificate = certificate
        self._state = state
        self._handshakes = handshakes

    def receive(self, client: socket.socket) -> Coroutine[object, object, None] | None:
        """Take a client in, or send one too many away: see `Acceptor`."""
        state = self._state
        if self._handshakes() + state.budgets.connection_count >= state.limits.connections:
            client.close()
            return None
        return self._receive(client)

    async def _receive(self, client: socket.socket) -> None:
        state, seconds = self._state, self._state.limits.tls_handshake_seconds
        handed_on = False
        try:
            async with asyncio.timeout(seconds):
                first = await _first_byte(client)
                handed_on = first != b""
                if first == _TLS_HANDSHAKE:
                    state.scheduler.charge(_TLS_HANDSHAKE_SECONDS)
                    await state.scheduler.time_slice()
                    await self._secure(client, seconds)
                elif first:
                    await self._send_away(client)
        except OSError:
            pass  # TLS that fails, a client that leaves, a time that is up: no client is left to be answered.
        finally:
            if not handed_on:
                client.close()

    async def _secure(self, client: socket.socket, seconds: float) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(self._state, "https"),
            client,
            ssl=self._certificate.context,
            ssl_handshake_timeout=seconds,
            # What comes after a connection's end has the connection's own deadlines, which look at progress.
            ssl_shutdown_timeout=_NEVER_SECONDS,
        )

    async def _send_away(self, client: socket.socket) -> None:
        rejection = ServiceError("AccountRequiresHttps")
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(self._state, "http", rejection), client
        )


async def _first_byte(client: socket.socket) -> bytes:
    """Return the first byte that a client sends, and leave it in the socket; b"" if it has left."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(client, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(client)
    return client.recv(1, socket.MSG_PEEK)
