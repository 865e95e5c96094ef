"""The sessions with one server: kept open, and never assumed to be alive.

Invariants: a session that may be in an unknown state is not used again. While the server cannot be reached, few callers
try (see `connection`), and the others fail at once.
"""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg

from lazulite.engine.postgres.connection import Connection, ConnectionOpener
from lazulite.engine.postgres.errors import LOST
from lazulite.engine.postgres.settings import PostgresSettings


class Sessions:
    """The sessions with one server, of which the idle ones are kept.

    Args:
        settings: how to reach the server.
        prepare: prepares a new connection.
    """

    def __init__(self, settings: PostgresSettings, prepare: Callable[[Connection], Awaitable[None]]) -> None:
        self._opener = ConnectionOpener(settings, prepare)
        self._seconds = settings.connect_seconds
        self._idle: list[Connection] = []
        self._closed = False

    async def open(self, *, new: bool = False) -> Connection:
        """Return an idle connection, unless a new one is wanted; or a new one.

        Raises:
            EngineUnavailableError, OSError, asyncpg.PostgresError, asyncpg.InternalClientError, StoreUnusableError: see
                `ConnectionOpener`.
        """
        while self._idle and not new:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await self._opener.open()

    def keep(self, connection: Connection) -> None:
        """Keep a connection for a later caller, if it can be used again."""
        if self._closed or connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)

    def terminate_idle(self) -> None:
        """Close all idle connections without a word to the server."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.terminate()

    async def close(self) -> None:
        """Close the idle connections; the ones in use are closed when they are returned."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(self._close_gracefully, idle))

    async def _close_gracefully(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=self._seconds)
        except (*LOST, asyncpg.PostgresError):
            connection.terminate()
