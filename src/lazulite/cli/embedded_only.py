"""Commands that are about the store of a location, and not about a database."""

from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.errors import Refusal
from lazulite.settings.config import ConfigError, database_from


def refuse_database(args: Namespace, environ: Mapping[str, str], instead: str) -> None:
    """Refuse a command line that means a database.

    Args:
        args: the parsed flags.
        environ: the environment.
        instead: what does it for a database.

    Raises:
        Refusal: it does.
    """
    try:
        database = database_from(args, environ)
    except ConfigError as error:
        raise Refusal(error) from error
    if database is not None:
        raise Refusal(f"this command works on a --location, not on a database; {instead}")
