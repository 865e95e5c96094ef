"""The campaign `leases` on PostgreSQL: several processes whose clocks differ, while processes and the database fail.

The time of leases is the database's, which cannot be set. So each round has blobs of its own, and counts only if it
ended before the first lease could. Whatever fails, fails within a round; it ends when the database is through.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tests.postgres.server import PostgresServer
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.on_database import PROCESSES, OnDatabase

from .campaign import FLAGS, LeasesRun
from .client import PAUSE_SECONDS
from .recorder import BLOBS

CLIENTS = 8


def leases_on_database(
    servers: OnDatabase, random: Random, counts: Counter[str], pause_seconds: float = PAUSE_SECONDS
) -> LeasesRun:
    """Return the campaign on these processes; each round has new blobs."""
    return LeasesRun(random, servers, counts, CLIENTS, BLOBS, finish=True, pause_seconds=pause_seconds)


def run(
    budget: Budget, seed: int, directory: Path, processes: Mapping[int, str] = PROCESSES, mutation: str = ""
) -> Report:
    """Run the campaign; see `Campaign.run`. `processes` and `mutation` are those of `OnDatabase`."""
    counts, random = Counter[str](), Random(seed)
    with PostgresServer.make() as database:
        servers = OnDatabase(database, directory, random, counts, processes, mutation, FLAGS)
        problems = asyncio.run(leases_on_database(servers, random, counts).work(budget))
    return Report(dict(sorted(counts.items())), tuple(problems))


LEASES_ON_POSTGRES = Campaign(
    "every answer of several processes to lease actions and conditional writes fits one order, whatever fails",
    "rounds",
    2,
    run,
)
