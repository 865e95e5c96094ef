"""Clients of a queue that note all requests and responses: producers, consumers, and one that looks.

A consumer deletes most of what it gets, updates or abandons the rest, and now and then uses an old receipt.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import NamedTuple

from tests.torture.http_client import Answer, Connection, LostConnectionError, UnexpectedAnswerError

from .history import NEVER, Event, History, Kind, Seen, true_time
from .wire import DONE, Wire, read

TIMEOUTS = (1, 1, 1, 2, 5, 30)
"""Visibility timeouts of gets, in seconds."""
ASKED = (1, 1, 4, 32)
LIVES = (7 * 24 * 3600, 7 * 24 * 3600, 7 * 24 * 3600, NEVER, 2, 3600)
BACKLOG_MAX = 250
"""Producers pause while so many messages are there."""
OLD_RECEIPTS_MAX = 50
UNAVAILABLE = 503
REJECTIONS = (400, 404)
"""400: a message would be invisible for longer than it lives."""
_PAUSE_SECONDS, _BUSY_SECONDS = 0.01, 0.1


class Held(NamedTuple):
    """A message with a receipt."""

    number: int
    id: str
    receipt: str


class Shared:
    """What the clients of a queue share.

    Args:
        queue: its name.
        history: of the queue.
        wires: the servers that run; clients choose one each time that they connect.
        counts: counts what was done.
        random: the source of all choices.
        timeouts: visibility timeouts of gets, in seconds.
    """

    def __init__(
        self,
        queue: str,
        history: History,
        wires: Callable[[], Sequence[Wire]],
        counts: Counter[str],
        random: Random,
        timeouts: Sequence[int] = TIMEOUTS,
    ) -> None:
        self.queue = queue
        self.history = history
        self.wires = wires
        self.counts = counts
        self.random = random
        self.timeouts = timeouts
        self.numbers = itertools.count(1)
        self.versions = itertools.count(1)
        self.backlog = 0
        self.over = asyncio.Event()
        """Set when the clients are to end: at once, where the servers are gone."""


class Client:
    """One client on one connection at a time."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.random = Random(shared.random.random())
        self._connection: Connection | None = None
        self._wire: Wire | None = None
        self._old: list[Held] = []

    async def run(self, turn: "Callable[[Client], Awaitable[None]]") -> None:
        """Take turns until it is over.

        Raises:
            UnexpectedAnswerError: see there.
        """
        try:
            while not self.shared.over.is_set():
                try:
                    await turn(self)
                except LostConnectionError:
                    await self.close()
                    await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            await self.close()

    async def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def ask(self, event: Event, message: str = "") -> Event:
        """Do an operation, and note it.

        Raises:
            LostConnectionError: it was not answered, or the server was unavailable.
            UnexpectedAnswerError: see there.
        """
        shared = self.shared
        connection, wire = await self._connected()
        request = wire.spell(shared.queue, event, message)
        token = shared.history.begin(event)
        answer = await connection.ask(request)
        if answer.status == UNAVAILABLE:
            shared.counts[f"answered with {answer.status}"] += 1
            await asyncio.sleep(_BUSY_SECONDS)
            raise LostConnectionError(str(answer.status))
        done = answer.status == DONE[event.kind]
        if not done and answer.status not in REJECTIONS:
            raise UnexpectedAnswerError(f"{event}: {answer.status} {answer.body!r}")
        seen, count = read(event, message, answer) if done else ((), 0)
        shared.counts[event.kind if done else f"{event.kind} rejected"] += 1
        return shared.history.end(token, done=done, seen=seen, count=count)

    async def ask_plainly(self, method: str) -> Answer:
        """Create (PUT) or delete the queue."""
        connection, wire = await self._connected()
        return await connection.ask(wire.queue(method, self.shared.queue))

    async def _connected(self) -> tuple[Connection, Wire]:
        if self._connection is None or self._wire is None:
            wires = self.shared.wires()
            if not wires:
                raise LostConnectionError("no server runs")
            self._wire = self.random.choice(wires)
            self._connection = await Connection.open(self._wire.host)
        return self._connection, self._wire

    # --- turns

    async def produce(self) -> None:
        """Put a message."""
        shared, random = self.shared, self.random
        if shared.backlog >= BACKLOG_MAX:
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        delay = random.choice((0, 0, 0, 0, 0, 0, 0, 1))
        put = Event(Kind.PUT, true_time(), number=next(shared.numbers), seconds=delay, ttl=random.choice(LIVES))
        shared.backlog += put.ttl > min(LIVES)
        answered = await self.ask(put)
        if not answered.seen:
            raise UnexpectedAnswerError(f"{put}: rejected, as if the queue were gone")
        [seen] = answered.seen
        if random.random() < 0.05:  # The receipt of a put is as good as any, until the message is got.
            await self._finish(Held(put.number, seen.id, seen.receipt))

    async def consume(self) -> None:
        """Get messages, and deal with each."""
        random = self.random
        get = Event(Kind.GET, true_time(), seconds=random.choice(self.shared.timeouts), asked=random.choice(ASKED))
        got = await self.ask(get)
        for seen in got.seen:
            await self._finish(Held(seen.number, seen.id, seen.receipt))
        if not got.seen:
            await asyncio.sleep(_PAUSE_SECONDS)

    async def look(self) -> None:
        """Peek, count or, rarely, clear."""
        random = self.random
        kind = random.choices((Kind.PEEK, Kind.COUNT, Kind.CLEAR), (60, 60, 4))[0]
        asked = random.choice((1, 8, 32)) if kind is Kind.PEEK else 0
        await self.ask(Event(kind, true_time(), asked=asked))
        if kind is Kind.CLEAR:
            self.shared.backlog = 0
        await asyncio.sleep(_PAUSE_SECONDS)

    async def drain(self) -> None:
        """Get messages for an hour, until there are none."""
        while (await self.ask(Event(Kind.GET, true_time(), seconds=3600, asked=32))).seen:
            pass

    async def _finish(self, held: Held) -> None:
        """Delete, update or abandon a message; perhaps try an old receipt first."""
        random = self.random
        if self._old and random.random() < 0.2:
            await self._change(random.choice(self._old), deletes=random.random() < 0.5)
        choice = random.random()
        if choice < 0.6:
            await self._delete(held)
        elif choice < 0.85:
            seen = await self._change(held, deletes=False)
            if seen and random.random() < 0.5:
                await self._delete(Held(held.number, held.id, seen[0].receipt))
        self._old = [*self._old[-OLD_RECEIPTS_MAX:], held]

    async def _delete(self, held: Held) -> None:
        if (await self._try(held, deletes=True)).done:
            self.shared.backlog -= 1

    async def _change(self, held: Held, *, deletes: bool) -> Sequence[Seen]:
        return (await self._try(held, deletes=deletes)).seen

    async def _try(self, held: Held, *, deletes: bool) -> Event:
        if deletes:
            event = Event(Kind.DELETE, true_time(), number=held.number, receipt=held.receipt)
        else:
            random = self.random
            version = next(self.shared.versions) if random.random() < 0.5 else -1
            seconds = random.choice((0, 0, 1, 2, 4))
            event = Event(
                Kind.UPDATE, true_time(), 0, None, held.number, seconds, version=version, receipt=held.receipt
            )
        return await self.ask(event, held.id)
