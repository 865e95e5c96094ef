"""`lazulite faults`: list and change the rules of faults of a running server."""

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_server
from lazulite.control.client import Client
from lazulite.control.command import ControlError, NoArguments
from lazulite.faults.commands import (
    ADD_FAULTS,
    CLEAR_FAULTS,
    LIST_FAULTS,
    REMOVE_FAULT,
    RuleArguments,
    RulesArguments,
)
from lazulite.faults.rules_file import source_of


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Do what the action says."""
    try:
        _ACTIONS[args.action](args, running_server(args, environ))
    except ControlError as error:
        raise CommandError(error) from None
    return 0


def _list(args: Namespace, server: Client) -> None:
    for item in server.stream(LIST_FAULTS, NoArguments()):
        print(json.dumps(item) if args.json else _line(item))


def _add(args: Namespace, server: Client) -> None:
    try:
        source, text = source_of(args.rules)
    except ValueError as error:
        raise CommandError(error) from None
    _print_count(server.ask(ADD_FAULTS, RulesArguments(text, source)))


def _remove(args: Namespace, server: Client) -> None:
    _print_count(server.ask(REMOVE_FAULT, RuleArguments(args.name)))


def _clear(_: Namespace, server: Client) -> None:
    server.ask(CLEAR_FAULTS, NoArguments())
    _print_count(0)


def _print_count(count: object) -> None:
    print(f"{count} {'rule' if count == 1 else 'rules'} in force")


def _line(item: Any) -> str:
    keys = [f"{key} = {json.dumps(value)}" for key, value in item["rule"].items() if key != "name"]
    return f"{item['rule']['name']}: {item['hits']:,} of {item['seen']:,} requests, {', '.join(keys)}"


_ACTIONS: Mapping[str, Callable[[Namespace, Client], None]] = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "clear": _clear,
}
