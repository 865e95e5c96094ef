"""One client: an operation of any kind on a partition, sent, and recorded with what came of it."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from tests.torture.http_client import Answer, Connection, LostConnectionError

from .model import ANY, ROWS, Change, Get, Query, Verb, Write
from .recorder import Recorder
from .wire import entities, get_row, query_partition, read_changes, read_entity, read_partition, write_changes

KINDS = {"gets": 25, "queries": 15, "changes": 45, "transactions": 15}
"""The operations, and how often each is chosen."""

_SHAPES: Sequence[tuple[Verb, str]] = (
    *[(Verb.INSERT, "")] * 3,
    *[(Verb.REPLACE, "known"), (Verb.MERGE, "known")] * 3,
    *[(Verb.REPLACE, ""), (Verb.MERGE, ""), (Verb.DELETE, "known")] * 2,
    *[(Verb.REPLACE, "any"), (Verb.MERGE, "any"), (Verb.DELETE, "any")],
)
"""Verb and If-Match of a change, as often as they are chosen."""


class UnavailableError(Exception):
    """The answer is a 5xx: what was asked for may be done or not."""


async def exchange(connection: Connection, request: bytes) -> Answer:
    """Send a request and return the answer.

    Raises:
        LostConnectionError: the connection ended before the answer did.
        UnavailableError: the answer is a 5xx.
    """
    answer = await connection.ask(request)
    if answer.status >= 500:
        raise UnavailableError(answer)
    return answer


class Client:
    """Sends one operation at a time. Two clients share `now`, which returns another moment each time."""

    def __init__(
        self, host: str, connection: Connection, dice: random.Random, now: Callable[[], int], counts: Counter[str]
    ) -> None:
        self.host = host
        self._connection = connection
        self._random = dice
        self.counts = counts
        self._now = now
        self.pause_seconds = 0.0
        """After a 5xx: how long until the next operation."""

    def continue_on(self, connection: Connection) -> None:
        """Use another connection."""
        self.close()
        self._connection = connection

    def close(self) -> None:
        """End the connection at once."""
        self._connection.abort()

    async def operate(self, recorder: Recorder) -> None:
        """Do any operation.

        Raises:
            LostConnectionError: the connection was lost.
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
        seen = read_entity(await self.exchange(get_row(recorder.name, row)))
        recorder.history.append(Get(invoked, self._now(), row, None if seen is None else seen.entity))
        recorder.see(row, seen)

    async def query(self, recorder: Recorder) -> None:
        invoked = self._now()
        rows = read_partition(await self.exchange(query_partition(recorder.name)))
        recorder.history.append(Query(invoked, self._now(), entities(rows)))
        for row, seen in enumerate(rows):
            recorder.see(row, seen)

    async def change(self, recorder: Recorder) -> None:
        invoked = self._now()
        await self._write(recorder, invoked, [self._choose(recorder, self._random.randrange(ROWS))])

    async def transaction(self, recorder: Recorder) -> None:
        invoked = self._now()
        rows = self._random.sample(range(ROWS), self._random.randint(2, ROWS))
        await self._write(recorder, invoked, [self._choose(recorder, row) for row in rows])

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

    async def exchange(self, request: bytes) -> Answer:
        """Send a request and return the answer. Raises as `exchange`."""
        return await exchange(self._connection, request)

    async def _write(self, recorder: Recorder, invoked: int, chosen: Sequence[tuple[Change, str | None]]) -> None:
        changes = [change for change, _ in chosen]
        try:
            answer = await self.exchange(write_changes(recorder.name, chosen, invoked))
        except (LostConnectionError, UnavailableError):  # Of a 503, too: what failed may be on the disk.
            recorder.history.append(Write(invoked, None, tuple(changes)))
            recorder.unanswered += 1
            self.counts["unanswered writes"] += 1
            raise
        rejected, etags = read_changes(answer, len(changes))
        recorder.history.append(Write(invoked, self._now(), tuple(changes), rejected))
        if rejected is not None:
            self.counts["rejected writes"] += 1
            return
        for change, etag in zip(changes, etags, strict=True):
            if change.verb is Verb.DELETE:
                recorder.known[change.row] = None
            else:
                recorder.learn(change.row, etag, invoked)
