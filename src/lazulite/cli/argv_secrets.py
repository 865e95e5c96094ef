"""Passwords on the command line, taken out of sight.

Everybody on a machine may see the command lines of its processes, and nobody but its user (and root) the environment
of one. So a process that was started with a password in its command line at once becomes the same process without: it
executes itself again, under the same id, with the password in a variable.
"""

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence

from lazulite.engine.postgres.dsn import DatabaseUrl, read_url
from lazulite.settings.database import PASSWORD_VARIABLE

VARIABLES = {
    "--engine": PASSWORD_VARIABLE,
    "--from": "LAZULITE_FROM_PASSWORD",
    "--to": "LAZULITE_TO_PASSWORD",
}
"""Flag whose value may be the URL of a database -> the variable for its password."""


def hide_passwords(arguments: Sequence[str], command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Return if there is no password in the command line; else execute it anew without, and do not return.

    Args:
        arguments: those of the program.
        command: all of the command line: the interpreter, how it was told of the program, and `arguments`.
        environ: the environment.
    """
    bare, passwords = hidden(arguments)
    how = command[: len(command) - len(arguments)]
    if bare != list(arguments) and [*how, *arguments] == list(command):
        again = [sys.executable, *how[1:], *bare]
        os.execve(sys.executable, again, {**environ, **passwords})  # noqa: S606 - there is nothing for a shell to read


def hidden(arguments: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    """Return the arguments without passwords, and these by the variables that they belong in."""
    bare: list[str] = []
    passwords: dict[str, str] = {}
    flag = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if flag in VARIABLES:
            bare.append(_without_password(argument, VARIABLES[flag], passwords))
        elif equals and name in VARIABLES:
            bare.append(f"{name}={_without_password(value, VARIABLES[name], passwords)}")
        else:
            bare.append(argument)
        flag = argument
    return bare, passwords


def _without_password(text: str, variable: str, passwords: MutableMapping[str, str]) -> str:
    """Return a URL without its password, having taken note of that; what is no URL, as it is."""
    try:
        url = read_url(text)
    except ValueError:
        url = DatabaseUrl(text)
    passwords.pop(variable, None)  # A flag that is given twice counts as it was given last.
    if url.password is not None:
        passwords[variable] = url.password
    return text if url.password is None else url.text
