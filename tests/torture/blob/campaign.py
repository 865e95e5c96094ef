"""Clients work on a few blobs until the server is killed; each history must fit one order of its operations.

The server starts again with a clock that is past the end of all leases. So which of them have ended is known.
"""

import asyncio
import itertools
import os
import signal
from collections import Counter
from pathlib import Path
from random import Random

from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import LostConnectionError
from tests.torture.linearizability.on_workers import workers_of
from tests.torture.queue.history import SECOND
from tests.torture.queue.servers import OneServer

from .client import Client, created
from .recorder import Recorders
from .wire import UnexpectedAnswerError, Wire

CLIENTS = 10
LOAD_SECONDS = (0.3, 3.0)
"""Less by far than the 60 s of a lease."""
STEP = 70 * SECOND
"""Of the clock, between two servers."""
IN_WORKERS = "in_workers"
"""Workers have the clock of the primary, and break what it breaks."""
FLAGS = ("--services", "table,queue,blob")


class LeasesRun:
    """A campaign at work.

    Args:
        random: the source of all choices.
        servers: what serves.
        counts: counts what was done.
    """

    def __init__(self, random: Random, servers: OneServer, counts: Counter[str]) -> None:
        self._random = random
        self._servers = servers
        self._counts = counts
        self._recorders = Recorders()
        self._now = itertools.count(1).__next__

    async def work(self, budget: Budget) -> list[str]:
        """Kill until the budget is spent or something is wrong; return what is wrong."""
        problems: list[str] = []
        try:
            await self._servers.begin_at(0)
            await created(self._wire)
            while not problems:
                problems += await self._round()
                problems += await asyncio.to_thread(self._recorders.judge)
                if not budget.more(self._counts["kills"] + self._counts["terminations"]):
                    break
                self._recorders.renew()
                await self._servers.step(STEP)
        except (AssertionError, LostConnectionError, UnexpectedAnswerError) as error:
            problems.append(f"{type(error).__name__}: {error}")
        finally:
            self._counts["blobs"] = self._recorders.begun
            await self._servers.close()
        return problems

    @property
    def _wire(self) -> Wire:
        assert self._servers.server is not None
        return Wire(self._servers.server.account)

    async def _round(self) -> list[str]:
        """Let the clients work, perhaps kill a worker, and end the server; return what they found by themselves."""
        over, wire = asyncio.Event(), self._wire
        randoms = [Random(self._random.random()) for _ in range(CLIENTS)]
        clients = [Client(lambda: [wire], each, self._now, self._counts) for each in randoms]
        runs = asyncio.gather(*(each.run(self._recorders.choose, over) for each in clients), return_exceptions=True)
        try:
            await self._disturb()
            await self._servers.end()
        finally:
            over.set()
            results = await runs
        problems = []
        for result in results:
            if isinstance(result, UnexpectedAnswerError):
                problems.append(f"an answer out of place: {result}")
            elif result is not None:
                raise result
        return problems

    async def _disturb(self) -> None:
        seconds = self._random.uniform(*LOAD_SECONDS)
        await asyncio.sleep(seconds / 2)
        assert self._servers.server is not None
        if workers := workers_of(self._servers.server):
            os.kill(self._random.choice(workers), signal.SIGKILL)
            self._counts["kills of workers"] += 1
        await asyncio.sleep(seconds / 2)


def run(budget: Budget, seed: int, directory: Path, mutation: str = "") -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` names what the servers break."""
    counts, random = Counter[str](), Random(seed)
    names = "+".join(name for name in (mutation, IN_WORKERS) if name)
    servers = OneServer(directory / "data", random, counts, names, FLAGS)
    problems = asyncio.run(LeasesRun(random, servers, counts).work(budget))
    return Report(dict(sorted(counts.items())), tuple(problems))


LEASES = Campaign(
    "every answer to lease actions and conditional writes fits one order of the operations on its blob, through kills",
    "kills",
    2,
    run,
)
