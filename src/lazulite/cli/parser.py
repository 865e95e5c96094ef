"""The command line: every command, every flag, every spelling. Help is instant: only Python's own light modules here.

Flags that the emulator has too are taken in its camel-case spelling as well.
"""

import re
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter, _SubParsersAction
from pathlib import Path
from typing import NoReturn, TypeAlias

from lazulite import __version__
from lazulite.cli import serve_flags
from lazulite.cli.flag_types import DEFAULT_HOST, DEFAULT_LOCATION, DEFAULT_PORT, database, host, port, store
from lazulite.cli.help_texts import COPY_EXAMPLES, DESCRIPTION, EXAMPLES, SAS_EXAMPLES, SERVE_EXAMPLES


class Parser(ArgumentParser):
    """An argument parser whose complaints are one line, and show nothing of a URL: there may be a password in it."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and exit with 2."""
        message = re.sub(r"(?<=:/).*", "…", message, flags=re.DOTALL)
        self.exit(2, f'lazulite: {" ".join(message.split())} (see "{self.prog} --help")\n')


class Given(Action):
    """Keeps a value under `dest`, and that it was given under `{dest}_given`."""

    def __call__(self, _: ArgumentParser, namespace: Namespace, values: object, __: str | None = None) -> None:
        """See `Action`."""
        setattr(namespace, self.dest, values)
        setattr(namespace, f"{self.dest}_given", True)


Commands: TypeAlias = "_SubParsersAction[Parser]"


