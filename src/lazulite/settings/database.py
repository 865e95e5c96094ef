"""Parse the flags `--engine…` and their variables into the settings of a database."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from lazulite.engine.postgres.dsn import DatabaseUrl, read_url
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.settings.extras import require_extra

URL_VARIABLE = "LAZULITE_ENGINE"
"""The default of `--engine`."""
PASSWORD_VARIABLE = "LAZULITE_ENGINE_PASSWORD"  # noqa: S105 - a name
"""The password, if neither `--engine-password-file` nor the URL has one."""
PASSWORD_FILE_VARIABLE = "LAZULITE_ENGINE_PASSWORD_FILE"  # noqa: S105 - likewise
"""The password's file, if the password is given in no other way."""

DATABASE_VARIABLES = (URL_VARIABLE, PASSWORD_VARIABLE, PASSWORD_FILE_VARIABLE)


def database_settings_from(args: Namespace, environ: Mapping[str, str]) -> PostgresSettings | None:
    """Return the settings of the database; None for a location or memory.

    Command-line options override `LAZULITE_ENGINE`.

    Raises:
        ValueError: the flags are incompatible, the URL is invalid, a file has no password, or the extra `postgres` is
            not installed. The text is one line, without secrets.
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
    """Return the password of a database, from the first of: file, URL, variable, file named by a variable.

    With None, PostgreSQL's client library uses its own sources: PGPASSWORD or a passfile.

    Args:
        url: the URL of the database.
        environ: the environment.
        file: the file with the password, if the command line names one.
        variable: the name of the variable with the password; with `_FILE`, of the one that names a file.

    Raises:
        ValueError: the file has no password.
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
