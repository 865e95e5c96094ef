"""Connections that are to speak TLS, from their arrival to the end of the handshake.

Invariants: whoever waits here counts as a connection; a client has `tls_handshake_seconds` for its first byte and the
handshake together; nothing of TLS is made before that byte has come. Plain HTTP is told so, in plain HTTP.
"""

import asyncio
import socket

from lazulite.protocol.errors import ServiceError
from lazulite.server.certificate import Certificate
from lazulite.server.http1 import Connection
from lazulite.server.shared import Shared

_HANDSHAKE = b"\x16"
"""The first byte of a TLS connection (RFC 8446 section 5.1): no request begins with it."""

_HANDSHAKE_SECONDS = 0.0015
"""What a handshake costs the event loop, more or less."""

_ACCEPTED_PER_TURN = 64
_NEVER_SECONDS = 24 * 60 * 60.0
_PAUSE_SECONDS = 1.0
"""How long nobody is let in when the process has no file descriptor or memory for one more."""


class Doorman:
    """Lets clients in through a listening socket.

    Args:
        listening: not blocking; closed by `stop`.
        certificate: each handshake uses the one that there is when it begins.
    """

    def __init__(self, listening: socket.socket, certificate: Certificate, shared: Shared) -> None:
        self._listening = listening
        self._certificate = certificate
        self._shared = shared
        self._waiting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    @property
    def waiting_count(self) -> int:
        """Handshakes now."""
        return len(self._waiting)

    def start(self) -> None:
        """Let clients in from now on, on the running loop."""
        self._pause = None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    async def stop(self) -> None:
        """Let nobody in any more, and send away who has not been through the handshake."""
        if self._listening.fileno() < 0:
            return
        if self._pause is not None:
            self._pause.cancel()
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        waiting = list(self._waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _accept(self) -> None:
        loop, shared = asyncio.get_running_loop(), self._shared
        for _ in range(_ACCEPTED_PER_TURN):
            try:
                client, _address = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                loop.remove_reader(self._listening)
                self._pause = loop.call_later(_PAUSE_SECONDS, self.start)
                return
            if len(self._waiting) + len(shared.connections) >= shared.limits.connections:
                client.close()
                continue
            client.setblocking(False)
            task = loop.create_task(self._receive(client))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _receive(self, client: socket.socket) -> None:
        shared, seconds = self._shared, self._shared.limits.tls_handshake_seconds
        handed_on = False
        try:
            async with asyncio.timeout(seconds):
                first = await _first_byte(client)
                handed_on = first != b""
                if first == _HANDSHAKE:
                    shared.lane.owe(_HANDSHAKE_SECONDS)
                    await shared.lane.turn()
                    await self._secure(client, seconds)
                elif first:
                    await self._send_away(client)
        except OSError:
            pass  # TLS that fails, a client that leaves, a time that is up: there is nobody to tell.
        finally:
            if not handed_on:
                client.close()

    async def _secure(self, client: socket.socket, seconds: float) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(self._shared, "https"),
            client,
            ssl=self._certificate.context,
            ssl_handshake_timeout=seconds,
            # What comes after a connection's end has the connection's own deadlines, which look at progress.
            ssl_shutdown_timeout=_NEVER_SECONDS,
        )

    async def _send_away(self, client: socket.socket) -> None:
        refusal = ServiceError("AccountRequiresHttps")
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(self._shared, "http", refusal), client
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
