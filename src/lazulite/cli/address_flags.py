"""The flags that say where each service is: of `lazulite serve`, which listens there, and of commands that ask it.

So do the flags of an account elsewhere, to which or from which data is copied.

Only light modules of the standard library are imported, so that help is printed at once.
"""

from argparse import Action, ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from lazulite.cli.argument_parser import StoreExplicit
from lazulite.cli.flag_types import host, parallel, port, suffix
from lazulite.settings.addresses import DEFAULT_HOST, DEFAULT_PORTS, SERVICES, TABLE, WEB

Flags: TypeAlias = Callable[..., Action]
"""Adds a flag to a group, as `add_argument` does."""


def add_listening(parser: ArgumentParser) -> None:
    """Add the flags of the server by which it is reached."""
    _add_addresses(parser, "; 0: any free port")


def add_https_ports(group: Flags) -> None:
    """Add the flags of the server for HTTPS beside HTTP."""
    for service in SERVICES:
        flag = "--https-port" if service == TABLE else f"--{service}-https-port"
        text = f"serve HTTPS for {service}s on this port, and HTTP on their other port"
        group(flag, dest=f"{service}_https_port", type=port, metavar="PORT", help=text)


def add_websites(parser: ArgumentParser) -> None:
    """Add the flags of the server for static websites."""
    group = parser.add_argument_group("static websites").add_argument
    text = "serve the static websites of the accounts on this port (none); 0: any free port"
    group(f"--{WEB}-port", type=port, metavar="PORT", help=text)
    group(f"--{WEB}-host", type=host, default=DEFAULT_HOST, metavar="HOST", help=f"their address ({DEFAULT_HOST})")
    text = "serve HTTPS for them on this port, and HTTP on their other port"
    group(f"--{WEB}-https-port", type=port, metavar="PORT", help=text)


def add_reached(parser: ArgumentParser) -> None:
    """Add the flags of a command that asks the server, or prints where it is."""
    _add_addresses(parser)
    text = "use endpoints whose hosts are ACCOUNT.SUFFIX; services on one port have such hosts in any case"
    parser.add_argument("--host-suffix", type=suffix, metavar="SUFFIX", help=text)
    parser.add_argument("--https", action="store_true", help="use https endpoints")


def add_other_side(parser: ArgumentParser, flag: str) -> None:
    """Add the flags of a copy between a running server and an account elsewhere.

    Args:
        parser: of the command.
        flag: `--from` or `--to`, which names the account elsewhere.
    """
    add = parser.add_argument
    variable = f"env:LAZULITE_{flag[2:].upper()}_CONNECTION"
    text = f"connection string of the other side: env:NAME, file:PATH, or itself ({variable})"
    add(flag, dest="other", metavar="CONN", help=text)
    if flag == "--from":
        text = "location of the source, if it is a Lazulite of this machine: its messages are copied, too"
        add("--from-location", type=Path, metavar="DIR", help=text)
    text = "get: copy visible messages by Get, which hides them in the source for an hour (no)"
    add("--messages", choices=("no", "get"), default="no", help=text)
    add("--parallel", type=parallel, default=4, metavar="N", help="number of requests at a time, 1 to 32 (4)")
    command = "pull" if flag == "--from" else "push"
    text = f"file that notes the progress, to go on after a kill (./lazulite-{command}.json)"
    add("--journal", type=Path, metavar="FILE", help=text)
    add("--silent", action="store_true", help="do not show the progress")


def _add_addresses(parser: ArgumentParser, hint: str = "") -> None:
    add = parser.add_argument
    for service in SERVICES:
        text = f"address of {service}s ({DEFAULT_HOST})"
        names = (f"--{service}-host", f"--{service}Host")
        add(*names, type=host, action=StoreExplicit, default=DEFAULT_HOST, metavar="HOST", help=text)
        text = f"port of {service}s ({DEFAULT_PORTS[service]}){hint}"
        names = (f"--{service}-port", f"--{service}Port")
        add(*names, type=port, action=StoreExplicit, default=DEFAULT_PORTS[service], metavar="PORT", help=text)
