"""Select the database of a command that works on a location, on a database, or on one of them only."""

from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.errors import CommandError
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
