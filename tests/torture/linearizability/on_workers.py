"""The campaign with workers: they are killed at random while clients read and write, and at last the primary is.

Beside the operations on partitions, tables are created and deleted. A table that one worker reported as created or
deleted must be so at every worker from then on.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.server_process import ServerProcess
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import Connection, LostConnectionError, create_table, delete_table
from tests.torture.kills import kill_worker

from .campaign import PROGRAMS as PROGRAMS_WITHOUT_WORKERS
from .campaign import Run, in_turn, linearizability
from .client import Client, UnavailableError, exchange
from .wire import query_table

WORKERS = 2
KILLS = 2
"""Workers killed in each round, beside the kill of the primary that ends it."""
ROUND_OPERATIONS = 3000
PROGRAMS = (("tests.torture.mutations", "small_buffers+slow_changes+in_workers"), *PROGRAMS_WITHOUT_WORKERS)
"""What serves, in turn."""
TABLES_PER_ROUND = 2
"""Tables that must come and go, at the least, while no worker is killed: a round lasts until then."""
TABLE_CONNECTIONS = 8
"""Connections that see tables come and go; the kernel assigns each to one of the workers, by chance."""


class WorkersRun(Run):
    """A run whose servers have workers."""

    clients = 24
    """Fewer than in `Run`: each write that a killed worker leaves unanswered doubles the orders to be tried."""

    def __init__(self, seed: int, directory: Path) -> None:
        super().__init__(seed, directory)
        self._servers: Sequence[ServerProcess] = ()
        self._kills_at: set[int] = set()
        self._losses = 0
        self._tables = 0
        self._tables_left = 0

    async def round(self, servers: Sequence[ServerProcess], operations: int) -> None:
        """Do a round as in `Run`, with kills of workers at random operations."""
        self._servers, self._tables_left = servers, TABLES_PER_ROUND
        self._kills_at = set(self._random.sample(range(1, operations), KILLS)) if operations > KILLS else set()
        await super().round(servers, operations)

    def enough(self) -> bool:
        """Tell whether the round may end: so many operations were answered, and so many tables came and went."""
        return super().enough() and self._tables_left <= 0

    def operated(self) -> None:
        """Kill a worker if this is the moment."""
        if self._left in self._kills_at:
            self._kills_at.discard(self._left)
            kill_worker(self._servers[0], self._random, self._counts)

    async def reconnected(self, client: Client) -> bool:
        """Give a client another connection, unless the round ends, or no worker was killed to explain the loss."""
        if self._ending:  # A loss at the end of a round is explained by it, and counts for no worker.
            return False
        self._losses += 1
        if self._losses > self._counts["kills of workers"] * self.clients:
            return False
        client.continue_on(await Connection.open(client.host))
        return True

    async def beside(self, host: str) -> None:
        """Create and delete tables until the round ends; each connection must see each change at once."""
        connections: list[Connection] = []
        while not self._ending:
            try:
                while len(connections) < TABLE_CONNECTIONS:
                    connections.append(await Connection.open(host))
                await self._table_comes_and_goes(connections)
                self._tables_left -= 1
            except (LostConnectionError, UnavailableError):  # A worker was killed: the next table is another one.
                for connection in connections:
                    connection.abort()
                connections = []
        for connection in connections:
            connection.abort()

    async def _table_comes_and_goes(self, connections: Sequence[Connection]) -> None:
        self._tables += 1
        table = f"Table{self._tables}"
        for change, expected, seen in ((create_table, 201, 200), (delete_table, 204, 404)):
            first, *others = self._random.sample(connections, len(connections))
            changed = await exchange(first, change(table))
            queried = await asyncio.gather(*(exchange(each, query_table(table)) for each in others))
            statuses = [answer.status for answer in (changed, *queried)]
            if statuses != [expected, *[seen] * len(others)]:
                self._problems.append(f"a change of table {table} was not seen by all workers: {statuses}")

    def extra(self) -> dict[str, int]:
        """Return the counts of this campaign."""
        return {"kills of workers": self._counts["kills of workers"], "tables created and deleted": self._tables}


def linearizability_on_workers(
    budget: Budget,
    seed: int,
    directory: Path,
    *mutation: str,
    round_operations: int = ROUND_OPERATIONS,
) -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` is what the servers break, see `tests.torture.mutations`."""
    arguments = ("--workers", str(WORKERS))
    start = in_turn(*arguments, programs=PROGRAMS)
    if mutation:
        program = ("tests.torture.mutations", *mutation)
        start = partial(_started, arguments, program)
    return linearizability(budget, seed, directory, start, round_operations, WorkersRun)


def _started(arguments: Sequence[str], program: Sequence[str], location: Path) -> list[ServerProcess]:
    return [ServerProcess.start(location, *arguments, program=program)]


LINEARIZABILITY_ON_WORKERS = Campaign(
    "every answer of several workers fits one order, while workers and at last the primary are killed",
    "operations",
    2,
    linearizability_on_workers,
)
