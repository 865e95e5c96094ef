"""Load beside faults: clients that write, read their rows, and compare every response with their journals.

Each client has a partition of its own, and a journal of it. A write that was not acknowledged may have happened,
wholly, or may yet: it is repeated until it is acknowledged or seen. What was seen once must stay. All clients read the
*cold* rows as well, which no client changes; a query must give all of them or an error.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

from tests.sdk.ledger import Content, Journal, Key, Store
from tests.server_process import Account
from tests.torture.http_client import Answer, create_table

from .http import Effects, Http, query, send

TABLE = "Faults"
ROWS = 24
BATCH_MAX = 12
COLD_PARTITIONS = 40
COLD_ROWS = 50
_PAUSE_SECONDS = 0.02
"""Between two tries of what was rejected, as a client should."""


class Tally:
    """Counts of the clients' responses; each response wakes the tasks that wait for a count."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.rejections: Counter[str] = Counter()
        """By status and code, lost connections also."""
        self.problems: list[str] = []
        self.total = 0
        """Answers of any kind."""
        self._turn = asyncio.Event()

    def count(self, what: str) -> None:
        """Count one."""
        self.counts[what] += 1
        self.total += 1
        self._turn.set()

    def reject(self, what: str, how: str) -> None:
        """Count a rejection."""
        self.rejections[how] += 1
        self.count(f"{what} rejected")

    def problem(self, text: str) -> None:
        """Note a broken promise."""
        self.problems.append(text if len(text) < 600 else text[:300] + " … " + text[-300:])
        self._turn.set()

    async def turn(self) -> None:
        """Return at the next answer."""
        self._turn.clear()
        await self._turn.wait()


class Client:
    """One client."""

    def __init__(self, number: int, seed: int, tally: Tally) -> None:
        self._random = random.Random(f"{seed}/{number}")
        self._partition = f"p{number}"
        self._rows: list[Key] = [(TABLE, self._partition, f"{row:02}") for row in range(ROWS)]
        self._tally = tally
        self._written = 0
        self._doubtful: Effects | None = None
        self._tries = 0
        self._seen = False
        self.acknowledged = 0
        """Writes acknowledged, or found done."""
        self.journal = Journal(lambda key: key[1] == self._partition)

    async def run(self, account: Account) -> None:
        """Work until cancelled."""
        http = Http(account)
        try:
            while True:
                await self._step(http)
        finally:
            http.close()

    async def _step(self, http: Http) -> None:
        chance = self._random.random()
        if chance < 0.2:
            await self.look(http)
        elif chance < 0.4:
            await self.look_at_the_cold(http, f"cold{self._random.randrange(COLD_PARTITIONS)}")
        else:
            await self._write(http)

    async def _write(self, http: Http) -> None:
        if self._doubtful is None:
            self._doubtful = self._effects()
            self.journal.intend(self._doubtful)
        effects = self._doubtful
        self._tries += 1
        answer = await self._answer("writes", send(http, effects))
        if answer is None:
            await self.look(http)
        elif answer.outcome < 300:
            keys = [key for key, content in effects.items() if content is not None]
            etags = [etag for etag in answer.etags() if etag]
            try:
                self.journal.acknowledge(dict(zip(keys, etags, strict=True)))
            except (AssertionError, ValueError) as error:
                self._tally.problem(f"{self._partition}: {error}")
            self._done()
        elif self._tries > 1:  # Perhaps because it has been done.
            if await self.look(http, answered=True) and self._doubtful is effects:
                self._tally.problem(f"{self._partition}: {answer.outcome} {answer.code} to what was not done")
        else:
            self._tally.problem(f"{self._partition}: {answer.outcome} {answer.code} to {effects}")

    def _done(self) -> None:
        self._doubtful, self._tries, self._seen = None, 0, False
        self.acknowledged += 1
        self._tally.count("writes acknowledged")

    def _effects(self) -> Effects:
        present = [key for key in self._rows if key in self.journal.acknowledged]
        if present and self._random.random() < 0.15:
            return {self._random.choice(present): None}
        chosen = self._random.sample(self._rows, self._random.choice([1, 1, self._random.randint(2, BATCH_MAX)]))
        leaving = {key for key in chosen if key in present and self._random.random() < 0.2}
        return {key: None if key in leaving and len(chosen) > 1 else self._content() for key in chosen}

    def _content(self) -> Content:
        self._written += 1
        return {"N": self._written, "Text": "x" * self._random.randrange(2_000)}

    async def look(self, http: Http, *, answered: bool = False) -> bool:
        """Read the partition; say whether that was answered.

        Args:
            answered: no try of the doubtful write can take effect any more.
        """
        found: Store = {}

        async def asked() -> Answer:
            nonlocal found
            answer, found = await query(http, TABLE, f"PartitionKey eq '{self._partition}'")
            return answer

        if await self._answer("reads", asked()) is None:
            return False
        self._tally.count("reads answered")
        self._check(found, answered)
        return True

    def _check(self, store: Store, answered: bool) -> None:
        """Hold what was read of the partition against the journal.

        A write that was tried once and is seen is done. One that was tried again may take effect again, with another
        ETag, until a try is answered.
        """
        problems = self.journal.problems(store)
        for problem in problems:
            self._tally.problem(problem)
        if self._doubtful is None or problems:
            return
        seen = self.journal.took_effect(store)
        if seen and (answered or self._tries == 1):
            self.journal.settle(store)
            self._done()
        elif self._seen and not seen:
            self._tally.problem(f"{self._partition}: was seen, and is gone: {sorted(self._doubtful)}")
        self._seen = bool(seen) and self._doubtful is not None

    async def look_at_the_cold(self, http: Http, partition: str) -> None:
        """Read a partition that no client changes."""
        found: Store = {}

        async def asked() -> Answer:
            nonlocal found
            answer, found = await query(http, TABLE, f"PartitionKey eq '{partition}'")
            return answer

        if await self._answer("reads", asked()) is not None:
            self._tally.count("reads answered")
            if {key: stored.content for key, stored in found.items()} != cold(partition):
                self._tally.problem(f"{partition} reads wrong: {len(found)} rows")

    async def _answer(self, what: str, asked: Awaitable[Answer]) -> Answer | None:
        try:
            answer = await asked
        except TimeoutError:
            self._tally.problem(f"{self._partition}: an answer that never comes")
            return None
        except OSError as error:
            self._tally.reject(what, f"no connection ({type(error).__name__})")
        else:
            if answer.outcome < 500:
                return answer
            self._tally.reject(what, f"{answer.outcome} {answer.code}")
        await asyncio.sleep(_PAUSE_SECONDS)
        return None


def cold(partition: str) -> dict[Key, Content]:
    """The rows of a cold partition."""
    text = f"{partition} " * 100
    return {(TABLE, partition, f"{row:02}"): {"N": row, "Text": text} for row in range(COLD_ROWS)}


async def prepare(account: Account) -> None:
    """Make the table and the cold rows."""
    http = Http(account)
    try:
        answer = await http.ask(create_table(TABLE))
        assert answer.status == 201, answer
        for number in range(COLD_PARTITIONS):
            answer = await send(http, cold(f"cold{number}"))
            assert answer.outcome < 300, answer
    finally:
        http.close()


class Running(AbstractAsyncContextManager["Running"]):
    """Clients at work on a server, until the block ends."""

    def __init__(self, clients: list[Client], account: Account) -> None:
        self._clients, self._account = clients, account

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(client.run(self._account)) for client in self._clients]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
