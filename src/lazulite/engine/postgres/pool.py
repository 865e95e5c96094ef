"""Connections to the database: few, kept, and never trusted to be alive.

Invariants: there are never more than `connections_max`; scans, which keep theirs for as long as somebody reads on, have
half of them at most; nobody waits longer for one than for a statement. A connection that raised anything which may
leave it in an unknown state is not used again; when one is found lost all idle ones go, since a server that is gone
took them along. While the database cannot be reached, most callers are told so at once: one in `_PATIENCE_SECONDS`
tries.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

import asyncpg

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres.connection import Connection, Way
from lazulite.engine.postgres.errors import AGAIN, CHECK_FAILED, LOST, database_errors, line, worker_errors
from lazulite.engine.postgres.settings import PostgresSettings

Argument: TypeAlias = object
T = TypeVar("T")

_PATIENCE_SECONDS = 0.25
_TRIES_MAX = 10
"""How often a statement is sent that the database undid for the sake of others."""


class Pool:
    """The connections of one engine.

    Args:
        settings: where to, and how many.
        prepare: makes a new connection ready.
    """

    def __init__(self, settings: PostgresSettings, prepare: Callable[[Connection], Awaitable[None]]) -> None:
        self._settings = settings
        self._way = Way(settings)
        self._prepare = prepare
        self._room = asyncio.Semaphore(settings.connections_max)
        self._scans = asyncio.Semaphore(max(1, settings.connections_max // 2))
        self._idle: list[Connection] = []
        self._away_until = 0.0
        self._away = ""
        self._closed = False

    async def fetch(self, statement: str, *arguments: Argument, reads: bool = False) -> list[asyncpg.Record]:
        """Run one statement, in a transaction of its own.

        Args:
            statement: in SQL.
            arguments: its parameters.
            reads: whether it changes nothing, and so may be sent again after the connection was lost.

        Raises:
            EngineUnavailableError: the database cannot serve; if the statement writes, nobody knows whether it did.
            EngineError: the database refused it.
        """
        with database_errors():
            return await self._tried(lambda connection: connection.fetch(statement, *arguments), reads=reads)

    async def fetch_page(self, statement: str, *arguments: Argument) -> list[asyncpg.Record]:
        """Run one statement that reads rows for a scan. Raises as `fetch` does."""
        async with self._place(self._scans):
            return await self.fetch(statement, *arguments, reads=True)

    async def run(self, script: str) -> None:
        """Run a script of statements without parameters as one transaction.

        Raises:
            CHECK_FAILED: a check of the script did, and nothing was done.
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
            except AGAIN:
                if tries >= _TRIES_MAX:
                    raise
                await asyncio.sleep(0.001 * 2 ** min(tries, 6))
            except LOST:
                if not reads or tries > 1:
                    raise

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """Surround reads that see one snapshot.

        Raises:
            EngineUnavailableError: the database cannot serve.
        """
        with database_errors():
            async with self._place(self._scans), self._in_transaction(snapshot=True) as connection:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Surround statements of one transaction, each of which sees what others have committed by then.

        Raises:
            CHECK_FAILED: a check of a script did, and nothing was done.
            AGAIN: the database undid all of it for the sake of others.
            EngineUnavailableError: the database cannot serve; nobody knows whether it did.
            EngineError: it refused.
        """
        with database_errors((*CHECK_FAILED, *AGAIN)):
            async with self._in_transaction() as connection:
                yield connection

    @asynccontextmanager
    async def _in_transaction(self, *, snapshot: bool = False) -> AsyncIterator[Connection]:
        """Lend a connection in a transaction; one of a snapshot only reads.

        What was lost is not told to roll back: a silent host would be waited for once more.
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
    async def _place(self, room: asyncio.Semaphore) -> AsyncIterator[None]:
        try:
            if room.locked():
                async with asyncio.timeout(self._settings.statement_seconds):
                    await room.acquire()
            else:
                await room.acquire()
        except TimeoutError:
            raise EngineUnavailableError("all connections to the database are in use") from None
        try:
            yield
        finally:
            room.release()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection. Raises what the database and the way to it raise (see `errors`)."""
        if self._closed:
            raise EngineUnavailableError("the store is closing")
        async with self._place(self._room):
            connection = await self._open()
            try:
                with worker_errors():
                    yield connection
            except LOST as error:
                if isinstance(error, asyncpg.PostgresConnectionError) and not connection.is_closed():
                    self._keep(connection)  # A coordinator tells that it cannot reach a worker; itself it is there.
                else:
                    connection.terminate()
                    self._forget_idle()
                raise
            except (asyncpg.PostgresError, GeneratorExit):  # Or a scan was left between two statements.
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
        if now < self._away_until:
            raise EngineUnavailableError(self._away)
        self._away_until = now + _PATIENCE_SECONDS if self._away else 0.0
        try:
            connection = await self._connect()
        except (*LOST, asyncpg.PostgresError) as error:
            self._away = f"the database cannot be reached: {line(error)}"
            self._away_until = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
            raise
        self._away, self._away_until = "", 0.0
        return connection

    async def _connect(self) -> Connection:
        connection = await self._way.connect()
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

    def _forget_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.terminate()

    async def close(self) -> None:
        """Let go of all connections, those in use when they are given back."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(self._say_goodbye, idle))

    async def _say_goodbye(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=self._settings.connect_seconds)
        except (*LOST, asyncpg.PostgresError):
            connection.terminate()
