"""Reject a database for the commands that work on a location only."""

from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.errors import CommandError
from lazulite.settings.config import ConfigError, database_from


def reject_database(args: Namespace, environ: Mapping[str, str], alternative: str) -> None:
    """Reject flags and variables that select a database.

    Args:
        args: the parsed flags.
        environ: the environment.
        alternative: the program to use for a database, for the message.

    Raises:
        CommandError: a database is selected, or the flags do not go together.
    """
    try:
        database = database_from(args, environ)
    except ConfigError as error:
        raise CommandError(error) from error
    if database is not None:
        raise CommandError(f"this command works on a --location, not on a database; {alternative}")
