"""The PostgreSQL engine: an `Engine` whose rows are in a database that speaks PostgreSQL's protocol.

A commit takes the first path whose condition it meets. If that path writes nothing, `partition_commit` reads the rows
and decides again.

    condition                               path                                             round trips
    one row, with a precondition            `conditional_writes`: one statement              1
    one row, whose precondition is known    `point_reads`, then `conditional_writes`         2
    once its value is read; without scripts
    several rows, with preconditions; the   `partition_commit`: write if the partition's     1
    kept row and the version are in memory  version is still that of the kept row
    several rows, with preconditions that   `partition_commit`: write if they are as         1
    allow absence; with scripts             expected
    any other commit                        `partition_commit`: read the partition's         2
                                            version and rows, write if the version is
                                            still that one
    the same, but another process           `partition_commit` with a lock: begin, lock      5 an attempt
    committed since the read; or many       the version row, read, write, commit
    statements were overtaken

`request_batcher` coalesces the requests of each path. With scripts (Citus, CockroachDB) it coalesces those of one node:
writes of one row (`conditional_writes`), and changes of partitions (`partition_io`).

Any number of processes share a database. A commit to a contended partition may be forwarded to another process of this
machine, which makes it by these paths (see `contention` and `remote.peers`). All correctness is the database's.
Invariants beside those of `sql_statements`:

1. The writes of a commit are one transaction: a statement, a script, or a transaction that locks the version row.
   With synchronous commit on, the database makes a transaction durable before it acknowledges the transaction or shows
   its rows. The engine checks that setting when it starts.
2. Commit timestamps grow in a partition over all processes, whatever their clocks say, because its version does.
3. Reads go to the primary; each is one statement's snapshot, or one transaction's.
4. If a connection is lost during a commit, the outcome is unknown, but the commit was made whole or not at all.
5. A dropped space rejects commits of this process at once, and of other processes within `drop_poll_seconds`. Its
   number is never reused.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from lazulite.engine.commit import Commit, Needs
from lazulite.engine.commit_needs import commit_prepared
from lazulite.engine.contract import (
    UNKNOWN,
    Clock,
    EngineUnavailableError,
    KeyRange,
    SpaceDroppedError,
    Unknown,
    Waiter,
)
from lazulite.engine.postgres import schema, server_settings, sql_scripts
from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.components import Components
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.contents.store import PostgresContents
from lazulite.engine.postgres.errors import database_errors
from lazulite.engine.postgres.keys import encode_text, index_key, long_key, text_index_key
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.scan import DatabaseSnapshot, PageSlice, scan
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.postgres.sql_scripts import PartitionAddress
from lazulite.engine.postgres.sql_statements import CHECK_WRITABLE, ONE_SESSION_EACH, PLANNED_ONCE, SESSION, TIME
from lazulite.engine.remote.codec import Codec
from lazulite.engine.remote.peers import DeclinedError, Peer, Peers

T = TypeVar("T")


class PostgresEngine:
    """An `Engine` on a database. The engine connects in `start` or at its first call.

    Args:
        settings: how to reach the database.
        clock: the time now, for commit timestamps.
        report: receives a message for each setting of the database that can lose acknowledged writes.
        codec: encodes commits for other processes; None: commits without a service's procedures only.
    """

    def __init__(
        self,
        settings: PostgresSettings,
        clock: Clock,
        *,
        report: Callable[[str], None] = lambda _: None,
        codec: Codec | None = None,
    ) -> None:
        self._settings = settings
        self._report = report
        self._timestamps = CommitTimestamps(clock)
        self._pool = Pool(settings, self._prepare)
        self._kind: schema.DatabaseKind | None = None
        self._prepared = ""
        """What each session prepares, once there are tables."""
        self._components: Components | None = None
        self._peers: Peers | None = None
        self._codec = codec or Codec()
        self._starting = asyncio.Lock()
        self._closing = False
        self._calls = 0
        self._idle = asyncio.Event()

    @property
    def name(self) -> str:
        """The store's name in messages."""
        return self._settings.name

    async def start(self) -> None:
        """Connect, and create or check the tables.

        Raises:
            StoreUnusableError: the tables are of another version, or the database would change keys and values.
            EngineUnavailableError: the database cannot be reached.
        """
        await self._ensure_started()

    async def _ensure_started(self) -> Components:
        async with self._starting:
            if self._components is None:
                components = await self._create_components()
                components.periodic.start()
                self._components = components
                if self._settings.peers is not None:
                    self._peers = await self._join(self._settings.peers)
        return self._components

    async def _create_components(self) -> Components:
        with database_errors():
            async with self._pool.connection() as connection:
                kind = self._kind = await schema.detect_database_kind(connection)
                await self._prepare(connection)
                if kind.citus:
                    for warning in await server_settings.check_literals(connection, self._settings.connect_seconds):
                        self._report(warning)
                await schema.open_schema(connection, kind)
                if kind.needs_scripts if self._settings.scripts is None else self._settings.scripts:
                    self._prepared = sql_scripts.PREPARE
                    await connection.execute(self._prepared)
                for warning in await server_settings.check_durability(connection) if kind.has_postgres_settings else ():
                    self._report(warning)
                if kind.citus:  # Last, as it may close the connection.
                    for warning in await server_settings.set_worker_plans(connection, self._settings.connect_seconds):
                        self._report(warning)
        components = Components(self._pool, self._timestamps, kind, self._settings)
        await components.drops.reload()
        if kind.citus:
            for warning in await components.join_cluster():
                self._report(warning)
        return components

    async def _join(self, directory: Path) -> Peers | None:
        peers = Peers(directory, self._codec, self.commit_here, self._report)
        try:
            await peers.start()
        except OSError as error:
            self._report(f"no commits for other processes: {directory}: {error.strerror or error}")
            return None
        return peers

    async def _prepare(self, connection: Connection) -> None:
        if self._kind is not None and self._kind.has_postgres_settings:
            # A little below this side's limit: a statement that the database ends costs no connection.
            milliseconds = int(self._settings.statement_seconds * 900)
            idle = 0 if self._settings.holds_snapshots else milliseconds
            session = SESSION.format(milliseconds=milliseconds, idle_milliseconds=idle)
            await connection.execute(f"{session}; {ONE_SESSION_EACH if self._kind.citus else PLANNED_ONCE}")
        if self._prepared:
            await connection.execute(self._prepared)

    # --- reading

    reads_now = commits_now = False

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """Return one row's value, see `Engine.get`."""
        self._check_open()
        components = self._components or await self._ensure_started()
        if space in components.drops.closed:
            return None
        return await components.reads.get(space, text_index_key(partition), text_index_key(row))

    def get_now(self, space: int, partition: str, row: str) -> Unknown:  # noqa: ARG002 - the contract's
        """Return `UNKNOWN`, see `Engine.get_now`."""
        return UNKNOWN

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> Unknown:  # noqa: ARG002 - the contract's
        """Return `UNKNOWN`, see `Engine.commit_now`."""
        return UNKNOWN

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[PageSlice, None]:
        """Yield the rows of some ranges, see `Engine.scan`."""
        self._check_open()
        components = self._components or await self._ensure_started()
        if space in components.drops.closed:
            return
        pages = scan(self._pool, components.pages, components.shard_pages, space, ranges, limit, keys_only=keys_only)
        try:
            async for page in pages:
                yield page
        finally:
            await pages.aclose()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[DatabaseSnapshot]:
        """See `Engine.snapshot`."""
        self._check_open()
        components = self._components or await self._ensure_started()
        of_partitions = components.health is not None
        async with self._pool.snapshot() as connection:
            yield DatabaseSnapshot(connection, self._pool.page_seconds, of_partitions=of_partitions)

    # --- writing

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        """Commit rows of one partition, see `Engine.commit`. The owner of a contended partition may do it."""
        with self._track_call():
            owner = self._owner(space, partition, commit)
            if owner is not None and commit.procedure is not None:
                seconds = self._settings.statement_seconds
                with suppress(DeclinedError):
                    return await owner.commit(space, partition, commit.procedure, commit.argument, seconds)
            return await self._commit(space, partition, commit)

    def _owner(self, space: int, partition: str, commit: Commit[T]) -> Peer | None:
        """Return the process to forward a commit to; None: it is made here."""
        components = self._components
        if self._peers is None or components is None or commit.procedure is None:
            return None
        contention = components.contention
        if space in components.drops.closed or not contention.is_contended((space, text_index_key(partition))):
            return None
        owner = self._peers.owner(space, partition)
        if owner is not None:
            contention.note_forwarded(len(commit.rows))
        return owner

    async def commit_here(self, space: int, partition: str, commit: Commit[T]) -> T:
        """Commit in this process, although another one may be the owner; see `commit`."""
        with self._track_call():
            return await self._commit(space, partition, commit)

    async def _commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        partition_key = encode_text(partition)
        address = PartitionAddress(space, index_key(partition_key), long_key(partition_key))
        components = self._components or await self._ensure_started()
        if space in components.drops.closed:
            raise SpaceDroppedError(f"space {space} was dropped")
        decision = await components.optimistic.commit(address, commit)
        if decision is not None:
            return decision.result
        result = await components.partitions.commit(address, commit)
        if isinstance(result, Needs):
            return await commit_prepared(self, space, partition, commit, result)
        return result

    async def drop(self, space: int) -> None:
        """Drop a space, see `Engine.drop`."""
        with self._track_call():
            components = self._components or await self._ensure_started()
            await components.drops.drop(space)

    async def raise_format(self) -> None:
        """See `StoredFormat.raise_format`."""
        with self._track_call():
            await self._ensure_started()
            with database_errors():
                async with self._pool.connection() as connection:
                    await schema.raise_format(connection)

    async def has_raised_format(self) -> bool:
        """See `StoredFormat.has_raised_format`."""
        with self._track_call():
            await self._ensure_started()
            with database_errors():
                async with self._pool.connection() as connection:
                    return await schema.has_raised_format(connection)

    async def check_writable(self) -> None:
        """Make one durable write, see `Engine.check_writable`."""
        with self._track_call():
            components = await self._ensure_started()
            self._timestamps.take()  # Raises if commits could have no timestamp.
            if components.health is not None:
                await components.health.check_writable()
            else:
                await self._pool.fetch(CHECK_WRITABLE)

    @property
    def is_cluster(self) -> bool:
        """Whether partitions are spread over nodes, so that a commit stays in one; known once it has started."""
        return self._components is not None and self._components.health is not None

    @property
    def failed_nodes(self) -> tuple[str, ...]:
        """The addresses of the nodes of a cluster that failed to write when the last `check_writable` passed."""
        health = None if self._components is None else self._components.health
        return () if health is None else health.failed_nodes

    def counters(self) -> Mapping[str, float]:
        """Return what the engine has counted, under the names of metrics."""
        return {} if self._components is None else self._components.contention.counters()

    async def unix_seconds(self) -> float:
        """Return the database's time, in seconds since 1970."""
        with self._track_call():
            await self._ensure_started()
            return float((await self._pool.fetch(TIME))[0][0])

    async def reclaim(self) -> bool:
        """Empty a dropped space that is due, as the background task does; return whether there was one."""
        return await (await self._ensure_started()).drops.reclaim()

    async def contents(self) -> PostgresContents:
        """Return the store of contents in the same database, to be closed before the engine.

        Raises:
            EngineError: as `start`.
        """
        return (await self._ensure_started()).contents

    # --- closing

    def _check_open(self) -> None:
        if self._closing:
            raise EngineUnavailableError("the store is closing")

    @contextmanager
    def _track_call(self) -> Iterator[None]:
        """Count a call that `close` waits for."""
        self._check_open()
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if self._closing and not self._calls:
                self._idle.set()

    async def close(self) -> None:
        """Close the store, see `Engine.close`. Commits are rejected from now on; those in flight are answered first."""
        self._closing = True
        if self._peers is not None:
            self._peers.leave()
        if self._calls:
            await self._idle.wait()
        if self._peers is not None:
            await self._peers.close()
        async with self._starting:  # Or components that start now would never be closed.
            components = self._components
        if components is not None:
            await components.close()
        await self._pool.close()
