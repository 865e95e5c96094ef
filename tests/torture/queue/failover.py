"""Queues of several processes on a PostgreSQL pair with synchronous replication, whose primary is killed under load.

The processes know both servers. In a failover the primary loses its standby and is killed; the standby is started
again and promoted. After that, the new primary crashes and returns as in `on_postgres`. Each epoch begins with a pair.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.postgres.server import PostgresServer
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.on_database import PROCESSES

from .campaign import QueueRun
from .history import Time
from .on_postgres import QueuesOnDatabase
from .servers import SERVICES

OFTEN = 0.6
"""The share of rounds that end with a failover, while there is a standby."""
CUT_SECONDS = (0.1, 0.5)
"""How long the standby gets nothing before the primary is killed, so that nothing may be acknowledged."""
AFTER_SECONDS = (1.0, 2.5)
"""How long clients go on after a failover."""


class OnPair(QueuesOnDatabase):
    """Several processes on a primary and its standby.

    Args:
        primary: the server; `close` closes all but this one.
        settings: of PostgreSQL, for the primary at the beginning of each epoch.
        arguments: of `OnDatabase`, as are the others.
    """

    def __init__(
        self,
        primary: PostgresServer,
        directory: Path,
        random: Random,
        counts: Counter[str],
        processes: Mapping[int, str] = PROCESSES,
        mutation: str = "",
        settings: Sequence[str] = (),
    ) -> None:
        super().__init__(primary, directory, random, counts, processes, mutation, SERVICES)
        self._settings = settings
        self._standby: PostgresServer | None = None
        self._stack = ExitStack()

    async def begin(self) -> Time:
        """See `Servers`: make a standby, unless there is one."""
        if self._standby is None:
            await asyncio.to_thread(self._pair)
        return await super().begin()

    def _pair(self) -> None:
        self._standby = self._stack.enter_context(self._database.make_standby())
        self._dsn = self._database.dsn(None, self._standby)
        for setting in self._settings:
            self._database.execute(f"ALTER SYSTEM SET {setting}")
        self._database.execute("SELECT pg_reload_conf()")

    async def disturb(self) -> None:
        """See `Servers`."""
        await super().disturb()
        if self._standby is not None and self._random.random() < OFTEN:
            await self._fail_over(self._standby)
            self._counts["failovers"] += 1
            await asyncio.sleep(self._random.uniform(*AFTER_SECONDS))

    async def _fail_over(self, standby: PostgresServer) -> None:
        standby.pause()
        await asyncio.sleep(self._random.uniform(*CUT_SECONDS))
        await asyncio.to_thread(self._database.kill)
        await asyncio.to_thread(standby.kill)  # With what the network had for it.
        await asyncio.to_thread(standby.start)
        await asyncio.to_thread(standby.promote)
        self._database, self._standby = standby, None

    async def close(self) -> None:
        """See `Servers`."""
        await super().close()
        self._stack.close()


def run(
    budget: Budget,
    seed: int,
    directory: Path,
    processes: Mapping[int, str] = PROCESSES,
    mutation: str = "",
    settings: Sequence[str] = (),
) -> Report:
    """Run the campaign; see `Campaign.run`. The other arguments are those of `OnPair`."""
    counts = Counter[str]()
    with PostgresServer.make() as primary:
        servers = OnPair(primary, directory, Random(seed), counts, processes, mutation, settings)
        return asyncio.run(QueueRun(seed, servers, counts, directory).work(budget, "failovers"))


QUEUE_FAILOVER = Campaign(
    "acknowledged puts are delivered and acknowledged deletes stay when a standby takes the place of the database",
    "failovers",
    2,
    run,
)
