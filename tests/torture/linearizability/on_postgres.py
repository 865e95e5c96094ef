"""The campaign on PostgreSQL: three processes with clocks that differ, on one database that crashes now and then.

One of them writes by scripts, as it would on Citus.

A process that is killed leaves its last statements to the database, which may still do them; so the next round begins
when the database is through with them, or was killed too.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.postgres.server import PostgresServer, until
from tests.server_process import Program, ServerProcess
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.on_database import is_settled, start

from .campaign import ROUND_OPERATIONS, linearizability

PROCESSES: Mapping[int, Program] = {
    0: ("tests.torture.variants", "stepping_clock"),
    2: ("tests.torture.variants", "stepping_clock"),
    -3: ("tests.torture.variants", "scripts"),
}
"""By how many seconds each process's clock is wrong: what it runs."""
FORWARDING: Mapping[int, Program] = {
    0: ("tests.torture.variants", "peers"),
    2: ("tests.torture.variants", "peers"),
    -3: ("tests.torture.mutations", "scripts+peers"),
}
"""The same, but each commit is made by the owner of its partition."""
CRASHES = 0.5
"""The share of rounds after which the database crashes."""


class Starts:
    """Starts the processes, after what became of the last ones is settled."""

    def __init__(self, database: PostgresServer, dice: random.Random, processes: Mapping[int, Program]) -> None:
        self._database = database
        self._dice = dice
        self._processes = processes
        self._before = False
        self.crashes = 0

    def __call__(self, location: Path) -> Sequence[ServerProcess]:
        """Start them."""
        if self._before and (not self.crashes or self._dice.random() < CRASHES):
            self._database.kill()
            self._database.start()
            self.crashes += 1
        until(self._settled, "the database to finish")
        self._before = True
        dsn = self._database.dsn()
        return [start(location.parent, *each, dsn) for each in self._processes.items()]

    def _settled(self) -> bool:
        return is_settled(self._database)


def linearizability_on_postgres(
    budget: Budget,
    seed: int,
    directory: Path,
    processes: Mapping[int, Program] = PROCESSES,
    round_operations: int = ROUND_OPERATIONS,
) -> Report:
    """Run the campaign; see `Campaign.run`. `processes` stands in for what serves."""
    with PostgresServer.make() as database:
        starts = Starts(database, random.Random(seed), processes)
        report = linearizability(budget, seed, directory, starts, round_operations)
    return replace(report, counts={**report.counts, "crashes of the database": starts.crashes})


LINEARIZABILITY_ON_POSTGRES = Campaign(
    "every answer of several processes on one database fits one order of the operations on its partition",
    "operations",
    2,
    linearizability_on_postgres,
)
