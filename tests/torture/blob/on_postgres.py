"""The campaign `leases` on PostgreSQL: several processes whose clocks differ, while processes and the database fail.

The time of leases is the database's, which cannot be set. So each round has blobs of its own, and counts only if it
ended before the first lease could. Whatever fails, fails within a round; it ends when the database is through.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

from tests.postgres.server import PostgresServer
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import LostConnectionError
from tests.torture.queue.on_postgres import PROCESSES, OnDatabase

from .campaign import FLAGS
from .client import PAUSE_SECONDS, Client, created
from .recorder import BLOBS, Recorders
from .wire import UnexpectedAnswerError, Wire

CLIENTS = 8
ROUND_SECONDS_MAX = 55
"""Less than the 60 s of a lease."""
_wire = cache(Wire)


class LeasesOnDatabase:
    """A campaign at work.

    Args:
        random: the source of all choices.
        servers: the processes.
        counts: counts what was done.
        pause_seconds: of a client, see there.
    """

    def __init__(
        self, random: Random, servers: OnDatabase, counts: Counter[str], pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._random = random
        self._servers = servers
        self._counts = counts
        self._pause_seconds = pause_seconds
        self._recorders = Recorders()
        self._now = itertools.count(1).__next__

    async def work(self, budget: Budget) -> list[str]:
        """Work until the budget is spent or something is wrong; return what is wrong."""
        problems: list[str] = []
        try:
            await self._servers.again()
            await created(self._wires()[0])
            while not problems:
                problems += await self._round()
                if not budget.more(self._counts["rounds"] + self._counts["rounds that took too long"]):
                    break
                for _ in range(BLOBS):
                    self._recorders.renew()
                await self._servers.again()
        except (AssertionError, LostConnectionError, UnexpectedAnswerError) as error:
            problems.append(f"{type(error).__name__}: {error}")
        finally:
            self._counts["blobs"] = self._recorders.begun
            await self._servers.close()
        return problems

    def _wires(self) -> Sequence[Wire]:
        return [_wire(account) for account in self._servers.accounts()]

    async def _round(self) -> list[str]:
        """Let the clients work while things fail; return what is wrong."""
        over, began = asyncio.Event(), time.monotonic()
        randoms = [Random(self._random.random()) for _ in range(CLIENTS)]
        clients = [Client(self._wires, each, self._now, self._counts) for each in randoms]
        for client in clients:
            client.pause_seconds = self._pause_seconds
        runs = asyncio.gather(*(each.run(self._recorders.choose, over) for each in clients), return_exceptions=True)
        try:
            await self._servers.disturb()
            over.set()
            await runs
            await self._servers.end()
        finally:
            over.set()
            results = await runs
        for result in results:
            if isinstance(result, UnexpectedAnswerError):
                return [f"an answer out of place: {result}"]
            if result is not None:
                raise result
        if time.monotonic() > began + ROUND_SECONDS_MAX:
            self._counts["rounds that took too long"] += 1
            return []
        self._counts["rounds"] += 1
        return await asyncio.to_thread(self._recorders.judge)


def run(
    budget: Budget, seed: int, directory: Path, processes: Mapping[int, str] = PROCESSES, mutation: str = ""
) -> Report:
    """Run the campaign; see `Campaign.run`. `processes` and `mutation` are those of `OnDatabase`."""
    counts, random = Counter[str](), Random(seed)
    with PostgresServer.make() as database:
        servers = OnDatabase(database, directory, random, counts, processes, mutation, FLAGS)
        problems = asyncio.run(LeasesOnDatabase(random, servers, counts).work(budget))
    return Report(dict(sorted(counts.items())), tuple(problems))


LEASES_ON_POSTGRES = Campaign(
    "every answer of several processes to lease actions and conditional writes fits one order, whatever fails",
    "rounds",
    2,
    run,
)
