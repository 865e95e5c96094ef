"""`lazulite queue`: look at the queues of a running server, and clear them."""

import json
from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.account_stores import choose_account
from lazulite.cli.connection_string import endpoints_of, reachable
from lazulite.cli.queue_client import QueueClient

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
    account = choose_account(args, environ)
    endpoint = endpoints_of(args, account.name)["queue"]
    with QueueClient(account, args.key, endpoint, reachable(args.queue_host)) as client:
        _ACTIONS[args.action](args, client)
    return 0


def _list(_: Namespace, client: QueueClient) -> None:
    for name in client.queues():
        print(name)


def _peek(args: Namespace, client: QueueClient) -> None:
    answer = client.ask("GET", f"{args.queue}/messages", peekonly="true", numofmessages=str(args.count))
    for message in () if answer.root is None else answer.root.iterfind("QueueMessage"):
        fields: dict[str, str | int] = {name: message.findtext(element) or "" for name, element in _FIELDS.items()}
        print(json.dumps({**fields, "dequeues": int(fields["dequeues"])}, ensure_ascii=False))


def _clear(args: Namespace, client: QueueClient) -> None:
    client.ask("DELETE", f"{args.queue}/messages")


def _stats(args: Namespace, client: QueueClient) -> None:
    names = [args.queue] if args.queue is not None else list(client.queues())
    rows = [("queue", "messages", "oldest"), *(_stats_of(client, name) for name in names)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, count, age in rows:
        print(f"{name:<{widths[0]}}  {count:>{widths[1]}}  {age}")


def _stats_of(client: QueueClient, name: str) -> tuple[str, str, str]:
    """Return the name, the approximate number of messages, and the age of the message that is the next to be got."""
    count = client.ask("GET", name, comp="metadata").headers["x-ms-approximate-messages-count"]
    peeked = client.ask("GET", f"{name}/messages", peekonly="true")
    inserted = None if peeked.root is None else peeked.root.findtext("QueueMessage/InsertionTime")
    return name, f"{int(count):,}", "-" if inserted is None else _duration(peeked.seconds_since(inserted))


def _duration(seconds: float) -> str:
    """Return a duration in its two greatest units, such as `2h 5m`."""
    left, words = max(0, int(seconds)), list[str]()
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count or words:
            words.append(f"{count}{unit}")
    return " ".join(words[:2]) or "0s"


_ACTIONS = {"list": _list, "peek": _peek, "clear": _clear, "stats": _stats}
