"""All clients of a campaign, and the judgement of a store by what they know."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from tests.sdk.ledger import Store, strays

from .expected import Log, LoggedJournal
from .http_client import Connection, LostConnectionError, create_table
from .observation import read_store
from .workload import SHARED, Client, Known

PROBLEMS_REPORTED_MAX = 20
_LONG = re.compile(r"'([^']{20})[^']{20,}'")


class Clients:
    """Clients that work at the same time."""

    def __init__(self, size: int, random: Random, directory: Path) -> None:
        self.known = Known(Counter(), {}, set())
        self.log = Log(directory)
        self._seen: Counter[str] = Counter()
        self._random = random
        self._clients = [Client(number, self.known, self.log) for number in range(size)]
        self._new = True

    @property
    def journals(self) -> list[LoggedJournal]:
        """What each client knows."""
        return [client.journal for client in self._clients]

    def counts(self) -> dict[str, int]:
        """Return what the clients did, as far as it was answered, and what was seen of it afterwards."""
        done = self.known.counts
        return {"operations answered": done.total(), **dict(sorted(done.items())), **dict(sorted(self._seen.items()))}

    async def verify(self, host: str) -> list[str]:
        """Hold a server's store against what all clients know; without problems, begin a round with what it says."""
        try:
            store = await self._observe(host)
        except (AssertionError, LostConnectionError) as error:
            return [f"the store cannot be read: {error}"]
        problems = [problem for journal in self.journals for problem in journal.problems(store)]
        problems += strays(self.journals, store)
        if not problems:
            self._settle(store)
        return [_short(problem) for problem in problems[:PROBLEMS_REPORTED_MAX]]

    async def load(self, host: str, gone: Callable[[], bool]) -> list[str]:
        """Let all clients work until the server is gone, which it may be once `gone` says so; return what was wrong."""
        runs = [client.run(host, Random(self._random.random()), gone) for client in self._clients]
        return _reported(await asyncio.gather(*runs, return_exceptions=True))

    async def _observe(self, host: str) -> Store:
        connection = await Connection.open(host)
        try:
            if self._new:
                answer = await connection.ask(create_table(SHARED))
                assert answer.status == 201, f"no table: {answer.status}"
                self._new = False
            return await read_store(connection, SHARED)
        finally:
            await connection.close()

    def _settle(self, store: Store) -> None:
        for journal in self.journals:
            there = journal.took_effect(store)
            if there is not None:
                self._seen["in flight, there" if there else "in flight, absent"] += 1
            journal.settle(store)
            journal.changes.clear()
        self._seen["rows verified"] += len(store)
        self.known.given.clear()
        self.log.begin(self.journals)


def _reported(outcomes: Iterable[BaseException | None]) -> list[str]:
    """Return broken promises as sentences; raise what is anything else."""
    problems = []
    for outcome in outcomes:
        if isinstance(outcome, AssertionError):
            problems.append(_short(str(outcome)))
        elif outcome is not None:
            raise outcome
    return problems


def _short(problem: str) -> str:
    """Return a sentence with its texts cut off."""
    return _LONG.sub(r"'\1…'", problem)
