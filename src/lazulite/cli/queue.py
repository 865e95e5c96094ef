"""`lazulite queue`: look at the queues of a running server, and clear them."""

import json
from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.queue_client import REACH, clear, message_count, names, peek
from lazulite.cli.service_client import ServiceClient

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


def _list(_: Namespace, client: ServiceClient) -> None:
    for name in names(client):
        print(name)


def _peek(args: Namespace, client: ServiceClient) -> None:
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


_ACTIONS = {"list": _list, "peek": _peek, "clear": _clear, "stats": _stats}
