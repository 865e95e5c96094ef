"""The Queue service that the fuzzers talk to. A get claims messages, so it may change rows."""

from lazulite.auth.canonicalize import string_to_sign
from lazulite.queue.service import QueueService

from .world import DATE, ROOT, Exchange, World

QUEUE = "jobs"
TEXTS = ("first", "second")


class QueueWorld(World):
    """A service with the queue `jobs`, which has messages, and another one."""

    reading = frozenset({"HEAD", "OPTIONS"})
    headers = {  # noqa: RUF012 - as in the base class, a table
        "host": "127.0.0.1:10001",
        "content-type": "application/xml",
        "x-ms-date": DATE,
        "x-ms-version": "2021-02-12",
    }
    string_to_sign = staticmethod(string_to_sign)
    make = QueueService

    def fill(self) -> None:
        """Make the queues and the messages."""
        for name in (QUEUE, "other"):
            made = self.ask("PUT", ROOT + name, headers={"x-ms-meta-a": "1"})
            assert made.status == 201, made.response
        for text in TEXTS:
            assert self.put(f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()).status == 201

    def put(self, body: bytes, query: str = "") -> Exchange:
        """Put a message."""
        return self.ask("POST", f"{ROOT}{QUEUE}/messages", query, body=body)
