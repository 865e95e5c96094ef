"""Queues on one store: the server is killed or asked to stop, and starts again with another time of day.

An epoch is the life of a queue, from its creation to its deletion, through a few ends of the server. Producers put
numbered messages, consumers get, update, delete and abandon them. At the end the clock is set past all holds, the
queue is emptied, and each message is accounted for. The next queue has the same name.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random

from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import LostConnectionError, UnexpectedAnswerError

from .checker import check
from .client import Client, Shared
from .history import History, true_time
from .order import order_of
from .servers import OneServer, QueueServers

PRODUCERS, CONSUMERS, DRAINERS = 4, 10, 3
ROUNDS_MAX = 5
"""Ends of servers in an epoch are at most so many."""
PROBLEMS_REPORTED_MAX = 20


class QueueRun:
    """A campaign at work: epoch after epoch.

    Args:
        seed: of all choices.
        servers: what serves.
        counts: counts what was done.
        directory: where the history of a queue goes that breaks a promise.
    """

    def __init__(self, seed: int, servers: QueueServers, counts: Counter[str], directory: Path) -> None:
        self._directory = directory
        self.problems: list[str] = []
        self._random = Random(seed)
        self._servers = servers
        self._counts = counts
        self._epochs = 0
        self._overtaken = Counter[str]()

    async def work(self, budget: Budget, unit: str) -> Report:
        """Go on until so many of the unit are counted, the time is over, or something is wrong."""
        try:
            while not self.problems and budget.more(self._counts[unit]):
                try:
                    self.problems += await self._epoch()
                except (AssertionError, LostConnectionError, UnexpectedAnswerError) as error:
                    self.problems.append(f"{type(error).__name__}: {error}")
        finally:
            await self._servers.close()
        order = self._overtaken
        counts: dict[str, int | str] = {unit: self._counts[unit], "queues": self._epochs, **sorted_(self._counts)}
        counts["overtaken"] = f"{order['overtaken']} of {order['messages']}, by {order['by']} at most"
        return Report(counts, tuple(self.problems[:PROBLEMS_REPORTED_MAX]))

    async def _epoch(self) -> list[str]:
        servers, history = self._servers, History()
        self._epochs += 1
        queue = servers.name(self._epochs)
        shared = Shared(queue, history, servers.wires, self._counts, self._random, servers.timeouts)
        time = await servers.begin()
        await plainly(shared, "PUT", 201)
        for number in range(self._random.randint(1, ROUNDS_MAX)):
            if number:
                await servers.again()
            await self._round(shared)
            if self.problems:  # The queue itself may be lost.
                return []
        await servers.past_holds()
        drain = true_time()
        await drained(shared)
        await plainly(shared, "DELETE", 204)
        await servers.end()
        history.settle()
        problems = await asyncio.to_thread(check, history.events, time, drain)
        if problems:
            lines = (repr(event) for event in history.events)
            (self._directory / "history").write_text("\n".join([f"{time} {drain}", *lines]))
        order = await asyncio.to_thread(order_of, history.events)
        self._overtaken.update(messages=order.messages, overtaken=order.overtaken)
        self._overtaken["by"] = max(self._overtaken["by"], order.by)
        return problems

    async def _round(self, shared: Shared) -> None:
        """Let the clients work while the servers break; end with no server, and no operation under way."""

        async def disturb() -> None:
            try:
                await self._servers.disturb()
            finally:
                await self._servers.end()

        self.problems += await working(shared, disturb())
        shared.history.settle()


async def working(shared: Shared, end: Awaitable[None]) -> list[str]:
    """Let clients work until something ends; return what they found by themselves."""
    shared.over = asyncio.Event()
    shared.backlog = 0
    turns: list[Callable[[Client], Awaitable[None]]] = [Client.look]
    turns += [Client.produce] * PRODUCERS + [Client.consume] * CONSUMERS
    clients = asyncio.gather(*(Client(shared).run(turn) for turn in turns), return_exceptions=True)
    try:
        await end
    finally:
        shared.over.set()
        results = await clients
    problems = []
    for result in results:
        if isinstance(result, UnexpectedAnswerError):
            problems.append(str(result))
        elif result is not None:
            raise result
    return problems


async def drained(shared: Shared) -> None:
    """Get all messages that there are, and count them."""

    async def drain(client: Client) -> None:
        try:
            await client.drain()
        finally:
            await client.close()

    await asyncio.gather(*(drain(Client(shared)) for _ in range(DRAINERS)))


async def plainly(shared: Shared, method: str, status: int) -> None:
    """Create (PUT) or delete the queue.

    Raises:
        UnexpectedAnswerError: the response has another status.
    """
    client = Client(shared)
    try:
        answer = await client.ask_plainly(method)
    finally:
        await client.close()
    if answer.status != status:
        raise UnexpectedAnswerError(f"{method} of the queue: {answer.status} {answer.body!r}")


def sorted_(counts: Counter[str]) -> dict[str, int]:
    """Return counts in the order of their names."""
    return dict(sorted(counts.items()))


def run(budget: Budget, seed: int, directory: Path, mutation: str = "", flags: Sequence[str] = ()) -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` and `flags` are those of `OneServer`."""
    counts = Counter[str]()
    servers = OneServer(directory / "data", Random(seed), counts, mutation, flags)
    return asyncio.run(QueueRun(seed, servers, counts, directory).work(budget, "kills"))


QUEUE = Campaign(
    "each message is delivered until it is deleted, to one consumer at a time, through kills and steps of the clock",
    "kills",
    2,
    run,
)
