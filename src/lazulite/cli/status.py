"""`lazulite status`: print the processes of a running server."""

import json
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from lazulite.app.commands import STATUS
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_server
from lazulite.control.command import ControlError, NoArguments


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print a line for each process."""
    try:
        for item in running_server(args, environ).stream(STATUS, NoArguments()):
            print(json.dumps(item) if args.json else _line(item))
    except ControlError as error:
        raise CommandError(error) from None
    return 0


def _line(process: Any) -> str:
    if "error" in process:
        return f"{process['process']}: {process['error']}"
    facts = [f"process {process['pid']}", f"version {process['version']}", f"up {process['uptime_seconds']:,.0f} s"]
    if process["connections"] is not None:
        facts.append(f"{process['connections']:,} connections")
    return f"{process['process']}: {', '.join(facts)}"
