"""`lazulite partitions`: print the ranges of a table, as a running server has divided it."""

import json
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from lazulite.app.commands import PARTITIONS, PartitionsArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_server
from lazulite.control.command import ControlError


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print a line for the table, and one for each range."""
    asked = PartitionsArguments(args.table, args.account or "")
    try:
        items: list[Any] = list(running_server(args, environ).stream(PARTITIONS, asked))
    except ControlError as error:
        raise CommandError(error) from None
    if args.json:
        for item in items:
            print(json.dumps(item))
        return 0
    head, *ranges = items
    count = f"{len(ranges)} ranges" if len(ranges) > 1 else "1 range"
    print(f"{head['table']}: {count}, {head['servers']} virtual servers, targets {head['targets']}")
    for each in ranges:
        print(_line(each))
    return 0


def _line(each: Any) -> str:
    after = "the end" if each["end"] is None else repr(each["end"])
    facts = [f"keys {each['start']!r} to {after}: server {each['server']}", f"{each['rate']:,.1f} operations/s"]
    facts += [f"{each[name]:,} {name}" for name in ("refused", "delayed") if each[name]]
    if each["moving_seconds"]:
        facts.append(f"moves for {each['moving_seconds']:,.1f} s more")
    return ", ".join(facts)
