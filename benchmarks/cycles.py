"""The workloads of a queue: puts, and cycles: get a message, and delete it by its receipt."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

from benchmarks.load import run_asyncio
from benchmarks.processes import Server
from benchmarks.requests import Requests
from benchmarks.workload import BenchmarkError, Load, Workload

QUEUE = "bench"
TEXT_BYTES = 1024
PUT, CYCLE = "put", "get and delete"
CONNECTIONS = 64
_MESSAGE = f"<QueueMessage><MessageText>{'x' * TEXT_BYTES}</MessageText></QueueMessage>".encode()
_FOUND = re.compile(rb"<MessageId>(.+?)</MessageId>.*<PopReceipt>(.+?)</PopReceipt>")


def put_request(requests: Requests) -> bytes:
    """Return the request that puts a message of 1 KB."""
    return requests.raw("POST", f"{QUEUE}/messages", body=_MESSAGE, Content_Type="application/xml")


def delete_request(requests: Requests, response: bytes) -> bytes | None:
    """Return the request that deletes the message of a response to a get; None if there is none."""
    if (found := _FOUND.search(response)) is None:
        return None
    message, receipt = (each.decode() for each in found.groups())
    return requests.raw("DELETE", f"{QUEUE}/messages/{message}", f"popreceipt={quote(receipt, safe='')}")


class Queues:
    """Builds the workloads for a server."""

    service = "queue"

    def __init__(self, server: Server) -> None:
        self.requests = Requests(server.host, datetime.now(UTC), "q", "rwdlacup")
        self.entities = 0  # in the queue before the run

    def create(self) -> bytes:
        """Return the request that creates the queue."""
        return self.requests.raw("PUT", QUEUE, Content_Length="0")

    def clear(self) -> bytes:
        """Return the request that deletes all messages."""
        return self.requests.raw("DELETE", f"{QUEUE}/messages")

    def put(self, connections: int = CONNECTIONS, variant: str = "") -> Workload:
        """Put messages of 1 KB."""
        requests = [put_request(self.requests)]
        return Workload(PUT, 1, connections, 201, requests, variant=variant, entities=self.entities)

    def cycle(self, connections: int = CONNECTIONS, variant: str = "") -> tuple[Workload, Load]:
        """Get a message and delete it, as long as there is one; and the load, whose latencies are of one request."""
        get = self.requests.raw("GET", f"{QUEUE}/messages")
        workload = Workload(CYCLE, 1, connections, 204, [get], variant=variant, entities=self.entities)
        return replace(workload, follow=self._delete), run_asyncio

    def _delete(self, status: int, body: bytes) -> bytes | None:
        if status != 200:
            raise BenchmarkError(f"{CYCLE}: status {status}, expected 200: {body[:300]!r}")
        return delete_request(self.requests, body)
