"""`lazulite requests`: print the requests that a running server has recorded, or one of them in full."""

import json
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lazulite.app.commands import REQUESTS, RecordedArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_server
from lazulite.control.client import Client
from lazulite.control.command import ControlError
from lazulite.protocol.query_cost import QueryCost
from lazulite.server.observability.redaction import CONTROLS

FOLLOW_SECONDS = 0.5
"""The pause between two polls."""
_SEEN_MAX = 2000
"""The ids of printed requests that a poll may return again."""
_POLL_MAX = 1000
_NONE = "no requests yet: the server records them from now on, for 15 minutes after the last look"


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print a line for each request, the oldest first; or one request in full."""
    asked = RecordedArguments(
        args.service or "", args.account or "", args.status or "", args.text or "", limit=args.limit
    )
    server = running_server(args, environ)
    try:
        if args.id is not None:
            _print_one(args, server)
        elif args.follow:
            for item in follow(server, asked, time.sleep):
                print(json.dumps(item) if args.json else _line(item), flush=True)
        else:
            found = _look(server, asked)
            for item in reversed(found):
                print(json.dumps(item) if args.json else _line(item))
            if not found and not args.json:
                print(_NONE)
    except ControlError as error:
        raise CommandError(error) from None
    return 0


def follow(server: Client, asked: RecordedArguments, pause: Callable[[float], None]) -> Iterator[Any]:
    """Yield requests as they end, the last ones first of all, until the iterator is closed.

    Args:
        server: records the requests.
        asked: which ones.
        pause: waits so many seconds.

    Raises:
        ControlError: see `Client.stream`.
    """
    seen: deque[str] = deque(maxlen=_SEEN_MAX)
    since, limit = 0.0, asked.limit
    while True:
        for item in reversed(_look(server, replace(asked, since=since, limit=limit))):
            if item["id"] not in seen:
                seen.append(item["id"])
                since = max(since, item["ended"])
                yield item
        limit = _POLL_MAX
        pause(FOLLOW_SECONDS)


def _look(server: Client, asked: RecordedArguments) -> list[Any]:
    """Return the requests that are asked for, the newest first.

    Raises:
        ControlError: see `Client.stream`; or a worker has no answer.
    """
    found = []
    items: Iterator[Any] = server.stream(REQUESTS, asked)
    for item in items:
        if "error" in item and "id" not in item:
            raise ControlError("failed", f"{item['process']}: {item['error']}")
        if "id" in item:
            found.append(item)
    return found


def _print_one(args: Namespace, server: Client) -> None:
    """Print one request in full.

    Raises:
        CommandError: it is not recorded.
    """
    found = _look(server, RecordedArguments(id=args.id, limit=1))
    if not found:
        raise CommandError(f"the request {args.id[:64]} is not recorded, or no more")
    if args.json:
        print(json.dumps(found[0]))
        return
    for line in _whole(found[0]):
        print(line.translate(CONTROLS))


def _line(item: Any) -> str:
    facts = [item["time"], str(item["status"]), f"{item['ms']:.1f} ms", item["service"], item["method"]]
    facts.append(item["path"] + item["query"])
    facts += filter(None, (item["operation"], item["error"], _cost(item), item["mistake"], item["id"]))
    return "  ".join(facts).translate(CONTROLS)


def _cost(item: Any) -> str:
    return "" if item["cost"] is None else _cost_of(item).line


def _cost_of(item: Any) -> QueryCost:
    cost = item["cost"]
    return QueryCost(**{**{name: cost[name] for name in QueryCost._fields}, "indexes": tuple(cost["indexes"])})


def _whole(item: Any) -> Iterator[str]:
    yield f"{item['time']}  {item['id']}  from {item['client']}"
    yield f"account {item['account'] or 'unknown'}, {item['operation'] or 'no operation'}, by {item['authorization']}"
    sizes = f"{item['bytes_in']:,} bytes in, {item['bytes_out']:,} out"
    yield f"{item['ms']:.3f} ms, {item['total_ms']:.3f} ms in all; {sizes}"
    if item["cost"] is not None:
        cost = _cost_of(item)
        yield cost.line
        yield from filter(None, [cost.advice])
    yield from (f"{name}: {item[name]}" for name in ("gate", "fault") if item[name])
    yield f"> {item['method']} {item['path']}{item['query']}"
    yield from (f"> {name}: {text}" for name, text in item["request_fields"])
    yield f"< {item['status']} {item['error']}"
    yield from (f"< {name}: {text}" for name, text in item["response_fields"])
    if item["refusal"] is not None:
        yield from _refusal(item["refusal"])


def _refusal(refusal: Any) -> Iterator[str]:
    yield f"refused ({refusal['credentials']}): {refusal['reason']}"
    if refusal["tries"]:
        yield f"usual mistakes that were tried: {refusal['tries']}"
    for field in refusal["fields"]:
        mark = f" ← {field['failed']}" if field["failed"] else ""
        yield f"  {field['name']} = {field['value']}  ({field['meaning']}){mark}"
    if refusal["string_to_sign"]:
        yield "string to sign:"
        yield from (f"  {json.dumps(line, ensure_ascii=False)}" for line in refusal["string_to_sign"].split("\n"))
