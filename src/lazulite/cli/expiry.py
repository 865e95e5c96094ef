"""`lazulite expiry`: declare when the entities of a table expire."""

import json
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from lazulite.app.commands import EXPIRY_DROP, EXPIRY_LIST, EXPIRY_SET, ExpiryDeclaration, TableArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.store_commands import run_on_store
from lazulite.control.command import AccountArguments, ControlError
from lazulite.engine.contract import EngineError
from lazulite.settings.config import ConfigError

Environment = Mapping[str, str]
_UNITS = {"d": 86_400, "h": 3600, "m": 60}


def run(args: Namespace, environ: Environment) -> int:
    """Run a command about when entities expire."""
    try:
        _COMMANDS[args.expiry_command](args, environ)
    except (ControlError, EngineError, ConfigError) as error:
        raise CommandError(error) from None
    return 0


def _list(args: Namespace, environ: Environment) -> None:
    found: list[Any] = []
    run_on_store(args, environ, EXPIRY_LIST, AccountArguments(args.account or ""), found.append)
    for each in found:
        print(json.dumps(each) if args.json else f"{each['table']}: {_described(each)}")


def _described(expiry: Mapping[str, Any]) -> str:
    if "on" in expiry:
        return f"on {expiry['on']}"
    seconds = expiry["after_seconds"]
    unit, length = next((unit for unit in _UNITS.items() if seconds % unit[1] == 0), ("s", 1))
    return f"after {seconds // length}{unit}"


def _set(args: Namespace, environ: Environment) -> None:
    of = ExpiryDeclaration(args.table, int(args.after or 0), args.on or "", args.account or "")
    run_on_store(args, environ, EXPIRY_SET, of, lambda _: None)


def _drop(args: Namespace, environ: Environment) -> None:
    run_on_store(args, environ, EXPIRY_DROP, TableArguments(args.table, args.account or ""), lambda _: None)


_COMMANDS = {"set": _set, "list": _list, "drop": _drop}
