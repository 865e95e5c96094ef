"""Processes on one database are replaced one after the other behind a load balancer, under load; some are killed.

Two `lazulite serve --engine` share a PostgreSQL server. Clients on kept-alive connections write, read and query through
a balancer with the files of `deploy/`. All the while each process in turn is asked to stop, ends, and is started again.
No request may fail of that. Of a process that is killed, only writes on their way to it may be lost, which are those
that were asked before it was dead: while it dies, the kernel still lets clients in. A read is asked of another process.

What was answered is there, once: a write that had been sent to two processes would be rejected by the second.
"""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.requests import ACCOUNT

from tests.postgres.server import shared, until
from tests.server_process import LAZULITE, Program
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import SAS, Connection, assembled

from .balancers import Balancer, present
from .client import TABLE, Client
from .process import Process

CLIENTS = 24
PROCESSES = 2
KILLS_EVERY = 5
"""Every fifth end of a process is a kill."""
FAILURES_REPORTED_MAX = 20
HOST_STYLE = f"{ACCOUNT}.table.localhost"


class Rolling:
    """The campaign at work in a directory, behind one balancer."""

    def __init__(self, random: Random, directory: Path, balancer: type[Balancer], server: Program) -> None:
        self.counts: Counter[str] = Counter({"restarts": 0, "kills": 0})
        self.problems: list[str] = []
        self._random = random
        self._directory = directory
        self._balancer = balancer
        self._server = server
        self._clients: list[Client] = []

    async def work(self, budget: Budget, kills_every: int) -> None:
        """Replace one process after the other until the budget is spent or something is wrong."""
        async with AsyncExitStack() as stack:
            dsn = stack.enter_context(shared().database())
            delay_seconds = self._balancer.delay_seconds
            processes = [
                Process(f"lazulite-{number + 1}", dsn, delay_seconds, self._directory, self._server)
                for number in range(PROCESSES)
            ]
            for process in processes:
                stack.callback(process.close)
                process.start()
            balancer = self._balancer(self._directory, [process.address for process in processes])
            stack.callback(balancer.close)
            await self._prepare(balancer.address)
            for client in self._clients:
                stack.push_async_callback(client.close)
            await self._roll(budget, kills_every, processes, balancer)
            for client in self._clients:
                await client.verify()
        self._judge()

    async def _prepare(self, host: str) -> None:
        connection = await Connection.open(host)
        answer = await connection.ask(_create_table())
        assert answer.status == 201, answer
        assert json.loads(answer.body)["odata.metadata"].startswith(f"http://{HOST_STYLE}/$metadata"), answer
        await connection.close()
        self._clients = [Client(number, host, Random(self._random.random()), self.counts) for number in range(CLIENTS)]

    async def _roll(self, budget: Budget, kills_every: int, processes: list[Process], balancer: Balancer) -> None:
        over = asyncio.Event()
        load = [asyncio.create_task(client.run(over.is_set)) for client in self._clients]
        try:
            done = 0
            while budget.more(done) and not self.problems:
                number = done % PROCESSES
                if done % kills_every == kills_every - 1:
                    await self._kill(processes[number])
                else:
                    await self._restart(processes[number], balancer, number)
                await asyncio.to_thread(processes[number].start)
                await _until(partial(balancer.up, number), "the balancer to see a new process")
                await asyncio.sleep(balancer.settling_seconds)
                done += 1
                self._judge()
        finally:
            over.set()
            await asyncio.gather(*load)

    async def _restart(self, process: Process, balancer: Balancer, number: int) -> None:
        process.signal(signal.SIGTERM)
        if balancer.delay_seconds is None:
            await _until(lambda: not balancer.up(number), "the balancer to leave a process alone that stops")
            process.signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.join)
        if code != 0:
            self.problems.append(f"a process ended with {code} after SIGTERM")
        process.close()
        self.counts["restarts"] += 1

    async def _kill(self, process: Process) -> None:
        for client in self._clients:
            client.dying = client.excuse = True
        process.signal(signal.SIGKILL)
        await asyncio.to_thread(process.join)  # Until then the kernel accepts connections that get no response.
        for client in self._clients:
            client.dying = False
        process.close()
        self.counts["kills"] += 1

    def _judge(self) -> None:
        """Take over what the clients have to say since the last time; the kill before this, if any, is over."""
        for client in self._clients:
            failures, client.failures = client.failures, []
            for failure in failures:
                if failure.excused:
                    self.counts[f"{failure.kind} lost in kills"] += 1
                else:
                    self.problems.append(f"{self._balancer.name}: {failure.kind} failed: {failure.text}")


def _create_table() -> bytes:
    """Return a request that names the account in the host, and claims to have come by another proxy."""
    claimed = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "elsewhere.example"}
    body = json.dumps({"TableName": TABLE}).encode()
    headers = {"Host": HOST_STYLE, "Content-Type": "application/json", **claimed}
    return assembled("POST", f"/Tables?{SAS}", body, headers)


async def _until(condition: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(until, condition, what)


def roll(
    budget: Budget,
    seed: int,
    directory: Path,
    balancer: type[Balancer],
    *,
    kills_every: int = KILLS_EVERY,
    server: Program = LAZULITE,
) -> Report:
    """Run the campaign behind one balancer."""
    rolling = Rolling(Random(seed), directory, balancer, server)
    try:
        asyncio.run(rolling.work(budget, kills_every))
    except AssertionError as error:  # A process did not start, or a balancer saw nothing.
        rolling.problems.append(str(error))
    return Report(rolling.counts, tuple(rolling.problems[:FAILURES_REPORTED_MAX]))


def run(budget: Budget, seed: int, directory: Path) -> Report:
    """Run the campaign behind each balancer that is here, for the same number of restarts and kills."""
    counts: dict[str, int | str] = {}
    problems: tuple[str, ...] = ()
    for balancer, share in zip(found := present(), budget.shares(len(found)), strict=True):
        place = directory / balancer.name
        place.mkdir()
        report = roll(share, seed, place, balancer)
        counts |= {f"{balancer.name}: {what}": count for what, count in report.counts.items()}
        problems += report.problems
    return Report(counts or {"not run:": "neither haproxy nor nginx is installed"}, problems)


ROLLING = Campaign(
    "no request behind a load balancer fails while processes are replaced; of a killed one, only writes on their way",
    "restarts and kills behind each balancer",
    1,
    run,
)
