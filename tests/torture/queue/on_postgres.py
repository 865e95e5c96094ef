"""Queues of several processes on one PostgreSQL database, whose clocks differ, while all of them fail."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

from tests.postgres.server import PostgresServer
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.on_database import PROCESSES, OnDatabase

from .campaign import QueueRun
from .history import SECOND, Time
from .servers import SERVICES
from .wire import Wire

HELD_SECONDS_MAX = 6
"""After that the last message that was got or updated is visible again."""
SPREAD_SECONDS = 3
"""After that all processes know of a clear, on a busy machine too."""
_wire = cache(Wire)


class QueuesOnDatabase(OnDatabase):
    """See `Servers`."""

    timeouts: Sequence[int] = (1, 1, 2, 3)

    def name(self, epoch: int) -> str:
        """See `Servers`: a new name, as other processes hear of a deletion two seconds later."""
        return f"jobs{epoch}"

    def wires(self) -> Sequence[Wire]:
        """See `Servers`."""
        return [_wire(account) for account in self.accounts()]

    async def begin(self) -> Time:
        """See `Servers`."""
        await self.again()
        return Time(spread=SPREAD_SECONDS * SECOND)

    async def past_holds(self) -> None:
        """See `Servers`: wait."""
        await asyncio.sleep(HELD_SECONDS_MAX)
        await self.again()


def run(
    budget: Budget, seed: int, directory: Path, processes: Mapping[int, str] = PROCESSES, mutation: str = ""
) -> Report:
    """Run the campaign; see `Campaign.run`. `processes` and `mutation` are those of `OnDatabase`."""
    counts = Counter[str]()
    with PostgresServer.make() as database:
        servers = QueuesOnDatabase(database, directory, Random(seed), counts, processes, mutation, SERVICES)
        return asyncio.run(QueueRun(seed, servers, counts, directory).work(budget, "kills"))


QUEUE_ON_POSTGRES = Campaign(
    "each message is delivered to one consumer at a time, whichever process serves it and whatever fails",
    "kills",
    2,
    run,
)
