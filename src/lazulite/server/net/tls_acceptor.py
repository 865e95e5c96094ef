"""Connections that are to speak TLS, from their arrival to the end of the handshake.

Invariants: a client that waits here counts as a connection. It has `tls_handshake_seconds` for its first byte and the
handshake together; nothing of TLS is made before that byte has come. Plain HTTP gets an error, in plain HTTP.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine

from lazulite.protocol.errors import ServiceError
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.net.certificate import Certificate

_HANDSHAKE = b"\x16"
"""The first byte of a TLS connection (RFC 8446 section 5.1): no request begins with it."""

_HANDSHAKE_SECONDS = 0.0015
"""What a handshake costs the event loop, more or less."""

_NEVER_SECONDS = 24 * 60 * 60.0


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
                if first == _HANDSHAKE:
                    state.scheduler.charge(_HANDSHAKE_SECONDS)
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
