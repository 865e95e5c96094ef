"""Select what a command works on: a location, a database, or a running server."""

from argparse import Namespace
from collections.abc import Mapping, Sequence

from lazulite.cli.errors import CommandError
from lazulite.control.client import Client
from lazulite.control.socket_file import SOCKET
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.settings.config import ConfigError, database_from


def selected_database(args: Namespace, environ: Mapping[str, str]) -> PostgresSettings | None:
    """Return the database that the flags and variables select; None: the location.

    Raises:
        CommandError: the flags do not go together.
    """
    try:
        return database_from(args, environ)
    except ConfigError as error:
        raise CommandError(error) from error


def reject_database(args: Namespace, environ: Mapping[str, str], alternative: str) -> None:
    """Reject flags and variables that select a database.

    Args:
        args: the parsed flags.
        environ: the environment.
        alternative: the program to use for a database, for the message.

    Raises:
        CommandError: a database is selected, or the flags do not go together.
    """
    if selected_database(args, environ) is not None:
        raise CommandError(f"this command works on a --location, not on a database; {alternative}")


def running_server(args: Namespace, environ: Mapping[str, str]) -> Client:
    """Return a client of the server that the flags name. What it raises is of `lazulite.control`.

    Raises:
        CommandError: the flags name a database, which tells no socket of its servers.
    """
    if args.control_socket is not None:
        return Client.at(args.control_socket)
    if selected_database(args, environ) is not None:
        raise CommandError("for the server of a database pass --control-socket PATH, as to lazulite serve", 2)
    return Client.at(args.location / SOCKET)


def running_servers(args: Namespace, environ: Mapping[str, str]) -> Sequence[Client]:
    """Return clients of the servers that the flags name by several sockets; else as `running_server`."""
    return [Client.at(path) for path in args.control_socket or ()] or [running_server(args, environ)]
