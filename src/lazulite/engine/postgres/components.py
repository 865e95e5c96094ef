"""The parts of a database's engine, as the kind of database needs them.

Actions in the background are each repeated after a time; an unavailable database stops none of them.

The health of a Citus cluster is durable writes on each node, of which one suffices. The reference tables are on every
node, so a write to one of them fails while any node is away. These writes go to a version row of each node instead, in
a space of their own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from lazulite.engine.contract import EngineError
from lazulite.engine.postgres import schema
from lazulite.engine.postgres.citus.shard_map import LOOK, ShardMap
from lazulite.engine.postgres.citus.shard_pages import ShardPageReads
from lazulite.engine.postgres.commit_timestamps import CommitTimestamps
from lazulite.engine.postgres.conditional_writes import ConditionalWrites, OptimisticCommits, ScriptedWrites
from lazulite.engine.postgres.contention import Contention
from lazulite.engine.postgres.contents.store import PostgresContents
from lazulite.engine.postgres.contents.windows import ContentWindows
from lazulite.engine.postgres.drops import DroppedSpaceCache
from lazulite.engine.postgres.page_reads import PageReads
from lazulite.engine.postgres.partition_commit import PartitionCommits
from lazulite.engine.postgres.partition_io import ScriptIo, StatementIo
from lazulite.engine.postgres.partition_locks import PartitionLocks
from lazulite.engine.postgres.pending_write import RowWrites
from lazulite.engine.postgres.point_reads import PointReads
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.settings import PostgresSettings

Action = Callable[[], Awaitable[object]]

SPACE = -1
"""No space of the store has this number."""

_WRITE = """
INSERT INTO lazulite.partitions (space, partition_key, stamp) VALUES ($1, $2, 0)
ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp
"""

_COMMIT_RATIO = 1.25
"""Bound on a partition commit, in times of a statement, so that callers learn of a silent database in time."""


class Periodic:
    """Repeats actions in a task each, since one of them may take long.

    Args:
        actions: they are called in no order.
        seconds: the pause before each call.

    Attributes:
        tasks: those of the actions, while they are repeated.
    """

    def __init__(self, actions: tuple[Action, ...], seconds: float) -> None:
        self._actions = actions
        self._seconds = seconds
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin with the first pause."""
        self.tasks = [asyncio.create_task(self._repeated(action)) for action in self._actions]

    async def close(self) -> None:
        """Cancel the actions."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _repeated(self, action: Action) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            with contextlib.suppress(EngineError):  # The database is unavailable; the next round tries again.
                await action()


class ClusterHealth:
    """Writes to each node.

    Args:
        pool: connections to the coordinator.
        shards: where partitions are.

    Attributes:
        failed_nodes: the addresses of the nodes that failed to write at the last check.
    """

    def __init__(self, pool: Pool, shards: ShardMap) -> None:
        self._pool = pool
        self._shards = shards
        self.failed_nodes: tuple[str, ...] = ()

    async def check_writable(self) -> None:
        """Return if one node takes writes.

        Raises:
            EngineError: none does.
        """
        samples = self._shards.samples()
        outcomes = await asyncio.gather(*map(self._write, samples.values()))
        failures = [outcome for outcome in outcomes if outcome is not None]
        if len(failures) == len(outcomes):
            raise failures[0]
        self.failed_nodes = tuple(
            sorted(self._shards.address(node) for node, failed in zip(samples, outcomes, strict=True) if failed)
        )

    async def _write(self, partition_key: bytes) -> EngineError | None:
        try:
            await self._pool.fetch(_WRITE, SPACE, partition_key, partition=partition_key)
        except EngineError as error:
            return error
        return None


class Components:
    """The parts of an engine.

    Args:
        pool: connections to the database.
        timestamps: commit timestamps of this process.
        kind: of the database.
        settings: of the engine.
    """

    def __init__(
        self, pool: Pool, timestamps: CommitTimestamps, kind: schema.DatabaseKind, settings: PostgresSettings
    ) -> None:
        scripts = kind.needs_scripts if settings.scripts is None else settings.scripts
        locks, self.contention = PartitionLocks(), Contention()
        seconds_max = settings.statement_seconds * _COMMIT_RATIO
        self.shards, self.content_shards = ShardMap(), ShardMap("contents")
        keys_first = kind.citus if settings.keys_first is None else settings.keys_first
        self.shard_pages = ShardPageReads(pool, self.shards) if keys_first else None
        self.reads = PointReads(pool, self.shards, each=kind.citus)
        self.pages = None if scripts else PageReads(pool)
        self.health = ClusterHealth(pool, self.shards) if kind.citus else None
        self.conditional: RowWrites = (
            ScriptedWrites(pool, timestamps, locks, self.contention, self.shards)
            if scripts
            else ConditionalWrites(pool, timestamps, locks, self.contention)
        )
        contents = ContentWindows(pool, self.content_shards, unsynced=kind.has_postgres_settings and not kind.citus)
        self.drops = DroppedSpaceCache(pool, contents.empty)
        io = ScriptIo(pool, self.shards) if scripts else StatementIo(pool)
        self.partitions = PartitionCommits(
            io, timestamps, self.conditional, locks, self.contention, self.drops, seconds_max
        )
        self.optimistic = OptimisticCommits(self.reads, self.conditional, self.partitions, scripts=scripts)
        self.contents = PostgresContents(pool, contents, self.drops)
        self.periodic = Periodic((self.drops.reload, self.drops.reclaim_all), settings.drop_poll_seconds)
        self._pool = pool
        self._seconds = settings.drop_poll_seconds

    async def join_cluster(self) -> list[str]:
        """Get to know the shards from a Citus coordinator, bound what its nodes may hold, and join them.

        Returns:
            A line for people for each node that cannot be joined.
        """
        await self._update()
        workers = self._pool.join_cluster(self.shards)

        async def reload() -> None:
            """Ask the coordinator for dropped spaces and for shards: what is known of both has one age."""
            asked_s = asyncio.get_running_loop().time()
            await self.drops.reload()
            await self._update()
            workers.confirmed(asked_s)

        await reload()
        self.periodic = Periodic((reload, workers.join, self.drops.reclaim_all), self._seconds)
        return await workers.join()

    async def _update(self) -> None:
        found = await self._pool.fetch(LOOK, reads=True)
        for each in (self.shards, self.content_shards):
            each.update(found)

    async def close(self) -> None:
        """Return when no statement is in flight, not even one whose caller was cancelled."""
        await self.periodic.close()
        for each in (self.partitions, self.conditional, self.reads, self.pages):
            if each is not None:
                await each.finished()