def build_parser() -> Parser:
    """Return the parser of the whole command line.

    What it parses has `module`, the command's module with its function `run`, or None without a command.
    """
    parser = Parser(
        prog="lazulite",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"lazulite {__version__}")
    parser.set_defaults(module=None, location_given=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    _add_serve(commands)
    _add_account(commands)
    _add_sas(commands)
    _add_connection_string(commands)
    _add_store(commands)
    _add_upgrade(commands)
    return parser


def _command(commands: Commands, name: str, module: str, summary: str, epilog: str | None = None) -> Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(module=f"lazulite.cli.{module}")
    return parser


def _add_serve(commands: Commands) -> None:
    parser = _command(commands, "serve", "serve", "run the service", SERVE_EXAMPLES)
    _location_flag(parser)
    _endpoint_flags(parser, "0: any free port, printed")
    serve_flags.add(parser)


def _add_account(commands: Commands) -> None:
    actions = _command(
        commands, "account", "account", "add or list accounts, or rotate their keys, also while the service runs"
    ).add_subparsers(title="commands", metavar="COMMAND", dest="action", required=True, parser_class=Parser)
    parser = _command(actions, "add", "account", "add an account with two new keys and print its connection string")
    parser.add_argument("name", metavar="NAME", help="3 to 24 characters of a-z and 0-9")
    _location_flag(parser)
    _endpoint_flags(parser)
    parser = _command(actions, "list", "account", "print the names of the accounts")
    _location_flag(parser)
    parser = _command(actions, "rotate-key", "account", "replace one key of an account and print the connection string")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--key", type=int, choices=(1, 2), required=True, help="which one; the other stays as it is")
    _location_flag(parser)
    _endpoint_flags(parser)


def _add_sas(commands: Commands) -> None:
    kinds = _command(commands, "sas", "sas", "print a shared access signature", SAS_EXAMPLES).add_subparsers(
        title="kinds", metavar="KIND", dest="kind", required=True, parser_class=Parser
    )
    parser = _command(kinds, "account", "sas", "sign a token for a whole account", SAS_EXAMPLES)
    parser.add_argument(
        "--permissions", "--sp", required=True, help="letters, such as rwdlacu (see Azure's account SAS)"
    )
    parser.add_argument("--services", "--ss", default="t", help="of b, q, t, f (t)")
    parser.add_argument("--resource-types", "--srt", default="sco", help="of s, c (tables), o (entities) (sco)")
    _sas_flags(parser)
    parser = _command(kinds, "table", "sas", "sign a token for one table", SAS_EXAMPLES)
    parser.add_argument("table", metavar="NAME", help="the table")
    parser.add_argument("--permissions", "--sp", default="", help="of r, a, u, d: read, add, update, delete")
    parser.add_argument("--policy", "--si", default="", metavar="ID", help="a stored access policy of the table")
    for end, spelled in (("start", "s"), ("end", "e")):
        for part, letter in (("partition", "p"), ("row", "r")):
            parser.add_argument(
                f"--{end}-{part}", f"--{spelled}{letter}k", default="", metavar="KEY", help=f"{end} of the key range"
            )
    _sas_flags(parser)


def _sas_flags(parser: Parser) -> None:
    flag = parser.add_argument
    flag("--expiry", "--se", default="", metavar="TIME", help="until when it is good")
    flag("--start", "--st", default="", metavar="TIME", help="from when on (at once)")
    flag("--ip", "--sip", default="", metavar="A[-B]", help="only from this IPv4 address, or from A to B")
    flag(
        "--protocol",
        "--spr",
        default="",
        choices=("https", "https,http"),
        metavar="https[,http]",
        help="only by these protocols",
    )
    flag("--url", action="store_true", help="print the whole URL instead of the token")
    _account_flags(parser)


def _add_connection_string(commands: Commands) -> None:
    parser = _command(commands, "connection-string", "connection_string", "print a connection string to paste")
    parser.add_argument("--sas", metavar="TOKEN", help="with this token instead of the account's key")
    _account_flags(parser)


def _add_store(commands: Commands) -> None:
    parser = _command(commands, "check", "check", "read and verify a location that nobody serves, or a backup")
    _location_flag(parser)
    parser = _command(commands, "backup", "backup", "copy a location as it is now, also while the service runs")
    parser.add_argument("destination", type=Path, metavar="DEST", help="a directory that is missing or empty")
    parser.add_argument("--verify", action="store_true", help="check the copy, and print what is in it")
    _location_flag(parser)
    parser = _command(commands, "restore", "restore", "verify a backup and make it a location again")
    parser.add_argument("source", type=Path, metavar="SOURCE", help="what lazulite backup made")
    _location_flag(parser)
    parser = _command(commands, "copy", "copy", "move a whole store to another place, and compare both", COPY_EXAMPLES)
    for name, dest, text in (
        ("--from", "source", "the store to read, which nobody may write to meanwhile"),
        ("--to", "target", "an empty place, or one where the same copy was broken off"),
    ):
        parser.add_argument(name, dest=dest, type=store, required=True, metavar="STORE", help=text)
    parser.add_argument("--verify-only", action="store_true", help="copy nothing, compare what is there")
    parser.add_argument("--silent", "-s", action="store_true", help="show no progress")


def _add_upgrade(commands: Commands) -> None:
    text = "bring the tables in a database to the form that this version needs"
    _database_flags(_command(commands, "upgrade", "upgrade", text))


def _account_flags(parser: Parser) -> None:
    parser.add_argument("--account", metavar="NAME", help="which account (not needed if there is only one)")
    parser.add_argument("--key", type=int, choices=(1, 2), default=1, help="which of its keys (1)")
    _location_flag(parser)
    _endpoint_flags(parser)


def _location_flag(parser: Parser) -> None:
    text = f"directory of data and accounts (./{DEFAULT_LOCATION})"
    parser.add_argument("--location", "-l", type=Path, action=Given, default=DEFAULT_LOCATION, metavar="DIR", help=text)
    _database_flags(parser)


def _database_flags(parser: Parser) -> None:
    flag = parser.add_argument_group("PostgreSQL").add_argument
    text = "the database that has data and accounts, instead of a directory: postgresql://user@host1,host2/database"
    flag("--engine", type=database, metavar="URL", help=text)
    flag("--engine-password-file", type=Path, metavar="FILE", help="where its password is")


def _endpoint_flags(parser: Parser, port_hint: str = "") -> None:
    where, at = f"address of the service ({DEFAULT_HOST})", f"its port ({DEFAULT_PORT})"
    parser.add_argument("--table-host", "--tableHost", type=host, default=DEFAULT_HOST, metavar="HOST", help=where)
    parser.add_argument(
        "--table-port",
        "--tablePort",
        type=port,
        default=DEFAULT_PORT,
        metavar="PORT",
        help=f"{at}; {port_hint}" if port_hint else at,
    )
    if not port_hint:
        parser.add_argument("--https", action="store_true", help="print endpoints with https")
