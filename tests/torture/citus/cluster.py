"""A Citus cluster of our own: a coordinator and workers, with a database of which each has its part.

Invariant: each fault is mended when its method returns. The nodes are servers of `tests.postgres.server`, so their
programs must have the extension (LAZULITE_TEST_POSTGRES_BIN).
"""

import asyncio
import secrets
from contextlib import ExitStack
from random import Random
from types import TracebackType
from typing import Self

from tests.postgres.server import HOST, USER, PostgresServer

WORKERS = 3
SHARDS = 6
AWAY_SECONDS = (0.2, 2.0)
SILENT_SECONDS = (1.0, 7.0)
"""Below and above the time limit of a statement on a node."""
MOVE_SECONDS_MAX = 60
SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "max_connections": "200",
    "max_worker_processes": "40",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "citus.node_conninfo": "sslmode=disable",
    "citus.local_hostname": HOST,
    "citus.shard_count": str(SHARDS),
}
ACTIVE = "FROM pg_stat_activity WHERE state <> 'idle' AND application_name LIKE 'citus_internal%'"
"""The statements of a coordinator on a worker."""
_MOVE = """
SELECT shardid, nodename, nodeport FROM pg_dist_shard JOIN pg_dist_placement USING (shardid)
JOIN pg_dist_node USING (groupid) WHERE logicalrelid = 'lazulite.rows'::regclass AND noderole = 'primary'
"""
_REPLACE = "SELECT citus_update_node(nodeid, $3, $4) FROM pg_dist_node WHERE (nodename, nodeport) = ($1, $2)"


def is_installed() -> bool:
    """Return whether the programs have the extension."""
    with PostgresServer.make() as server:
        return bool(server.execute("SELECT FROM pg_available_extensions WHERE name = 'citus'"))


class Cluster:
    """A cluster that runs within its context.

    Attributes:
        coordinator: the server that Lazulite connects to.
        workers: the other ones.
    """

    coordinator: PostgresServer
    workers: list[PostgresServer]

    def __init__(self) -> None:
        self._password = secrets.token_urlsafe()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.coordinator, *self.workers = (self._made(stack) for _ in range(1 + WORKERS))
            self.coordinator.execute("SELECT citus_set_coordinator_host($1, $2)", *self.coordinator.address)
            for worker in self.workers:
                self.coordinator.execute("SELECT citus_add_node($1, $2)", *worker.address)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _made(self, stack: ExitStack) -> PostgresServer:
        node = stack.enter_context(PostgresServer.make(None, password=self._password, **SETTINGS))
        node.execute("CREATE EXTENSION citus")
        authentication = f"password={self._password}"
        node.execute("INSERT INTO pg_dist_authinfo VALUES (0, $1, $2)", USER, authentication)
        return node

    def settled(self) -> bool:
        """Return whether no statement of a process is in flight any more, on any node."""
        if self.coordinator.execute("SELECT FROM pg_stat_activity WHERE application_name = 'lazulite'"):
            return False
        return not any(worker.execute(f"SELECT {ACTIVE}") for worker in self.workers)

    # --- faults

    async def kill_worker(self, random: Random) -> None:
        """Kill a worker, and start it a little later."""
        await _killed(random.choice(self.workers), random)

    async def kill_coordinator(self, random: Random) -> None:
        """Kill the coordinator, and start it a little later."""
        await _killed(self.coordinator, random)

    async def silence_worker(self, random: Random) -> None:
        """Stop all processes of a worker, and let them go on a little later."""
        worker = random.choice(self.workers)
        await asyncio.to_thread(worker.pause)
        try:
            await asyncio.sleep(random.uniform(*SILENT_SECONDS))
        finally:
            await asyncio.to_thread(worker.resume)

    async def fail_over(self, random: Random) -> None:
        """Give a worker a synchronous standby, kill the worker, and let the standby take its place."""
        place = random.randrange(WORKERS)
        worker = self.workers[place]
        standby = self._stack.enter_context(await asyncio.to_thread(worker.make_standby))
        await asyncio.sleep(random.uniform(*AWAY_SECONDS))
        await asyncio.to_thread(worker.kill)
        await asyncio.to_thread(standby.promote)
        await self._command(_REPLACE, *worker.address, *standby.address)
        self.workers[place] = standby

    async def move_shard(self, random: Random) -> None:
        """Move any shard, and those with the same partitions, to another worker; now and then rebalance all."""
        if random.random() < 0.2:
            await self._command("SELECT rebalance_table_shards(shard_transfer_mode => 'force_logical')")
            return
        shard, host, port = random.choice(await asyncio.to_thread(self.coordinator.execute, _MOVE))
        target = random.choice([worker.address for worker in self.workers if worker.address[1] != port])
        move = "SELECT citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')"
        await self._command(move, shard, host, port, *target)

    async def _command(self, statement: str, *arguments: object) -> None:
        await asyncio.to_thread(self.coordinator.execute, statement, *arguments)


async def _killed(node: PostgresServer, random: Random) -> None:
    await asyncio.to_thread(node.kill)
    await asyncio.sleep(random.uniform(*AWAY_SECONDS))
    await asyncio.to_thread(node.start)
