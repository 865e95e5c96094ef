"""Queues and their messages."""

from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from lazulite.resources.policies import (
    Policies,
    Policy,
    metadata_headers,
    metadata_of,
    read_policies,
    write_policies,
)
from lazulite.resources.sender import Call, Sender, find, pages, send

MESSAGES_MAX = 32
"""The most messages of one request."""


class QueueState(NamedTuple):
    """A queue without its messages."""

    metadata: Mapping[str, str]
    messages: int
    """Their approximate number, those that are hidden included."""


class Message(NamedTuple):
    """A message to be put."""

    text: str
    hidden_seconds: int = 0
    """How long it cannot be seen at first."""
    lives_seconds: int | None = None
    """How long it lives; -1: forever; None: as the service decides, 7 days."""


class ReceivedMessage(NamedTuple):
    """A message of a response."""

    text: str
    lives_seconds: int
    """How long it still lives, at least 1."""


def queue_names(sender: Sender) -> Iterator[str]:
    """Yield the names of all queues. Raises as `send`."""
    for root in pages(sender, Call("queue", "GET", "", {"comp": "list"})):
        yield from (name.text or "" for name in root.iterfind("Queues/Queue/Name"))


def find_queue(sender: Sender, queue: str) -> QueueState | None:
    """Return a queue; None if there is none. Raises as `send`."""
    reply = find(sender, Call("queue", "GET", queue, {"comp": "metadata"}))
    if reply is None:
        return None
    return QueueState(metadata_of(reply.headers), int(reply.headers["x-ms-approximate-messages-count"]))


def create_queue(sender: Sender, queue: str, metadata: Mapping[str, str]) -> None:
    """Create a queue. Raises as `send`."""
    send(sender, Call("queue", "PUT", queue, {}, metadata_headers(metadata)))


def set_queue_metadata(sender: Sender, queue: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a queue. Raises as `send`."""
    send(sender, Call("queue", "PUT", queue, {"comp": "metadata"}, metadata_headers(metadata)))


def queue_policies(sender: Sender, queue: str) -> dict[str, Policy]:
    """Return the access policies of a queue. Raises as `send`."""
    return read_policies(send(sender, Call("queue", "GET", queue, {"comp": "acl"})).root)


def set_queue_policies(sender: Sender, queue: str, policies: Policies) -> None:
    """Replace the access policies of a queue. Raises as `send`."""
    headers = {"Content-Type": "application/xml"}
    send(sender, Call("queue", "PUT", queue, {"comp": "acl"}, headers, write_policies(policies)))


def put_message(sender: Sender, queue: str, message: Message) -> None:
    """Put a message. Raises as `send`."""
    given = {"visibilitytimeout": str(message.hidden_seconds or "")}
    given["messagettl"] = "" if message.lives_seconds is None else str(message.lives_seconds)
    body = f"<QueueMessage><MessageText>{escape(message.text)}</MessageText></QueueMessage>"
    send(sender, Call("queue", "POST", f"{queue}/messages", given, {"Content-Type": "application/xml"}, body.encode()))


def clear_messages(sender: Sender, queue: str) -> None:
    """Delete all messages of a queue. Raises as `send`."""
    send(sender, Call("queue", "DELETE", f"{queue}/messages"))


def peek_messages(sender: Sender, queue: str) -> Sequence[ReceivedMessage]:
    """Return the first visible messages, at most `MESSAGES_MAX`, and keep them. Raises as `send`."""
    return _received(sender, queue, {"peekonly": "true"})


def get_messages(sender: Sender, queue: str, hidden_seconds: int) -> Sequence[ReceivedMessage]:
    """Return the first visible messages likewise, and hide them for so long. Raises as `send`."""
    return _received(sender, queue, {"visibilitytimeout": str(hidden_seconds)})


def _received(sender: Sender, queue: str, given: Mapping[str, str]) -> Sequence[ReceivedMessage]:
    reply = send(sender, Call("queue", "GET", f"{queue}/messages", {"numofmessages": str(MESSAGES_MAX), **given}))
    now = parsedate_to_datetime(reply.headers["date"])

    def received(each: ET.Element) -> ReceivedMessage:
        expires = parsedate_to_datetime(each.findtext("ExpirationTime") or "")
        return ReceivedMessage(each.findtext("MessageText") or "", max(1, int((expires - now).total_seconds())))

    return [received(each) for each in reply.root.iterfind("QueueMessage")]
