"""The scale-out engine: an `Engine` whose rows are in a database that speaks PostgreSQL's protocol.

Any number of processes may be on one database; they know of each other only through it. What must hold, beside what
`sql_statements` says of heads:

1. A commit's writes are one transaction (a statement, a script, or with the head locked before), which the database
   makes durable before it answers and before it shows it to anybody, if it is set to synchronous commit. It is looked
   at when the engine starts whether it is.
2. Stamps grow in a partition over all processes, whatever their clocks say, because its head does.
3. Reads are of the primary, and each is one statement's snapshot, or one transaction's.
4. Where a connection is lost under a commit nobody knows what became of it. It was done whole or not at all.
5. A dropped space is closed to commits of this process at once, and to those of others within `drop_poll_seconds`; its
   number is never used again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager

from lazulite.engine.contract import Clock, Decide, EngineUnavailableError, KeyRange, SpaceDroppedError
from lazulite.engine.postgres import durability_check, literals, schema
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.drops import Drops
from lazulite.engine.postgres.errors import database_errors
from lazulite.engine.postgres.keys import encode_text, form, text_form, whole_if_long
from lazulite.engine.postgres.optimistic_commit import OneRow
from lazulite.engine.postgres.partition_commit import Partitions
from lazulite.engine.postgres.partition_io import ByScripts, ByStatements
from lazulite.engine.postgres.point_reads import Reads
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.scan import PageSlice, scan
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.postgres.single_writes import SingleWrites
from lazulite.engine.postgres.sql_scripts import Place
from lazulite.engine.postgres.sql_statements import CHECK_WRITABLE, PLANNED_ONCE, SESSION, TIME
from lazulite.engine.postgres.stamps import Stamps
from lazulite.engine.precondition import Foreseeing

_COMMIT_RATIO = 1.25
"""How much longer than a statement it may take to settle a commit: who waits for a silent database is told in time."""


class _Parts:
    """What there is once the kind of database is known."""

    def __init__(self, pool: Pool, stamps: Stamps, kind: schema.Kind, settings: PostgresSettings) -> None:
        scripts = kind.scripts if settings.scripts is None else settings.scripts
        self.reads = Reads(pool, gather=not kind.citus)
        self.single = SingleWrites(pool, stamps, scripts=scripts)
        changes = ByScripts(pool) if scripts else ByStatements(pool)
        self.partitions = Partitions(changes, stamps, self.single, settings.statement_seconds * _COMMIT_RATIO)
        self.one_row = OneRow(self.reads, self.single, self.partitions, scripts=scripts)
        self.drops = Drops(pool, settings.drop_poll_seconds)

    async def close(self) -> None:
        """Return when nothing is on its way, even what nobody waits for any more."""
        await self.drops.close()
        for each in (self.partitions, self.single, self.reads):
            await each.finished()


class PostgresEngine:
    """See above. Connects when it is first used, or started.

    Args:
        settings: of the database.
        clock: the time now, for stamps.
        report: told, in a line for people, what of the database's settings loses acknowledged writes.
    """

    def __init__(
        self, settings: PostgresSettings, clock: Clock, *, report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._settings = settings
        self._report = report
        self._stamps = Stamps(clock)
        self._pool = Pool(settings, self._prepare)
        self._kind: schema.Kind | None = None
        self._parts: _Parts | None = None
        self._starting = asyncio.Lock()
        self._closing = False
        self._calls = 0
        self._answered = asyncio.Event()

    @property
    def name(self) -> str:
        """Where the store lives, for messages."""
        return self._settings.name

    async def start(self) -> None:
        """Connect, and make or check the tables.

        Raises:
            StoreUnusableError: the tables are of another version, or the database would change keys and values.
            EngineUnavailableError: the database cannot be reached.
        """
        await self._started()

    async def _started(self) -> _Parts:
        async with self._starting:
            if self._parts is None:
                parts = await self._start()
                parts.drops.start()
                self._parts = parts
        return self._parts

    async def _start(self) -> _Parts:
        with database_errors():
            async with self._pool.connection() as connection:
                kind = self._kind = await schema.kind_of(connection)
                await self._prepare(connection)
                if kind.citus:
                    for warning in await literals.check_workers(connection, self._settings.connect_seconds):
                        self._report(warning)
                await schema.open_schema(connection, kind)
                for warning in await durability_check.warnings(connection) if kind.settings else ():
                    self._report(warning)
        parts = _Parts(self._pool, self._stamps, kind, self._settings)
        await parts.drops.look()
        return parts

    async def _prepare(self, connection: Connection) -> None:
        if self._kind is not None and self._kind.settings:
            # A little before this side gives up, as a statement that the database ends costs no connection.
            session = SESSION.format(milliseconds=int(self._settings.statement_seconds * 900))
            await connection.execute(session if self._kind.citus else f"{session}; {PLANNED_ONCE}")

    # --- reading

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """See `Engine.get`."""
        self._check_open()
        parts = self._parts or await self._started()
        if space in parts.drops.closed:
            return None
        return await parts.reads.get(space, text_form(partition), text_form(row))

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None
    ) -> AsyncGenerator[PageSlice, None]:
        """See `Engine.scan`."""
        self._check_open()
        parts = self._parts or await self._started()
        if space in parts.drops.closed:
            return
        pages = scan(self._pool, space, ranges, limit)
        try:
            async for part in pages:
                yield part
        finally:
            await pages.aclose()

    # --- writing

    async def commit(self, space: int, partition: str, rows: Sequence[str], decide: Decide) -> int:
        """See `Engine.commit`."""
        partition_key = encode_text(partition)
        place = Place(space, form(partition_key), whole_if_long(partition_key))
        with self._call():
            parts = self._parts or await self._started()
            if space in parts.drops.closed:
                raise SpaceDroppedError(f"space {space} was dropped")
            if isinstance(decide, Foreseeing) and len(rows) == 1:
                stamp = await parts.one_row.commit(place, rows[0], decide)
                if stamp is not None:
                    return stamp
            return await parts.partitions.commit(place, rows, decide)

    async def drop(self, space: int) -> None:
        """See `Engine.drop`."""
        with self._call():
            parts = self._parts or await self._started()
            await parts.drops.drop(space)

    async def check_writable(self) -> None:
        """See `Engine.check_writable`."""
        with self._call():
            await self._started()
            self._stamps.take()  # Raises if commits could have none.
            await self._pool.fetch(CHECK_WRITABLE)

    async def unix_seconds(self) -> float:
        """Return the database's time."""
        with self._call():
            await self._started()
            return float((await self._pool.fetch(TIME))[0][0])

    async def reclaim(self) -> bool:
        """Empty a dropped space that is due, as is done in the background; say whether there was one."""
        return await (await self._started()).drops.reclaim()

    # --- closing

    def _check_open(self) -> None:
        if self._closing:
            raise EngineUnavailableError("the store is closing")

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Surround a call that closing waits for."""
        self._check_open()
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if self._closing and not self._calls:
                self._answered.set()

    async def close(self) -> None:
        """See `Engine.close`. Commits are refused from now on; those in flight are answered first."""
        self._closing = True
        if self._calls:
            await self._answered.wait()
        async with self._starting:  # Or what starts now would never be ended.
            parts = self._parts
        if parts is not None:
            await parts.close()
        await self._pool.close()
