"""One client: an operation of any kind on a partition, sent, and recorded with what came of it."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from .connection import Connection, UnavailableError
from .model import ANY, ROWS, Change, Get, Query, Verb, Write
from .recorder import Recorder
from .wire import (
    Wire,
    entities,
    read_change,
    read_entity,
    read_partition,
    read_transaction,
)

KINDS = {"gets": 25, "queries": 15, "changes": 45, "transactions": 15}
"""The operations, and how often each is chosen."""

_SHAPES: Sequence[tuple[Verb, str]] = (
    *[(Verb.INSERT, "")] * 3,
    *[(Verb.REPLACE, "known"), (Verb.MERGE, "known")] * 3,
    *[(Verb.REPLACE, ""), (Verb.MERGE, ""), (Verb.DELETE, "known")] * 2,
    *[(Verb.REPLACE, "any"), (Verb.MERGE, "any"), (Verb.DELETE, "any")],
)
"""Verb and If-Match of a change, as often as they are chosen."""


class Client:
    """Sends one operation at a time. Two clients share `now`, which returns another moment each time."""

    def __init__(
        self, wire: Wire, connection: Connection, dice: random.Random, now: Callable[[], int], counts: Counter[str]
    ) -> None:
        self.wire = wire
        self._connection = connection
        self._random = dice
        self.counts = counts
        self._now = now
        self.pause_seconds = 0.0
        """After a 5xx: how long until the next operation."""

    def continue_on(self, connection: Connection) -> None:
        """Use another connection."""
        self._connection.close()
        self._connection = connection

    async def operate(self, recorder: Recorder) -> None:
        """Do any operation.

        Raises:
            ConnectionError: the connection was lost.
            UnexpectedAnswerError: the answer is none of the operation's.
        """
        kinds: dict[str, Callable[[Recorder], Awaitable[None]]] = {
            "gets": self.get,
            "queries": self.query,
            "changes": self.change,
            "transactions": self.transaction,
        }
        kind = self._random.choices(list(KINDS), list(KINDS.values()))[0]
        try:
            await kinds[kind](recorder)
        except UnavailableError:
            self.counts["unavailable"] += 1
            await asyncio.sleep(self.pause_seconds)
        else:
            self.counts[kind] += 1

    async def get(self, recorder: Recorder) -> None:
        row, invoked = self._random.randrange(ROWS), self._now()
        seen = read_entity(await self._connection.exchange(self.wire.get(recorder.name, row)))
        recorder.history.append(Get(invoked, self._now(), row, None if seen is None else seen.entity))
        recorder.see(row, seen)

    async def query(self, recorder: Recorder) -> None:
        invoked = self._now()
        rows = read_partition(await self._connection.exchange(self.wire.query(recorder.name)))
        recorder.history.append(Query(invoked, self._now(), entities(rows)))
        for row, seen in enumerate(rows):
            recorder.see(row, seen)

    async def change(self, recorder: Recorder) -> None:
        invoked = self._now()
        change, etag = self._choose(recorder, self._random.randrange(ROWS))
        request = self.wire.change(recorder.name, change, invoked, etag)
        await self._write(recorder, invoked, [change], request)

    async def transaction(self, recorder: Recorder) -> None:
        invoked = self._now()
        rows = self._random.sample(range(ROWS), self._random.randint(2, ROWS))
        chosen = [self._choose(recorder, row) for row in rows]
        request = self.wire.transaction(recorder.name, chosen, invoked)
        await self._write(recorder, invoked, [change for change, _ in chosen], request)

    def _choose(self, recorder: Recorder, row: int) -> tuple[Change, str | None]:
        """Return any change to a row, and the If-Match to send."""
        verb, match = self._random.choice(_SHAPES)
        known = recorder.known[row]
        only_b = self._random.random() < 0.5
        if not match:
            return Change(verb, row, None, only_b), None
        if match == "any" or known is None:
            return Change(verb, row, ANY, only_b), "*"
        return Change(verb, row, known.writer, only_b), known.etag

    async def _write(self, recorder: Recorder, invoked: int, changes: Sequence[Change], request: bytes) -> None:
        try:
            answer = await self._connection.exchange(request)
        except (ConnectionError, UnavailableError):  # Of a 503, too: what failed may be on the disk.
            recorder.history.append(Write(invoked, None, tuple(changes)))
            recorder.unanswered += 1
            self.counts["unanswered writes"] += 1
            raise
        alone = len(changes) == 1
        rejected, etags = read_change(answer) if alone else read_transaction(answer, len(changes))
        recorder.history.append(Write(invoked, self._now(), tuple(changes), rejected))
        if rejected is not None:
            self.counts["rejected writes"] += 1
            return
        for change, etag in zip(changes, etags, strict=True):
            if change.verb is Verb.DELETE:
                recorder.known[change.row] = None
            else:
                recorder.learn(change.row, etag, invoked)
