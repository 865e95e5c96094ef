"""Clients work on a few blobs until the server is killed; each history must fit one order of its operations.

The server starts again with a clock that is past the end of all leases. So which of them have ended is known.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Protocol

from tests.server_process import Account
from tests.torture.campaign import Budget, Campaign, Report, Servers
from tests.torture.http_client import LostConnectionError, UnexpectedAnswerError
from tests.torture.kills import kill_worker
from tests.torture.queue.history import SECOND
from tests.torture.queue.servers import OneServer

from .client import PAUSE_SECONDS, Client, created
from .recorder import BLOBS, Recorders
from .wire import Wire

CLIENTS = 10
LOAD_SECONDS = (0.3, 3.0)
"""Less by far than the 60 s of a lease."""
ROUND_SECONDS_MAX = 55
"""Less than the 60 s of a lease."""
STEP = 70 * SECOND
"""Of the clock, between two servers."""
IN_WORKERS = "in_workers"
"""Workers have the clock of the primary, and break what it breaks."""
FLAGS = ("--services", "table,queue,blob")
_wire = cache(Wire)


class LeaseServers(Servers, Protocol):
    """What serves the blobs of a campaign."""

    def accounts(self) -> Sequence[Account]:
        """Return how the processes that run are reached."""
        ...


class LeasesRun:
    """A campaign at work.

    Args:
        random: the source of all choices.
        servers: what serves.
        counts: counts what was done.
        clients: how many work at the same time.
        renewed: how many blobs are new in each round; the leases of the others have ended by then.
        finish: whether clients get their responses before a round ends.
        pause_seconds: of a client, see there.
    """

    def __init__(
        self,
        random: Random,
        servers: LeaseServers,
        counts: Counter[str],
        clients: int = CLIENTS,
        renewed: int = 1,
        finish: bool = False,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._random = random
        self._servers = servers
        self._counts = counts
        self._clients = clients
        self._renewed = renewed
        self._finish = finish
        self._pause_seconds = pause_seconds
        self._recorders = Recorders()
        self._now = itertools.count(1).__next__

    async def work(self, budget: Budget) -> list[str]:
        """Work until the budget of rounds is spent or something is wrong; return what is wrong."""
        problems: list[str] = []
        rounds = 0
        try:
            await self._servers.again()
            await created(self._wires()[0])
            while not problems:
                problems += await self._round()
                rounds += 1
                if not budget.more(rounds):
                    break
                self._recorders.renew(self._renewed)
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
        """Let the clients work while things fail, and end the servers; return what is wrong."""
        over, began = asyncio.Event(), time.monotonic()
        clients = [
            Client(self._wires, Random(self._random.random()), self._now, self._counts) for _ in range(self._clients)
        ]
        for client in clients:
            client.pause_seconds = self._pause_seconds
        runs = asyncio.gather(*(each.run(self._recorders.choose, over) for each in clients), return_exceptions=True)
        try:
            await self._servers.disturb()
            if self._finish:
                over.set()
                await runs
            await self._servers.end()
        finally:
            over.set()
            results = await runs
        problems = [f"an answer out of place: {each}" for each in results if isinstance(each, UnexpectedAnswerError)]
        for result in results:
            if result is not None and not isinstance(result, UnexpectedAnswerError):
                raise result
        if time.monotonic() > began + ROUND_SECONDS_MAX:
            self._counts["rounds that took too long"] += 1
            self._recorders.renew(BLOBS)
            return problems
        self._counts["rounds"] += 1
        return problems + await asyncio.to_thread(self._recorders.judge)


class LeaseServer(OneServer):
    """One server, whose clock is past the end of all leases after each start."""

    def accounts(self) -> Sequence[Account]:
        """See `LeaseServers`."""
        return [] if self.server is None else [self.server.account]

    async def again(self) -> None:
        """See `LeaseServers`."""
        await (self.step(STEP) if self._begun else self.begin_at(0))
        self._begun = True

    _begun = False

    async def disturb(self) -> None:
        """See `LeaseServers`: perhaps kill a worker."""
        seconds = self._random.uniform(*LOAD_SECONDS)
        await asyncio.sleep(seconds / 2)
        assert self.server is not None
        kill_worker(self.server, self._random, self._counts)
        await asyncio.sleep(seconds / 2)


def run(budget: Budget, seed: int, directory: Path, mutation: str = "") -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` names what the servers break."""
    counts, random = Counter[str](), Random(seed)
    names = "+".join(name for name in (mutation, IN_WORKERS) if name)
    servers = LeaseServer(directory / "data", random, counts, names, FLAGS)
    problems = asyncio.run(LeasesRun(random, servers, counts).work(budget))
    return Report(dict(sorted(counts.items())), tuple(problems))


LEASES = Campaign(
    "every answer to lease actions and conditional writes fits one order of the operations on its blob, through kills",
    "kills",
    2,
    run,
)
