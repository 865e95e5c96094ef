"""The workloads of a queue: puts, and cycles: get a message, and delete it by its receipt."""

import re
from urllib.parse import quote

from benchmarks.load import run_asyncio
from benchmarks.requests import Builder
from benchmarks.workload import BenchmarkError, Workload

QUEUE = "bench"
TEXT_BYTES = 1024
CYCLE = "get and delete"
_MESSAGE = f"<QueueMessage><MessageText>{'x' * TEXT_BYTES}</MessageText></QueueMessage>".encode()
_FOUND = re.compile(rb"<MessageId>(.+?)</MessageId>.*<PopReceipt>(.+?)</PopReceipt>")


class Queues(Builder):
    """Builds the workloads of a queue."""

    service, sas = "queue", ("q", "rwdlacup")

    def create(self) -> bytes:
        """Return the request that creates the queue."""
        return self.requests.raw("PUT", QUEUE, Content_Length="0")

    def clear(self) -> bytes:
        """Return the request that deletes all messages."""
        return self.requests.raw("DELETE", f"{QUEUE}/messages")

    def put(self, connections: int = 64) -> Workload:
        """Put messages of 1 KB."""
        put = self.requests.raw("POST", f"{QUEUE}/messages", body=_MESSAGE, Content_Type="application/xml")
        return Workload("put", 1, connections, 201, [put], entities=self.entities)

    def peek(self) -> Workload:
        """Peek at the first message."""
        peek = self.requests.raw("GET", f"{QUEUE}/messages", "peekonly=true")
        return Workload("peek", 1, 64, 200, [peek], b"<MessageId>", entities=self.entities)

    def cycle(self) -> Workload:
        """Get a message and delete it, as long as there is one; latencies are of one request."""
        get = self.requests.raw("GET", f"{QUEUE}/messages")
        return Workload(CYCLE, 1, 64, 204, [get], entities=self.entities, follow=self._delete, load=run_asyncio)

    def _delete(self, status: int, body: bytes) -> bytes | None:
        """Return the request that deletes the message of a response to a get; None if there is none."""
        if status != 200:
            raise BenchmarkError(f"{CYCLE}: status {status}, expected 200: {body[:300]!r}")
        if (found := _FOUND.search(body)) is None:
            return None
        message, receipt = (each.decode() for each in found.groups())
        return self.requests.raw("DELETE", f"{QUEUE}/messages/{message}", f"popreceipt={quote(receipt, safe='')}")
