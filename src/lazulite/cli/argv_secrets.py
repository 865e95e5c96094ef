"""Remove passwords from the command line of the process.

All users of a machine can read the command lines of its processes. Only a process's own user and root can read its
environment. A process that was started with a password in its command line therefore executes itself again, under the
same process id, with the password in an environment variable.
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
"""Flag whose value may be a database URL -> the variable that then holds the password."""
_CONNECTION_SECRETS = ("accountkey=", "sharedaccesssignature=")
"""What a connection string with a secret contains, in any case."""

IN_VARIABLE, IN_FILE = "env:", "file:"
"""What an argument begins with that names a variable or a file in place of a connection string."""
CONNECTION_STRING = "--connection-string"
CONNECTION_STRING_VARIABLE = "LAZULITE_CONNECTION_STRING"
"""The flag whose value has a key, and the variable that holds the value while the flag is empty."""


def hide_passwords(arguments: Sequence[str], command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Execute the process again without the passwords of its command line. Return if it has none.

    Args:
        arguments: the arguments of the program.
        command: the whole command line: the interpreter, its own arguments, and `arguments`.
        environ: the environment.
    """
    bare, passwords = split_passwords(arguments)
    interpreter = command[: len(command) - len(arguments)]
    if bare != list(arguments) and [*interpreter, *arguments] == list(command):
        again = [sys.executable, *interpreter[1:], *bare]
        os.execve(sys.executable, again, {**environ, **passwords})  # noqa: S606 - there is nothing for a shell to read


def split_passwords(arguments: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    """Return the arguments without passwords, and the passwords by environment variable."""
    bare: list[str] = []
    passwords: dict[str, str] = {}
    flag = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        secret = argument if flag == CONNECTION_STRING else value if name == CONNECTION_STRING else ""
        if secret and not secret.startswith((IN_VARIABLE, IN_FILE)):
            passwords[CONNECTION_STRING_VARIABLE] = secret
            bare.append(argument[: -len(secret)])
        elif flag in VARIABLES:
            bare.append(_without_password(argument, VARIABLES[flag], passwords))
        elif equals and name in VARIABLES:
            bare.append(f"{name}={_without_password(value, VARIABLES[name], passwords)}")
        else:
            bare.append(argument)
        flag = argument
    return bare, passwords


def _without_password(text: str, variable: str, passwords: MutableMapping[str, str]) -> str:
    """Return a URL without its password, and record the password. Return other texts unchanged.

    A connection string is a secret as a whole: the name of the variable that holds it is returned.
    """
    connection = variable.replace("_PASSWORD", "_CONNECTION")
    passwords.pop(connection, None)
    if any(each in text.lower() for each in _CONNECTION_SECRETS):
        passwords.pop(variable, None)
        passwords[connection] = text
        return f"env:{connection}"
    try:
        url = read_url(text)
    except ValueError:
        url = DatabaseUrl(text)
    passwords.pop(variable, None)  # The last occurrence of a flag counts.
    if url.password is not None:
        passwords[variable] = url.password
    return text if url.password is None else url.text
