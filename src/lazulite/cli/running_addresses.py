"""Where the running server of a location is: it says so over its control channel, unless flags name an address.

So a command reaches a server on any port by `--location` alone, or by the `--control-socket` of a server in memory or
of a database. Without an answer at a location the flags hold, with their defaults: a server of another machine has no
socket here.
"""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lazulite.app.commands import ADDRESSES
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import selected_database
from lazulite.control.client import Client
from lazulite.control.command import ControlError, NoArguments
from lazulite.control.socket_file import SOCKET
from lazulite.settings.addresses import SERVICES


def with_running_addresses(args: Namespace, environ: Mapping[str, str]) -> Namespace:
    """Return the flags with the addresses of the running server of their location.

    `no_server` of the result says why there is none; it is "" if the addresses are the server's, or a flag names one.

    Raises:
        CommandError: the flags of a database and of a location do not go together, or no server takes commands at the
            socket that they name.
    """
    if _names_address(args) or (args.control_socket is None and selected_database(args, environ) is not None):
        return args
    try:
        found: list[Any] = list(Client.at(control_socket(args)).stream(ADDRESSES, NoArguments()))
    except ControlError as error:
        if args.control_socket is not None:
            raise CommandError(error) from None
        return Namespace(**{**vars(args), "no_server": str(error)})
    services = {each["service"]: each for each in found if each["service"] in SERVICES}
    scheme = "http" if all(each["http"] is not None for each in services.values()) else "https"
    addresses: dict[str, object] = {"https": scheme == "https"}
    for name in SERVICES:
        # A service that is not served has no port, and no endpoint.
        addresses[f"{name}_port"] = services[name][scheme] if name in services else None
        addresses |= {f"{name}_host": services[name]["host"]} if name in services else {}
    return Namespace(**{**vars(args), **addresses})


def control_socket(args: Namespace) -> Path:
    """Return the socket of the running server that the flags name."""
    named: Path | None = args.control_socket
    return args.location / SOCKET if named is None else named


def endpoint_hint(args: Namespace, service: str) -> str:
    """Return what to check if no server responds at the endpoint of a service."""
    reason, flags = vars(args).get("no_server", ""), f"check --{service}-host and --{service}-port"
    return f"{reason}; start lazulite serve, or {flags}" if reason else flags


def served(endpoints: Mapping[str, str], service: str) -> str:
    """Return the endpoint of a service. Raises `CommandError` if the running server does not serve it."""
    if service not in endpoints:
        raise CommandError(f"the running server does not serve {service}s")
    return endpoints[service]


def _names_address(args: Namespace) -> bool:
    given = vars(args)
    named = (given.get(f"{name}_{part}_given", False) for name in SERVICES for part in ("host", "port"))
    return any(named) or args.https or args.host_suffix is not None
