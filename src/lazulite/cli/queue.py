"""`lazulite queue`: the queues of a running server and their messages."""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.errors import CommandError
from lazulite.cli.queue_client import REACH, clear, create, delete, message_count, names, peek, put
from lazulite.cli.service_client import ServiceClient

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


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Run the action that the command line names."""
    with ServiceClient.of(args, environ, REACH) as client:
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
