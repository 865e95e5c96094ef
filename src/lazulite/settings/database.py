"""Which database is served from, if one is: the flags `--engine…` and their variables, made into settings."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from lazulite.engine.postgres.dsn import DatabaseUrl, read_url
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.settings.extras import require_extra

URL_VARIABLE = "LAZULITE_ENGINE"
"""What `--engine` says if it is not given."""
PASSWORD_VARIABLE = "LAZULITE_ENGINE_PASSWORD"  # noqa: S105 - a name
"""The password, if neither a file nor the URL has it."""
PASSWORD_FILE_VARIABLE = "LAZULITE_ENGINE_PASSWORD_FILE"  # noqa: S105 - likewise
"""What `--engine-password-file` says if neither it nor a password is given."""

DATABASE_VARIABLES = (URL_VARIABLE, PASSWORD_VARIABLE, PASSWORD_FILE_VARIABLE)


def database_settings_from(args: Namespace, environ: Mapping[str, str]) -> PostgresSettings | None:
    """Return the settings, None if it is a location (or memory) that is meant.

    What the command line says of a place, a location or a database, counts more than the environment.

    Raises:
        ValueError: the flags do not go together, the URL is none, there is no password in a file, or the extra
            `postgres` is not installed. The text is one line, without secrets.
    """
    elsewhere = args.location_given or getattr(args, "in_memory", False)
    if args.engine is not None and elsewhere:
        raise ValueError("--engine cannot be combined with --location or --in-memory")
    url = args.engine
    if url is None and not elsewhere and environ.get(URL_VARIABLE, "").strip():
        try:
            url = read_url(environ[URL_VARIABLE].strip())
        except ValueError as error:
            raise ValueError(f"{URL_VARIABLE} {error}") from None
    connections = getattr(args, "engine_connections", None)
    if url is None:
        if args.engine_password_file is not None or connections is not None:
            raise ValueError("--engine-password-file and --engine-connections need --engine")
        return None
    require_extra("postgres", "an engine on PostgreSQL")
    password = password_of(url, environ, args.engine_password_file)
    if connections is None:
        return PostgresSettings(dsn=url.text, password=password)
    return PostgresSettings(dsn=url.text, password=password, connections_max=connections)


def password_of(
    url: DatabaseUrl, environ: Mapping[str, str], file: Path | None = None, variable: str = PASSWORD_VARIABLE
) -> str | None:
    """Return the password of a database: that of a file, of the URL, of a variable, or of another variable's file.

    None leaves it to what all programs of PostgreSQL understand: PGPASSWORD, or a passfile.

    Args:
        url: of the database.
        environ: the environment.
        file: with the password, if one was named on the command line.
        variable: its name; that of its file is the same with `_FILE`.

    Raises:
        ValueError: there is no password in the file.
    """
    if file is not None:
        return _read(file)
    if url.password or environ.get(variable):
        return url.password or environ[variable]
    named = environ.get(f"{variable}_FILE")
    return _read(Path(named)) if named else None


def _read(file: Path) -> str:
    try:
        password = file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ValueError(f"cannot read the password in {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        password = ""
    if not password or "\0" in password or "\n" in password:
        raise ValueError(f"{file} does not contain a password in one line")
    return password
