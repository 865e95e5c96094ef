"""64 clients on a dozen small partitions, the server killed under them, and a checker that wants an order for it all.

A round ends by SIGKILL, or now and then by SIGTERM, while requests are under way. What was not answered may have been
done before the process was gone, or not; afterwards it cannot be. So each round's history ends there, and the next
begins with the states that are possible then. While the next server starts, the last round is judged.
"""

import asyncio
import itertools
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from tests.server_process import ServerProcess
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import Connection, LostConnectionError, UnexpectedAnswerError, create_table

from .client import KINDS, Client, UnavailableError
from .partitions import Partitions
from .wire import TABLE

CLIENTS = 64
ROUND_OPERATIONS = 5000
ROUND_SECONDS_MAX = 120
DELAY_SECONDS_MAX = 0.005
"""The end comes so much later than the last operation wanted, or less: at any moment of a flush."""
PROGRAMS = (("lazulite",), ("tests.torture.linearizability.narrow",))
"""What serves, in turn: the server, and the same with scans that others come between."""
TERMINATED = 0.2
"""The share of rounds that end by SIGTERM."""


class Run:
    """All that is done, seen and judged through all lives of the server."""

    clients = CLIENTS
    pause_seconds = 0.0
    """Of a client, after a 5xx."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.partitions = Partitions(directory)
        self._counts: Counter[str] = Counter()
        self._problems: list[str] = []
        self._random = random.Random(seed)
        self._ends = random.Random(seed)
        self._now = itertools.count(1).__next__
        self._left = 0
        self._ending = False
        self._end: Callable[[], None] = lambda: None

    @property
    def operations(self) -> int:
        """Operations that were answered."""
        return sum(self._counts[kind] for kind in KINDS)

    @property
    def problems(self) -> tuple[str, ...]:
        """What was found, a sentence each."""
        return (*self._problems, *self.partitions.problems)

    async def round(self, servers: Sequence[ServerProcess], operations: int) -> None:
        """Look at every partition, do so many operations, and end the servers while more are under way."""
        end = signal.SIGTERM if self._ends.random() < TERMINATED else signal.SIGKILL
        self._left, self._ending, self._end = operations, False, lambda: _signal(servers, end)
        before = self.operations
        try:
            async with asyncio.timeout(ROUND_SECONDS_MAX):
                await self._load([server.account.host for server in servers])
        except TimeoutError:
            self._problems.append(f"requests were not answered in {ROUND_SECONDS_MAX} s")
            _signal(servers, signal.SIGKILL)
        except (LostConnectionError, UnavailableError, UnexpectedAnswerError) as error:
            self._problems.append(f"after the start: {error!r}")
            _signal(servers, signal.SIGKILL)
        codes = {await asyncio.to_thread(server.join) for server in servers}
        self._counts["kills" if end == signal.SIGKILL else "terminations"] += 1
        if operations and self.operations == before:
            self._problems.append("no operation was answered")
        if not self._problems and codes != {0 if end == signal.SIGTERM else -end}:
            self._problems.append(f"the server ended with {codes} on {end.name}")

    async def _load(self, hosts: Sequence[str]) -> None:
        turns = list(itertools.islice(itertools.cycle(hosts), self.clients))
        clients: list[Client] = []
        try:
            for host in turns:
                client = Client(host, await Connection.open(host), self._random, self._now, self._counts)
                client.pause_seconds = self.pause_seconds
                clients.append(client)
            await clients[0].exchange(create_table(TABLE))
            for recorder in self.partitions:
                await clients[0].query(recorder)
            if self._left:
                await asyncio.gather(*map(self._work, clients), *map(self.beside, hosts))
            else:
                self._end()
        finally:
            for client in clients:
                client.close()

    async def _work(self, client: Client) -> None:
        """Do one operation after the other until the server is gone; the last operation wanted ends the server."""
        problem = ""
        while not problem:
            recorder = self.partitions.choose(self._random)
            recorder.running += 1
            try:
                await client.operate(recorder)
            except LostConnectionError:
                if not await self.reconnected(client):
                    problem = "the server closed a connection"
            except UnexpectedAnswerError as error:
                problem = f"an answer out of place: {error!r}"
            else:
                self._left -= 1
                self.operated()
                if not self._ending and self.enough():
                    self._ending = True
                    later = self._random.random() * DELAY_SECONDS_MAX
                    asyncio.get_running_loop().call_later(later, self._end)
            finally:
                recorder.running -= 1
        if not self._ending:
            self._problems.append(problem)
            self._ending = True
            self._end()

    async def beside(self, host: str) -> None:
        """Do what a campaign does beside the operations: here, nothing."""

    def enough(self) -> bool:
        """Tell whether the round may end: so many operations were answered."""
        return self._left <= 0

    def operated(self) -> None:
        """Do what a campaign does after an operation that was answered: here, nothing."""

    async def reconnected(self, client: Client) -> bool:
        """Say whether a client whose connection was lost has a new one: here, none has."""
        return False

    def extra(self) -> dict[str, int]:
        """Return the counts of what only some campaigns do: here, none."""
        return {}

    def report(self) -> Report:
        """Say what was done and found."""
        counts, partitions = self._counts, self.partitions
        done = {
            "operations": self.operations,
            **{what: counts[what] for what in KINDS},
            **{what: counts[what] for what in ("rejected writes", "unanswered writes", "unavailable")},
            **{what: counts[what] for what in ("kills", "terminations")},
            **self.extra(),
            "partitions": partitions.begun,
            "at most at once on a partition": partitions.running_max,
            "at most configurations": partitions.configurations_max,
            "checked a second of CPU time": int(partitions.checked / max(partitions.checking_seconds, 0.001)),
        }
        return Report(done, self.problems)


def _signal(servers: Sequence[ServerProcess], number: signal.Signals) -> None:
    for server in servers:
        server.signal(number)


Start = Callable[[Path], Sequence[ServerProcess]]
"""Begins what serves, one process or several on the same store."""


async def _run(budget: Budget, run: Run, location: Path, start: Start, round_operations: int) -> Report:
    servers = await asyncio.to_thread(start, location)
    try:
        more = True
        while more and not run.problems:
            more = budget.more(run.operations)
            await run.round(servers, round_operations if more else 0)  # A look at the end, after the last kill.
            starting = asyncio.create_task(asyncio.to_thread(start, location)) if more else None
            await asyncio.sleep(0)
            run.partitions.judge()
            if starting is not None:
                servers = await starting
    finally:
        for server in servers:
            server.kill()
            server.join()
    return run.report()


def in_turn(*arguments: str, programs: Sequence[Sequence[str]] = PROGRAMS) -> Start:
    """Return what begins one server after the other, with these arguments."""
    turns = itertools.cycle(programs)
    return lambda location: [ServerProcess.start(location, *arguments, program=next(turns))]


def linearizability(
    budget: Budget,
    seed: int,
    directory: Path,
    start: Start | None = None,
    round_operations: int = ROUND_OPERATIONS,
    run: Callable[[int, Path], Run] = Run,
) -> Report:
    """Run the campaign; see `Campaign.run`. `start` stands in for what begins a server, `run` for what is done."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(budget, run(seed, directory), directory / "data", start or in_turn(), round_operations))


LINEARIZABILITY = Campaign(
    "every answer fits one order of the operations on its partition, through kills and restarts",
    "operations",
    4,
    linearizability,
)
