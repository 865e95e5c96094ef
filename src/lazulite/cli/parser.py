"""The parser of the command line, with every command and flag.

Imports Python's own light modules only, so that help is printed at once. Flags that Azurite has too are accepted in its
camel-case spelling.
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
    """Reports an error in one line, without URLs, since a URL may hold a password."""

    def error(self, message: str) -> NoReturn:
        """Print an error of the command line in one line, and exit with 2."""
        message = re.sub(r"(?<=:/).*", "…", message, flags=re.DOTALL)
        self.exit(2, f'lazulite: {" ".join(message.split())} (see "{self.prog} --help")\n')


class Given(Action):
    """Stores a value as `dest`, and True as `{dest}_given`."""

    def __call__(self, _: ArgumentParser, namespace: Namespace, values: object, __: str | None = None) -> None:
        """See `Action`."""
        setattr(namespace, self.dest, values)
        setattr(namespace, f"{self.dest}_given", True)


Commands: TypeAlias = "_SubParsersAction[Parser]"


def build_parser() -> Parser:
    """Return the parser of the whole command line.

    The parsed namespace has `module`, the name of the command's module, or None without a command.
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
    parser = _command(commands, "serve", "serve", "run the server", SERVE_EXAMPLES)
    _location_flag(parser)
    _endpoint_flags(parser, "0: any free port, which is printed")
    serve_flags.add(parser)


def _add_account(commands: Commands) -> None:
    actions = _command(
        commands, "account", "account", "manage accounts and their keys, also while the server runs"
    ).add_subparsers(title="commands", metavar="COMMAND", dest="action", required=True, parser_class=Parser)
    parser = _command(actions, "add", "account", "add an account with two new keys and print its connection string")
    parser.add_argument("name", metavar="NAME", help="3 to 24 characters of a-z and 0-9")
    _location_flag(parser)
    _endpoint_flags(parser)
    parser = _command(actions, "list", "account", "print the names of the accounts")
    _location_flag(parser)
    parser = _command(actions, "rotate-key", "account", "replace one key of an account and print the connection string")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--key", type=int, choices=(1, 2), required=True, help="the key to replace; the other key stays valid"
    )
    _location_flag(parser)
    _endpoint_flags(parser)


def _add_sas(commands: Commands) -> None:
    kinds = _command(commands, "sas", "sas", "create a shared access signature (SAS)", SAS_EXAMPLES).add_subparsers(
        title="kinds", metavar="KIND", dest="kind", required=True, parser_class=Parser
    )
    parser = _command(kinds, "account", "sas", "create a SAS token for an account", SAS_EXAMPLES)
    parser.add_argument(
        "--permissions", "--sp", required=True, help="letters such as rwdlacu, as in Azure's account SAS"
    )
    parser.add_argument("--services", "--ss", default="t", help="letters of b, q, t, f (t)")
    parser.add_argument(
        "--resource-types", "--srt", default="sco", help="letters of s (service), c (tables), o (entities) (sco)"
    )
    _sas_flags(parser)
    parser = _command(kinds, "table", "sas", "create a SAS token for a table", SAS_EXAMPLES)
    parser.add_argument("table", metavar="NAME", help="table name")
    parser.add_argument(
        "--permissions", "--sp", default="", help="letters of r (read), a (add), u (update), d (delete)"
    )
    parser.add_argument("--policy", "--si", default="", metavar="ID", help="stored access policy of the table")
    for end, spelled in (("start", "s"), ("end", "e")):
        for part, letter in (("partition", "p"), ("row", "r")):
            parser.add_argument(
                f"--{end}-{part}", f"--{spelled}{letter}k", default="", metavar="KEY", help=f"{end} of the key range"
            )
    _sas_flags(parser)


def _sas_flags(parser: Parser) -> None:
    flag = parser.add_argument
    flag("--expiry", "--se", default="", metavar="TIME", help="expiry time")
    flag("--start", "--st", default="", metavar="TIME", help="start time (now)")
    flag("--ip", "--sip", default="", metavar="A[-B]", help="allowed IPv4 address, or range from A to B")
    flag(
        "--protocol",
        "--spr",
        default="",
        choices=("https", "https,http"),
        metavar="https[,http]",
        help="allowed protocols",
    )
    flag("--url", action="store_true", help="print a URL that contains the token")
    _account_flags(parser)


def _add_connection_string(commands: Commands) -> None:
    parser = _command(commands, "connection-string", "connection_string", "print a connection string for clients")
    parser.add_argument("--sas", metavar="TOKEN", help="put this SAS token in place of the account's key")
    _account_flags(parser)


def _add_store(commands: Commands) -> None:
    parser = _command(commands, "check", "check", "verify a backup, or a location that no process uses")
    _location_flag(parser)
    parser = _command(commands, "backup", "backup", "back up a location, also while the server runs")
    parser.add_argument("destination", type=Path, metavar="DEST", help="target directory; must be missing or empty")
    parser.add_argument("--verify", action="store_true", help="verify the backup and print a summary")
    _location_flag(parser)
    parser = _command(commands, "restore", "restore", "verify a backup and copy it to a location")
    parser.add_argument("source", type=Path, metavar="SOURCE", help="directory that lazulite backup wrote")
    _location_flag(parser)
    parser = _command(
        commands, "copy", "copy", "copy a store to another location or database, and compare both", COPY_EXAMPLES
    )
    for name, dest, text in (
        ("--from", "source", "store to read; no process may write to it meanwhile"),
        ("--to", "target", "store to write; must be empty or an interrupted copy of the same source"),
    ):
        parser.add_argument(name, dest=dest, type=store, required=True, metavar="STORE", help=text)
    parser.add_argument("--verify-only", action="store_true", help="compare the two stores without copying")
    parser.add_argument("--silent", "-s", action="store_true", help="do not print progress")


def _add_upgrade(commands: Commands) -> None:
    text = "upgrade the tables of a database to the format of this version"
    _database_flags(_command(commands, "upgrade", "upgrade", text))


def _account_flags(parser: Parser) -> None:
    parser.add_argument("--account", metavar="NAME", help="account (not needed if there is only one)")
    parser.add_argument("--key", type=int, choices=(1, 2), default=1, help="number of the account's key (1)")
    _location_flag(parser)
    _endpoint_flags(parser)


def _location_flag(parser: Parser) -> None:
    text = f"directory that holds data and accounts (./{DEFAULT_LOCATION})"
    parser.add_argument("--location", "-l", type=Path, action=Given, default=DEFAULT_LOCATION, metavar="DIR", help=text)
    _database_flags(parser)


def _database_flags(parser: Parser) -> None:
    flag = parser.add_argument_group("PostgreSQL").add_argument
    text = "database that holds data and accounts instead of a directory: postgresql://user@host1,host2/database"
    flag("--engine", type=database, metavar="URL", help=text)
    flag("--engine-password-file", type=Path, metavar="FILE", help="file that holds the database password")


def _endpoint_flags(parser: Parser, port_hint: str = "") -> None:
    where, at = f"server address ({DEFAULT_HOST})", f"server port ({DEFAULT_PORT})"
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
        parser.add_argument("--https", action="store_true", help="print https endpoints")
