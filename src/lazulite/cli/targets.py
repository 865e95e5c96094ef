"""`lazulite targets`: print or change the scalability targets of a running server."""

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lazulite.app.commands import SET_TARGETS, TARGETS, SetTargetsArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_server
from lazulite.control.command import ControlError, NoArguments
from lazulite.partitions.targets import OFF, TargetsError, targets_from


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print the targets, those after a change if there is one."""
    if args.action == "set" and args.name is None:
        raise CommandError("targets set needs a NAME", 2)
    try:
        server = running_server(args, environ)
        found: Any
        if args.action == "set":
            found = server.ask(SET_TARGETS, _asked(args.name))
        else:
            found = server.ask(TARGETS, NoArguments())
    except ControlError as error:
        raise CommandError(error) from None
    if args.json:
        print(json.dumps(found))
    else:
        for line in _lines(found):
            print(line)
    return 0


def _asked(name: str) -> SetTargetsArguments:
    """Return what to ask for: a name, or the text of a file, which the server need not be able to read.

    Raises:
        CommandError: there are no such targets.
    """
    if name == OFF:
        return SetTargetsArguments(name)
    try:
        targets_from(name)
        path = Path(name)
        is_file = path.suffix == ".toml"
        return (
            SetTargetsArguments(path.stem, path.read_text(encoding="utf-8")) if is_file else SetTargetsArguments(name)
        )
    except (TargetsError, OSError) as error:
        raise CommandError(error) from None


def _lines(found: Any) -> Iterator[str]:
    yield f"targets: {found['name']}"
    for name, value in found.items():
        if isinstance(value, dict):
            if "target" in value:
                enforced = "" if value["cap"] == value["target"] else f", enforced: {value['cap']:,.0f}"
                yield f"{name}: {value['target']:,.0f} per second{enforced}"
            else:
                yield from (f"{key}: {_number(setting)}" for key, setting in value.items())
        elif name != "name":
            yield f"{name}: {_number(value)}"


def _number(value: float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"
