"""`lazulite queue`: the queues of a running server and their messages."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from lazulite.cli.errors import CommandError
from lazulite.cli.service_client import ServiceAccess, ServiceClient

ACCESS = ServiceAccess("queue", "rdlcaw")

STANDARD = "-"
"""In place of a text: standard input."""
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_FIELDS = {
    "id": "MessageId",
    "inserted": "InsertionTime",
    "expires": "ExpirationTime",
    "dequeues": "DequeueCount",
    "text": "MessageText",
}
"""A field of a printed message -> the element of a response."""


class PeekedMessages(NamedTuple):
    """The first visible messages of a queue."""

    messages: tuple[Element, ...]
    date: str
    """The server's time."""

    def seconds_since(self, date: str) -> float:
        """Return the time from a date to that of the response, both as HTTP writes dates: the server's clock."""
        return (parsedate_to_datetime(self.date) - parsedate_to_datetime(date)).total_seconds()


def names(client: ServiceClient) -> Iterator[str]:
    """Yield the names of all queues. Raises as `ServiceClient.send`."""
    for root in client.pages("", {"comp": "list"}):
        yield from (name.text or "" for name in root.iterfind("Queues/Queue/Name"))


def message_count(client: ServiceClient, queue: str) -> int:
    """Return the approximate number of messages. Raises likewise."""
    return int(client.send("GET", queue, {"comp": "metadata"}).headers["x-ms-approximate-messages-count"])


def peek(client: ServiceClient, queue: str, messages_max: int) -> PeekedMessages:
    """Return the first visible messages, and keep them. Raises likewise."""
    given = {"peekonly": "true", "numofmessages": str(messages_max)}
    answer = client.send("GET", f"{queue}/messages", given)
    found = () if answer.root is None else tuple(answer.root.iterfind("QueueMessage"))
    return PeekedMessages(found, answer.headers["date"])


def create(client: ServiceClient, queue: str) -> None:
    """Create a queue. Raises likewise."""
    client.send("PUT", queue)


def delete(client: ServiceClient, queue: str) -> None:
    """Delete a queue with its messages. Raises likewise."""
    client.send("DELETE", queue)


def put(client: ServiceClient, queue: str, text: str) -> None:
    """Put a message at the end. Raises likewise."""
    body = f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>"
    client.send("POST", f"{queue}/messages", body=body.encode())


def clear(client: ServiceClient, queue: str) -> None:
    """Delete all messages. Raises likewise."""
    client.send("DELETE", f"{queue}/messages")


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Run the action that the command line names."""
    with ServiceClient.from_args(args, environ, ACCESS) as client:
        _ACTIONS[args.action](args, client)
    return 0


def _ls(_: Namespace, client: ServiceClient) -> None:
    for name in names(client):
        print(name)


def _create(args: Namespace, client: ServiceClient) -> None:
    create(client, args.queue)


def _put(args: Namespace, client: ServiceClient) -> None:
    put(client, args.queue, sys.stdin.read() if args.text == STANDARD else args.text)


def _rm(args: Namespace, client: ServiceClient) -> None:
    if not args.yes:
        count = message_count(client, args.queue)
        raise CommandError(f"pass --yes to delete the queue {args.queue}; number of its messages: {count:,}", 2)
    delete(client, args.queue)


def _get(args: Namespace, client: ServiceClient) -> None:
    for message in peek(client, args.queue, args.count).messages:
        fields: dict[str, str | int] = {name: message.findtext(element) or "" for name, element in _FIELDS.items()}
        print(json.dumps({**fields, "dequeues": int(fields["dequeues"])}, ensure_ascii=False))


def _clear(args: Namespace, client: ServiceClient) -> None:
    clear(client, args.queue)


def _stats(args: Namespace, client: ServiceClient) -> None:
    queues = [args.queue] if args.queue is not None else list(names(client))
    rows = [("queue", "messages", "oldest"), *(_stats_of(client, name) for name in queues)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, count, age in rows:
        print(f"{name:<{widths[0]}}  {count:>{widths[1]}}  {age}")


def _stats_of(client: ServiceClient, name: str) -> tuple[str, str, str]:
    """Return the name, the approximate number of messages, and the age of the message that is the next to be got."""
    peeked = peek(client, name, 1)
    age = [_duration(peeked.seconds_since(each.findtext("InsertionTime") or "")) for each in peeked.messages]
    return name, f"{message_count(client, name):,}", age[0] if age else "-"


def _duration(seconds: float) -> str:
    """Return a duration in its two greatest units, such as `2h 5m`."""
    left, words = max(0, int(seconds)), list[str]()
    for size, unit in _UNITS:
        units, left = divmod(left, size)
        if units or words:
            words.append(f"{units}{unit}")
    return " ".join(words[:2]) or "0s"


_ACTIONS = {
    "ls": _ls,
    "list": _ls,
    "create": _create,
    "put": _put,
    "get": _get,
    "peek": _get,
    "rm": _rm,
    "clear": _clear,
    "stats": _stats,
}
