"""A client behind a load balancer: it knows its acknowledged rows, and records each failure."""

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple
from urllib.parse import quote

from tests.torture.http_client import (
    Answer,
    Connection,
    LostConnectionError,
    Operation,
    entity_path,
    raw,
    transaction,
    write,
)

TABLE = "Rolling"
PARTITION_ROWS = 30
BATCH = 10
WRITES = ("insert", "batch")


class Failure(NamedTuple):
    """A request that was not answered as it should have been."""

    kind: str
    text: str
    excused: bool
    """It was a write on its way when a process was killed."""


class Client:
    """A client, with rows that no other client writes."""

    def __init__(self, number: int, host: str, random: Random, counts: Counter[str]) -> None:
        self.failures: list[Failure] = []
        self.dying = False
        """A process is being killed: what is asked now may be on its way to it."""
        self.excuse = False
        """A process was being killed while what is asked now was on its way."""
        self._number = number
        self._host = host
        self._random = random
        self._counts = counts
        self._connection: Connection | None = None
        self._rows = self._turns = 0
        self._known: set[str] = set()
        self._doubtful: set[str] = set()
        """Written without an answer."""

    async def run(self, over: Callable[[], bool]) -> None:
        """Do one thing after the other until it is over."""
        steps = [self._insert, self._insert, self._get, self._get, self._query, self._batch]
        while not over():
            await self._random.choice(steps)()

    async def verify(self) -> None:
        """See once more that all is there."""
        await self._query()

    async def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    @property
    def _partition(self) -> str:
        return f"{self._number}-{self._turns}"

    def _operations(self, count: int) -> list[Operation]:
        if len(self._known | self._doubtful) >= PARTITION_ROWS:
            self._known, self._doubtful = set(), set()
            self._turns += 1
        numbers = range(self._rows, self._rows + count)
        self._rows += count
        return [Operation("insert", (TABLE, self._partition, f"{each:08}"), {"Value": each}) for each in numbers]

    async def _insert(self) -> None:
        operations = self._operations(1)
        await self._write("insert", write(operations[0]), operations)

    async def _batch(self) -> None:
        operations = self._operations(BATCH)
        await self._write("batch", transaction(operations), operations)

    async def _write(self, kind: str, request: bytes, operations: list[Operation]) -> None:
        expected = [204] * len(operations)
        rows = {operation.key[2] for operation in operations}
        answer = await self._ask(kind, request, lambda answer: answer.statuses() == expected)
        (self._doubtful if answer is None else self._known).update(rows)

    async def _get(self) -> None:
        if self._known:
            row = self._random.choice(sorted(self._known))
            path = entity_path((TABLE, self._partition, row))
            await self._ask("get", raw("GET", path), lambda answer: json.loads(answer.body)["Value"] == int(row))

    async def _query(self) -> None:
        if self._rows:
            text = quote(f"PartitionKey eq '{self._partition}'")
            request = raw("GET", f"{TABLE}()", query=f"$filter={text}")
            await self._ask("query", request, self._is_all)

    def _is_all(self, answer: Answer) -> bool:
        found = {entity["RowKey"] for entity in json.loads(answer.body)["value"]}
        return self._known <= found <= self._known | self._doubtful

    async def _ask(self, kind: str, request: bytes, right: Callable[[Answer], bool]) -> Answer | None:
        """Return a right answer; None if there is none, which is noted."""
        self.excuse = self.dying
        try:
            if self._connection is None:
                self._connection = await Connection.open(self._host)
            answer = await self._connection.ask(request)
            if "close" in answer.headers.get("connection", ""):
                await self.close()
            self._counts[kind] += 1
            if answer.status < 300 and right(answer):
                return answer
            text = f"{answer.status} {answer.body[:200]!r}"
            excusable = answer.status in (502, 503, 504)
        except LostConnectionError as error:
            await self.close()
            text, excusable = f"no answer: {error}", True
        self.failures.append(Failure(kind, text, excusable and kind in WRITES and self.excuse))
        return None
