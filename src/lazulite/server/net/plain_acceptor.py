"""Connections that are to speak plain HTTP, from their arrival to their first read.

Invariants: while clients without credentials hold much memory, each new connection waits for a time slice of the
scheduler before its first read. One that has sent bulk by then waits behind the others. A waiting connection stays with
the kernel. So a flood of large heads costs time slices, instead of evicting itself from memory and coming again without
one. A good client's first request, which is rarely large, goes past it. After `release` nothing waits.
"""

import asyncio
import contextlib
import socket
from functools import partial

from lazulite.server.admission.costs import BULK_BYTES
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.net.unread import unread_bytes

Admission = asyncio.Future[None]


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
