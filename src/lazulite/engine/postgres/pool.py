"""The connection pool: few connections, kept open, and never assumed to be alive.

Invariants: there are at most `connections_max` connections. Scans keep one for as long as their caller reads, and use
half of them at most; so do transactions that wait for a lock; contents use a quarter. No caller waits longer for a
connection than for a statement. If one is lost, all idle ones are closed, since a lost server took them along.

On a Citus cluster, a node has a share of the connections and a time limit (see `citus.nodes`). Statements on one node
are sent to it if it was joined (see `citus.workers`), and all others to the coordinator. A session of the coordinator
that is given up during a statement is ended there, as far as that is possible.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias, TypeVar

import asyncpg

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres.citus.nodes import ALL, Nodes
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.citus.workers import Workers
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.errors import (
    CHECK_FAILED,
    LOST,
    RETRYABLE,
    SHARDS_CHANGED,
    database_errors,
    worker_errors,
)
from lazulite.engine.postgres.sessions import Sessions
from lazulite.engine.postgres.settings import PostgresSettings

Argument: TypeAlias = object
T = TypeVar("T")

_END = """
SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
WHERE pid = $1::int AND application_name = 'lazulite' AND state <> 'idle'
"""
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
        self._prepare = prepare
        self._sessions = Sessions(settings, prepare)
        self._slots = asyncio.Semaphore(settings.connections_max)
        self._scan_slots = asyncio.Semaphore(max(1, settings.connections_max // 2))
        self._lock_slots = asyncio.Semaphore(max(1, settings.connections_max // 2))
        self._bulk_slots = asyncio.Semaphore(max(1, settings.connections_max // 4))
        self._all_nodes_slots = asyncio.Semaphore(max(1, settings.connections_max // 4))
        self._closed = False
        self._shards: ShardMap | None = None
        self._nodes: Nodes | None = None
        self._workers: Workers | None = None
        self._endings: set[asyncio.Task[None]] = set()

    def join_cluster(self, shards: ShardMap) -> Workers:
        """Bound from now on what the nodes of a Citus cluster may hold; `shards` tells the node of a partition.

        Returns:
            The workers, of which this pool uses those that are joined, and which it closes.
        """
        self._shards, self._nodes = shards, Nodes(self._settings.connections_max, self._settings.node_seconds)
        self._workers = Workers(self._settings, self._prepare, shards)
        return self._workers

    def _node(self, partition: bytes | None, *, everywhere: bool = False) -> int | None:
        if self._shards is None:
            return None
        if everywhere:
            return ALL
        return None if partition is None else self._shards.node(partition)

    async def fetch(
        self,
        statement: str,
        *arguments: Argument,
        reads: bool = False,
        partition: bytes | None = None,
        everywhere: bool = False,
    ) -> list[asyncpg.Record]:
        """Run one statement, in a transaction of its own.

        Args:
            statement: in SQL.
            arguments: its parameters.
            reads: whether it changes nothing, and may be sent again after the connection was lost.
            partition: the partition that it reads or changes, by its index key; None: others, too.
            everywhere: whether it is short, and needs all nodes of a cluster.

        Raises:
            EngineUnavailableError: the database cannot serve; the outcome of a write is unknown.
            EngineError: the database rejected the statement.
        """
        with database_errors():
            node = self._node(partition, everywhere=everywhere)
            return await self._tried(lambda connection: connection.fetch(statement, *arguments), node, reads=reads)

    async def fetch_each(
        self, statement: str, arguments: Sequence[Sequence[Argument]], *, partition: bytes
    ) -> list[asyncpg.Record]:
        """Read for several sets of arguments, of partitions on one node, in one round trip; see `fetch`."""
        if len(arguments) == 1:  # asyncpg takes longer over many, however few they are.
            return await self.fetch(statement, *arguments[0], reads=True, partition=partition)
        with database_errors():
            node = self._node(partition)
            return await self._tried(lambda connection: connection.fetchmany(statement, arguments), node, reads=True)

    async def fetch_page(
        self, statement: str, *arguments: Argument, partition: bytes | None = None
    ) -> list[asyncpg.Record]:
        """Run one statement that reads a page of a scan; arguments and errors are those of `fetch`."""
        async with self._slot(self._scan_slots):
            everywhere = partition is None
            return await self.fetch(statement, *arguments, reads=True, partition=partition, everywhere=everywhere)

    @property
    def all_joined(self) -> bool:
        """Whether there is a cluster, and statements for each of its nodes go to that node."""
        return self._workers is not None and self._workers.all_joined

    async def fetch_from_nodes(
        self, asked: Mapping[int, tuple[str, Sequence[Argument]]]
    ) -> Sequence[Sequence[asyncpg.Record]]:
        """Run a statement on each node that reads from it alone, all at the same time.

        Args:
            asked: by node, the statement and its arguments.

        Raises:
            SHARDS_CHANGED: a node has other shards than its statement names.
            EngineUnavailableError, EngineError: see `fetch`.
        """
        async with self._slot(self._scan_slots), self._slot(self._all_nodes_slots):
            nodes = (self._fetch_from_node(node, *each) for node, each in asked.items())
            found = await asyncio.gather(*nodes, return_exceptions=True)
        answers: list[Sequence[asyncpg.Record]] = []
        for each in found:
            if isinstance(each, BaseException):
                raise each
            answers.append(each)
        return answers

    async def _fetch_from_node(
        self, node: int, statement: str, arguments: Sequence[Argument]
    ) -> Sequence[asyncpg.Record]:
        with database_errors(SHARDS_CHANGED):
            return await self._tried(lambda connection: connection.fetch(statement, *arguments), node, reads=True)

    async def fetch_bulk(
        self, statement: str, *arguments: Argument, reads: bool = False, node: int | None = None
    ) -> list[asyncpg.Record]:
        """Run one statement on contents of one node, or of any; other arguments and errors are those of `fetch`."""
        with database_errors():
            async with self._slot(self._bulk_slots):
                return await self._tried(lambda connection: connection.fetch(statement, *arguments), node, reads=reads)

    async def run(self, script: str, partition: bytes) -> None:
        """Run a script of statements without parameters as one transaction.

        Args:
            script: statements on one node.
            partition: one of the partitions that it changes, by its index key.

        Raises:
            CHECK_FAILED: a check of the script failed, and nothing was done.
            EngineUnavailableError: see `fetch`.
            EngineError: likewise.
        """
        with database_errors(CHECK_FAILED):
            node = self._node(partition)
            await self._tried(lambda connection: connection.execute(script), node, reads=False)

    async def _tried(self, action: Callable[[Connection], Awaitable[T]], node: int | None, *, reads: bool) -> T:
        tries = 0
        while True:
            tries += 1
            try:
                async with self.connection(node) as connection:
                    return await action(connection)
            except RETRYABLE:
                if tries >= _TRIES_MAX:
                    raise
                await asyncio.sleep(0.001 * 2 ** min(tries, 6))
            except LOST:
                if not reads or tries > 1:
                    raise

    @property
    def page_seconds(self) -> float | None:
        """Time limit of a statement that reads a page in a snapshot; None: that of each statement."""
        return None if self._nodes is None else self._settings.node_seconds

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
    async def transaction(self, partition: bytes | None = None) -> AsyncIterator[Connection]:
        """Lend a connection for a transaction whose statements each see what others have committed by then.

        Args:
            partition: the partition that it changes, by its index key; None: others, too.

        Raises:
            CHECK_FAILED: a check of a script failed, and nothing was done.
            RETRYABLE: the database undid all of it in favour of others.
            EngineUnavailableError: the database cannot serve; the outcome is unknown.
            EngineError: the database rejected it.
        """
        with database_errors((*CHECK_FAILED, *RETRYABLE)):
            async with self._slot(self._lock_slots), self._in_transaction(self._node(partition)) as connection:
                yield connection

    @asynccontextmanager
    async def _in_transaction(self, node: int | None = None, *, snapshot: bool = False) -> AsyncIterator[Connection]:
        """Lend a connection in a transaction; a snapshot is read-only.

        A lost connection is not rolled back: that would wait for a silent host once more.
        """
        async with self.connection(node) as connection:
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
    async def connection(self, node: int | None = None) -> AsyncIterator[Connection]:
        """Lend a connection. Raises the errors of the database and of the connection (see `errors`).

        Args:
            node: the node of a cluster that it is for; None: no certain one.
        """
        if self._closed:
            raise EngineUnavailableError("the store is closing")
        if node is None or self._nodes is None:
            async with self._slot(self._slots), self._lent(self._sessions, new=False) as connection:
                yield connection
            return
        sessions = (None if self._workers is None else self._workers.of(node)) or self._sessions
        async with self._nodes.turn(node) as new, self._slot(self._slots), self._lent(sessions, new=new) as connection:
            yield connection

    @asynccontextmanager
    async def _lent(self, sessions: Sessions, *, new: bool) -> AsyncIterator[Connection]:
        connection = await sessions.open(new=new)
        try:
            with worker_errors():
                yield connection
        except LOST as error:
            if isinstance(error, asyncpg.PostgresConnectionError) and not connection.is_closed():
                sessions.keep(connection)  # A coordinator reports a lost worker; its own connection is alive.
            else:
                self._give_up(sessions, connection)
                if sessions is not self._sessions or self._nodes is None or not isinstance(error, TimeoutError):
                    # A silent worker takes none of the coordinator's sessions along.
                    sessions.terminate_idle()
            raise
        except (asyncpg.PostgresError, GeneratorExit):  # A GeneratorExit ends a scan between two statements.
            sessions.keep(connection)
            raise
        except BaseException:
            self._give_up(sessions, connection)
            raise
        else:
            sessions.keep(connection)

    def _give_up(self, sessions: Sessions, connection: Connection) -> None:
        """Terminate a connection, and end its session on a coordinator, which may wait for a worker."""
        if self._nodes is not None and sessions is self._sessions and not self._closed and not connection.is_closed():
            task = asyncio.create_task(self._end(connection.get_server_pid()))
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)
        connection.terminate()

    async def _end(self, pid: int) -> None:
        with suppress(EngineUnavailableError, *LOST, asyncpg.PostgresError):
            async with self.connection() as connection:
                await connection.fetch(_END, pid, timeout=self._settings.node_seconds)

    async def close(self) -> None:
        """Close all connections; the ones in use are closed when they are returned."""
        self._closed = True
        for task in self._endings:
            task.cancel()
        await asyncio.gather(*self._endings, return_exceptions=True)
        await self._sessions.close()
        if self._workers is not None:
            await self._workers.close()
