"""The connection pool: few connections, kept open, and never assumed to be alive.

Invariants: there are at most `connections_max` connections. Scans keep one for as long as their caller reads, and use
half of them at most. No caller waits longer for a connection than for a statement. A connection that may be in an
unknown state is not used again. If one is lost, all idle ones are closed, since a lost server took them along. While
the database cannot be reached, one caller in `_RECONNECT_SECONDS` tries, and the others fail at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

import asyncpg

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres.connection import Connection, PrimaryConnector
from lazulite.engine.postgres.errors import CHECK_FAILED, LOST, RETRYABLE, database_errors, line, worker_errors
from lazulite.engine.postgres.settings import PostgresSettings

Argument: TypeAlias = object
T = TypeVar("T")

_RECONNECT_SECONDS = 0.25
_TRIES_MAX = 10
"""Attempts of a statement that the database undoes in favour of others."""


class Pool:
    """The connections of one engine.

    Args:
        settings: the database, and the number of connections.
        prepare: prepares a new connection.
    """

    def __init__(self, settings: PostgresSettings, prepare: Callable[[Connection], Awaitable[None]]) -> None:
        self._settings = settings
        self._connector = PrimaryConnector(settings)
        self._prepare = prepare
        self._slots = asyncio.Semaphore(settings.connections_max)
        self._scan_slots = asyncio.Semaphore(max(1, settings.connections_max // 2))
        self._idle: list[Connection] = []
        self._unreachable_until = 0.0
        self._unreachable = ""
        self._closed = False

    async def fetch(self, statement: str, *arguments: Argument, reads: bool = False) -> list[asyncpg.Record]:
        """Run one statement, in a transaction of its own.

        Args:
            statement: in SQL.
            arguments: its parameters.
            reads: whether it changes nothing, and may be sent again after the connection was lost.

        Raises:
            EngineUnavailableError: the database cannot serve; the outcome of a write is unknown.
            EngineError: the database rejected the statement.
        """
        with database_errors():
            return await self._tried(lambda connection: connection.fetch(statement, *arguments), reads=reads)

    async def fetch_page(self, statement: str, *arguments: Argument) -> list[asyncpg.Record]:
        """Run one statement that reads a page of a scan; raises as `fetch` does."""
        async with self._slot(self._scan_slots):
            return await self.fetch(statement, *arguments, reads=True)

    async def run(self, script: str) -> None:
        """Run a script of statements without parameters as one transaction.

        Raises:
            CHECK_FAILED: a check of the script failed, and nothing was done.
            EngineUnavailableError: see `fetch`.
            EngineError: likewise.
        """
        with database_errors(CHECK_FAILED):
            await self._tried(lambda connection: connection.execute(script), reads=False)

    async def _tried(self, action: Callable[[Connection], Awaitable[T]], *, reads: bool) -> T:
        tries = 0
        while True:
            tries += 1
            try:
                async with self.connection() as connection:
                    return await action(connection)
            except RETRYABLE:
                if tries >= _TRIES_MAX:
                    raise
                await asyncio.sleep(0.001 * 2 ** min(tries, 6))
            except LOST:
                if not reads or tries > 1:
                    raise

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """Lend a connection for reads of one snapshot.

        Raises:
            EngineUnavailableError: the database cannot serve.
        """
        with database_errors():
            async with self._slot(self._scan_slots), self._in_transaction(snapshot=True) as connection:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Lend a connection for a transaction whose statements each see what others have committed by then.

        Raises:
            CHECK_FAILED: a check of a script failed, and nothing was done.
            RETRYABLE: the database undid all of it in favour of others.
            EngineUnavailableError: the database cannot serve; the outcome is unknown.
            EngineError: the database rejected it.
        """
        with database_errors((*CHECK_FAILED, *RETRYABLE)):
            async with self._in_transaction() as connection:
                yield connection

    @asynccontextmanager
    async def _in_transaction(self, *, snapshot: bool = False) -> AsyncIterator[Connection]:
        """Lend a connection in a transaction; a snapshot is read-only.

        A lost connection is not rolled back: that would wait for a silent host once more.
        """
        async with self.connection() as connection:
            transaction = connection.transaction(isolation="repeatable_read" if snapshot else None, readonly=snapshot)
            await transaction.start()
            try:
                yield connection
            except (*LOST, asyncio.CancelledError):
                raise
            except BaseException:
                await transaction.rollback()
                raise
            else:
                await transaction.commit()

    @asynccontextmanager
    async def _slot(self, slots: asyncio.Semaphore) -> AsyncIterator[None]:
        try:
            if slots.locked():
                async with asyncio.timeout(self._settings.statement_seconds):
                    await slots.acquire()
            else:
                await slots.acquire()
        except TimeoutError:
            raise EngineUnavailableError("all connections to the database are in use") from None
        try:
            yield
        finally:
            slots.release()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection. Raises the errors of the database and of the connection (see `errors`)."""
        if self._closed:
            raise EngineUnavailableError("the store is closing")
        async with self._slot(self._slots):
            connection = await self._open()
            try:
                with worker_errors():
                    yield connection
            except LOST as error:
                if isinstance(error, asyncpg.PostgresConnectionError) and not connection.is_closed():
                    self._keep(connection)  # A coordinator reports a lost worker; its own connection is alive.
                else:
                    connection.terminate()
                    self._terminate_idle()
                raise
            except (asyncpg.PostgresError, GeneratorExit):  # A GeneratorExit ends a scan between two statements.
                self._keep(connection)
                raise
            except BaseException:
                connection.terminate()
                raise
            else:
                self._keep(connection)

    async def _open(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        now = asyncio.get_running_loop().time()
        if now < self._unreachable_until:
            raise EngineUnavailableError(self._unreachable)
        self._unreachable_until = now + _RECONNECT_SECONDS if self._unreachable else 0.0
        try:
            connection = await self._connect()
        except (*LOST, asyncpg.PostgresError) as error:
            self._unreachable = f"the database cannot be reached: {line(error)}"
            self._unreachable_until = asyncio.get_running_loop().time() + _RECONNECT_SECONDS
            raise
        self._unreachable, self._unreachable_until = "", 0.0
        return connection

    async def _connect(self) -> Connection:
        connection = await self._connector.connect()
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                await self._prepare(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _keep(self, connection: Connection) -> None:
        if self._closed or connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)

    def _terminate_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.terminate()

    async def close(self) -> None:
        """Close all connections; the ones in use are closed when they are returned."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(self._close_gracefully, idle))

    async def _close_gracefully(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=self._settings.connect_seconds)
        except (*LOST, asyncpg.PostgresError):
            connection.terminate()
