"""The requests of `lazulite queue`."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from lazulite.cli.service_client import Reach, ServiceClient

REACH = Reach("queue", "rdlcaw")


class Peeked(NamedTuple):
    """The first visible messages of a queue."""

    messages: tuple[Element, ...]
    date: str
    """The server's time."""

    def seconds_since(self, date: str) -> float:
        """Return the time from a date to that of the response, both as HTTP writes dates: the server's clock."""
        return (parsedate_to_datetime(self.date) - parsedate_to_datetime(date)).total_seconds()


def names(client: ServiceClient) -> Iterator[str]:
    """Yield the names of all queues. Raises as `ServiceClient.ask`."""
    for root in client.pages("", {"comp": "list"}):
        yield from (name.text or "" for name in root.iterfind("Queues/Queue/Name"))


def message_count(client: ServiceClient, queue: str) -> int:
    """Return the approximate number of messages. Raises likewise."""
    return int(client.ask("GET", queue, {"comp": "metadata"}).headers["x-ms-approximate-messages-count"])


def peek(client: ServiceClient, queue: str, messages_max: int) -> Peeked:
    """Return the first visible messages, and keep them. Raises likewise."""
    given = {"peekonly": "true", "numofmessages": str(messages_max)}
    answer = client.ask("GET", f"{queue}/messages", given)
    found = () if answer.root is None else tuple(answer.root.iterfind("QueueMessage"))
    return Peeked(found, answer.headers["date"])


def create(client: ServiceClient, queue: str) -> None:
    """Create a queue. Raises likewise."""
    client.ask("PUT", queue)


def delete(client: ServiceClient, queue: str) -> None:
    """Delete a queue with its messages. Raises likewise."""
    client.ask("DELETE", queue)


def put(client: ServiceClient, queue: str, text: str) -> None:
    """Put a message at the end. Raises likewise."""
    body = f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>"
    client.ask("POST", f"{queue}/messages", body=body.encode())


def clear(client: ServiceClient, queue: str) -> None:
    """Delete all messages. Raises likewise."""
    client.ask("DELETE", f"{queue}/messages")
