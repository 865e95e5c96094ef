"""The parser of the command line, with every command and flag.

Only light modules of the standard library are imported, so that help is printed at once. A flag that Azurite also has
is accepted in Azurite's camel-case spelling, too.
"""

from argparse import SUPPRESS, _SubParsersAction
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from lazulite import __version__
from lazulite.cli import address_flags, advise_flags, sas_flags, serve_flags, stress_flags, transfer_flags
from lazulite.cli.argument_parser import HelpFormatter, Parser, StoreExplicit
from lazulite.cli.flag_types import (
    DEFAULT_LOCATION,
    database,
    duration,
    entity_count,
    lifetime,
    message_count,
    picture,
    port,
    rehydrate_seconds,
    request_count,
    retention_days,
    store,
    switch,
    threshold,
)
from lazulite.cli.help_texts import (
    APPLY_EXAMPLES,
    BLOB_EXAMPLES,
    COMPLETION_EXAMPLES,
    COPY_EXAMPLES,
    DESCRIPTION,
    EXAMPLES,
    EXPIRY_EXAMPLES,
    EXPORT_EXAMPLES,
    FAULTS_EXAMPLES,
    HEAT_EXAMPLES,
    IMPORT_EXAMPLES,
    INDEX_EXAMPLES,
    LOGS_EXAMPLES,
    PARTITIONS_EXAMPLES,
    PULL_EXAMPLES,
    QUEUE_EXAMPLES,
    REQUESTS_EXAMPLES,
    SAS_EXAMPLES,
    SERVE_EXAMPLES,
    STRESS_EXAMPLES,
    TABLE_EXAMPLES,
    TARGETS_EXAMPLES,
)
from lazulite.settings.addresses import SECONDARY_FORMS

SWITCH_FLAGS = (
    ("--versioning", switch, "on|off", "keep the previous state of a blob as a version"),
    ("--container-retention-days", retention_days, "N", "keep deleted containers N days, up to 365; 0: do not"),
    ("--public-access", switch, "on|off", "let containers be public"),
    (
        "--rehydrate-after",
        rehydrate_seconds,
        "N",
        "keep blobs in Archive N seconds after another tier is set; 0: do not",
    ),
)
"""The flag, type and help of each switch of an account (`auth.accounts.switches`)."""

Commands: TypeAlias = "_SubParsersAction[Parser]"


def build_parser() -> Parser:
    """Return the parser of the whole command line.

    The parsed namespace has `module`, the name of the command's module, or None without a command.
    """
    parser = Parser(
        prog="lazulite",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"lazulite {__version__}")
    parser.set_defaults(module=None, location_given=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    _add_serve(commands)
    _add_account(commands)
    _add_sas(commands)
    _add_connection_string(commands)
    _add_table(commands)
    _add_queue(commands)
    _add_blob(commands)
    _add_apply(commands)
    _add_account_copies(commands)
    _add_store(commands)
    _add_transfer(commands)
    _add_completion(commands)
    _add_upgrade(commands)
    _add_status(commands)
    _add_ui(commands)
    _add_requests(commands)
    _add_heat(commands)
    _add_targets(commands)
    _add_partitions(commands)
    _add_index(commands)
    _add_expiry(commands)
    _add_logs(commands)
    _add_advise(commands)
    _add_faults(commands)
    _add_stress(commands)
    return parser


def _command(
    commands: Commands,
    name: str,
    module: str,
    summary: str,
    epilog: str | None = None,
    aliases: Sequence[str] = (),
) -> Parser:
    parser = commands.add_parser(
        name,
        aliases=aliases,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(module=f"lazulite.cli.{module}")
    return parser


def _add_serve(commands: Commands) -> None:
    parser = _command(commands, "serve", "serve", "run the server", SERVE_EXAMPLES)
    parser.usage = "lazulite serve [FLAG …]"
    parser.name_flags("common flags")
    _location_alone(parser)
    serve_flags.add(parser)
    _database_flags(parser)
    serve_flags.add_others(parser)


def _add_account(commands: Commands) -> None:
    actions = _command(
        commands, "account", "account", "manage accounts and their keys, also while the server runs"
    ).add_subparsers(title="commands", metavar="COMMAND", dest="action", required=True, parser_class=Parser)
    parser = _command(actions, "add", "account", "add an account with two new keys and print its connection string")
    _account_name(parser, "3 to 24 characters of a-z and 0-9")
    _location_flag(parser)
    address_flags.add_reached(parser)
    parser = _command(actions, "remove", "account", "remove an account")
    _account_name(parser)
    text = "delete all tables, queues and containers of the account, too"
    parser.add_argument("--with-data", action="store_true", help=text)
    _location_flag(parser)
    parser = _command(actions, "list", "account", "print the names of the accounts")
    _location_flag(parser)
    parser = _command(actions, "rotate-key", "account", "replace one key of an account and print the connection string")
    _account_name(parser)
    parser.add_argument(
        "--key", type=int, choices=(1, 2), required=True, help="the key to replace; the other key stays valid"
    )
    _location_flag(parser)
    address_flags.add_reached(parser)
    parser = _command(actions, "set", "account", "set the switches of an account")
    _account_name(parser)
    for name, type_, metavar, text in SWITCH_FLAGS:
        parser.add_argument(name, type=type_, metavar=metavar, help=text)
    _location_flag(parser)
    parser = _command(actions, "show", "account", "print the switches of an account")
    _account_name(parser)
    _location_flag(parser)
    text = "revoke the user delegation keys of an account, and each SAS that they signed"
    parser = _command(actions, "revoke-delegation-keys", "account", text)
    _account_name(parser)
    _location_flag(parser)


def _account_name(parser: Parser, text: str = "account name") -> None:
    """Add the name of an account, which `--account` gives, too, as with other commands."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=text)
    parser.add_argument("--account", metavar="NAME", help="the same name, as other commands take it")


def _add_sas(commands: Commands) -> None:
    kinds = _command(commands, "sas", "sas", "create a shared access signature (SAS)", SAS_EXAMPLES).add_subparsers(
        title="kinds", metavar="KIND", dest="kind", required=True, parser_class=Parser
    )
    for kind, (resource, add) in sas_flags.KINDS.items():
        parser = _command(kinds, kind, "sas", f"create a SAS token for {resource}", SAS_EXAMPLES)
        add(parser)
        _account_flags(parser)


def _add_connection_string(commands: Commands) -> None:
    parser = _command(commands, "connection-string", "connection_string", "print a connection string for clients")
    parser.add_argument("name", nargs="?", metavar="NAME", help="account, as --account")
    parser.add_argument("--sas", metavar="TOKEN", help="put this SAS token in place of the account's key")
    text = "form of secondary endpoints: url, host (for the Python SDKs and the Azure CLI) or none (url)"
    parser.add_argument("--secondary", choices=tuple(SECONDARY_FORMS), default="url", help=text)
    _account_flags(parser)


def _add_table(commands: Commands) -> None:
    actions = _actions(commands, "table", "work with tables and entities of a running server", TABLE_EXAMPLES)
    _account_flags(_command(actions, "ls", "table", "print the names of the tables"))
    _named(actions, "create", "table", "create a table")
    parser = _named(actions, "get", "table", "print an entity as a line of JSON")
    parser.add_argument("partition_key", metavar="PARTITIONKEY", help="first key of the entity")
    parser.add_argument("row_key", metavar="ROWKEY", help="second key of the entity")
    parser = _named(actions, "put", "table", "insert or replace an entity")
    parser.add_argument("entity", metavar="JSON", help="entity; -: standard input, a line of JSON each")
    parser = _named(actions, "query", "table", "print entities, a line of JSON each")
    parser.add_argument("--filter", default="", metavar="TEXT", help='condition, such as "Total gt 10"')
    parser.add_argument("--select", default="", metavar="LIST", help="names of properties, separated by commas (all)")
    parser.add_argument("--top", type=entity_count, default=0, metavar="N", help="most entities (all)")
    parser = _named(actions, "rm", "table", "delete an entity, or a table")
    parser.add_argument("partition_key", nargs="?", metavar="PARTITIONKEY", help="first key of the entity (the table)")
    parser.add_argument("row_key", nargs="?", metavar="ROWKEY", help="second key of the entity (the table)")
    parser.add_argument("--yes", action="store_true", help="confirm that the table is deleted")


def _add_queue(commands: Commands) -> None:
    actions = _actions(commands, "queue", "work with queues and messages of a running server", QUEUE_EXAMPLES)
    _account_flags(_command(actions, "ls", "queue", "print the names of the queues", aliases=["list"]))
    _named(actions, "create", "queue", "create a queue")
    text = "print the first visible messages, a line of JSON each, and keep them"
    parser = _named(actions, "get", "queue", text, aliases=["peek"])
    parser.add_argument("--count", type=message_count, default=1, metavar="N", help="most messages, 1 to 32 (1)")
    parser = _named(actions, "put", "queue", "put a message")
    parser.add_argument("text", metavar="TEXT", help="text; -: standard input")
    _named(actions, "clear", "queue", "delete all messages of a queue")
    parser = _named(actions, "rm", "queue", "delete a queue")
    parser.add_argument("--yes", action="store_true", help="confirm")
    parser = _command(actions, "stats", "queue", "print the number of messages, and the age of the first visible one")
    parser.add_argument("queue", nargs="?", metavar="NAME", help="queue name (all queues)")
    _account_flags(parser)


def _actions(commands: Commands, name: str, summary: str, epilog: str | None = None) -> Commands:
    """Add a command that has commands of its own, whose name is `action`."""
    parser = _command(commands, name, name, summary, epilog)
    return parser.add_subparsers(title="commands", metavar="COMMAND", dest="action", required=True, parser_class=Parser)


def _named(actions: Commands, name: str, kind: str, summary: str, aliases: Sequence[str] = ()) -> Parser:
    """Add a command about the resource that its first argument names."""
    parser = _command(actions, name, kind, summary, aliases=aliases)
    parser.add_argument(kind, metavar="NAME", help=f"{kind} name")
    _account_flags(parser)
    return parser


def _add_blob(commands: Commands) -> None:
    actions = _actions(commands, "blob", "work with containers and blobs of a running server", BLOB_EXAMPLES)
    parser = _command(actions, "create", "blob", "create a container")
    parser.add_argument("container", metavar="CONTAINER", help="container name")
    _account_flags(parser)
    parser = _command(actions, "ls", "blob", "print the names of containers, or of the blobs of one")
    parser.add_argument("container", nargs="?", metavar="CONTAINER", help="container name (all containers)")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="beginning of the names")
    text = "print names that have it behind the prefix as one line, up to it"
    parser.add_argument("--delimiter", default="", metavar="TEXT", help=text)
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each, with length and times")
    _account_flags(parser)
    parser = _command(actions, "put", "blob", "store a file as a blob")
    parser.add_argument("file", metavar="FILE", help="file; -: standard input")
    parser.add_argument("blob", metavar="CONTAINER/BLOB", help="blob name")
    parser.add_argument("--content-type", metavar="TYPE", help="media type (by the name's ending)")
    parser.add_argument("--no-overwrite", action="store_true", help="fail if the blob exists")
    parser.add_argument("--create-container", action="store_true", help="create the container if it does not exist")
    _account_flags(parser)
    parser = _command(actions, "get", "blob", "write a blob to a file")
    parser.add_argument("blob", metavar="CONTAINER/BLOB", help="blob name")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="file; -: standard output (-)")
    _account_flags(parser)
    parser = _command(actions, "mv", "blob", "copy a blob to another name, then delete it")
    parser.add_argument("blob", metavar="CONTAINER/BLOB", help="blob name, as ls prints it")
    parser.add_argument("target", metavar="TARGET", help="CONTAINER/BLOB: the new name")
    parser.add_argument("--no-overwrite", action="store_true", help="fail if the target exists")
    parser.add_argument("--snapshots", action="store_true", help="delete its snapshots, too; they are not copied")
    _account_flags(parser)
    parser = _command(actions, "rm", "blob", "delete a blob, all that begin with a prefix, or a container")
    parser.add_argument("blob", metavar="NAME", help="CONTAINER/BLOB, or CONTAINER, which needs --yes")
    parser.add_argument("--prefix", metavar="TEXT", help="delete all blobs whose names begin with it, and print them")
    parser.add_argument("--yes", action="store_true", help="confirm --prefix, or that a container is deleted")
    parser.add_argument("--snapshots", action="store_true", help="delete snapshots, too")
    _account_flags(parser)


def _add_store(commands: Commands) -> None:
    text = "verify a backup, a location that no process uses, or a database"
    parser = _command(commands, "check", "check", text)
    _long(parser)
    _location_flag(parser)
    parser = _command(commands, "backup", "backup", "back up a location, also while the server runs")
    parser.add_argument("destination", type=Path, metavar="DEST", help="target directory; must be missing or empty")
    parser.add_argument("--verify", action="store_true", help="verify the backup and print a summary")
    _long(parser)
    _location_flag(parser, database=False)
    parser = _command(commands, "restore", "restore", "verify a backup and copy it to a location")
    parser.add_argument("source", type=Path, metavar="SOURCE", help="directory that lazulite backup wrote")
    _long(parser)
    _location_flag(parser, database=False)
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
    _long(parser)


def _add_completion(commands: Commands) -> None:
    text = "print a script by which a shell completes commands and flags"
    parser = _command(commands, "completion", "completion", text, COMPLETION_EXAMPLES)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def _add_transfer(commands: Commands) -> None:
    text = "write the entities of a table to a file"
    parser = _command(commands, "export", "export_table", text, EXPORT_EXAMPLES)
    transfer_flags.add_export(parser)
    _long(parser)
    _account_flags(parser)
    text = "store the rows of a file as entities of a table"
    parser = _command(commands, "import", "import_table", text, IMPORT_EXAMPLES)
    transfer_flags.add_import(parser)
    _long(parser)
    _account_flags(parser)


def _long(parser: Parser) -> None:
    """Add the flag of a long command, see `summary.CommandOutput`."""
    text = "print the summary as an object of JSON, and progress as lines of JSON on stderr"
    parser.add_argument("--json", dest="json_lines", action="store_true", help=text)


def _add_status(commands: Commands) -> None:
    parser = _command(commands, "status", "status", "print the processes of a running server")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each process")
    _control_flags(parser)


def _add_ui(commands: Commands) -> None:
    parser = _command(commands, "ui", "ui", "open the explorer of a running server in a browser")
    text = "port of the explorer, unless it is open (any free one)"
    parser.add_argument("--ui-port", type=port, default=0, metavar="PORT", help=text)
    parser.add_argument("--no-browser", action="store_true", help="print the link, and open no browser")
    _control_flags(parser)


def _add_requests(commands: Commands) -> None:
    text = "print the last requests of a running server, heads only, and why it refused some"
    parser = _command(commands, "requests", "requests", text, REQUESTS_EXAMPLES)
    parser.add_argument("id", nargs="?", metavar="ID", help="id of a request, which is printed in full")
    parser.add_argument("--follow", "-f", action="store_true", help="print requests as they come, until interrupted")
    parser.add_argument("--service", choices=("table", "queue", "blob", "web"), metavar="NAME", help="service (all)")
    parser.add_argument("--account", metavar="NAME", help="account (all)")
    text = "such as 404, 4xx, failed (400 and above) or refused (401, 403)"
    parser.add_argument("--status", metavar="STATUS", help=text)
    parser.add_argument("--text", metavar="TEXT", help="text in the path, the operation, the error code or an id")
    text = "most requests, up to 1,000 (100)"
    parser.add_argument("--limit", type=request_count, default=100, metavar="N", help=text)
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each request")
    _control_flags(parser)


def _add_heat(commands: Commands) -> None:
    text = "show which keys of a table, queue or container are busy, of a server with --meter"
    parser = _command(commands, "heat", "heat", text, HEAT_EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="name of the table, queue or container")
    text = "table, queue or blob (table)"
    parser.add_argument("--service", choices=("table", "queue", "blob"), default="table", metavar="NAME", help=text)
    parser.add_argument("--account", metavar="NAME", help="account (not needed if there is only one)")
    parser.add_argument("--last", type=duration, default=3600.0, metavar="TIME", help="such as 30m, 6h, 28d (1h)")
    text = "write a picture to FILE, by its ending .html, .svg, .png or .json (a summary is printed)"
    parser.add_argument("-o", "--output", type=picture, metavar="FILE", help=text)
    parser.add_argument("--findings", action="store_true", help="print what the traffic says about the keys")
    text = "when there is a finding, such as partition-target=500; repeatable"
    parser.add_argument("--threshold", type=threshold, action="append", default=[], metavar="NAME=N", help=text)
    _location_flag(parser)
    text = "socket of a server; repeatable, for all servers of a database (that of the location)"
    parser.add_argument("--control-socket", type=Path, action="append", metavar="PATH", help=text)


def _add_targets(commands: Commands) -> None:
    text = "show or change the scalability targets of a running server"
    parser = _command(commands, "targets", "targets", text, TARGETS_EXAMPLES)
    parser.add_argument(
        "action", nargs="?", choices=("set",), metavar="set", help="have other targets until the server stops"
    )
    text = "current, study-2010, study-2010-strict, a FILE.toml, or off for no limits"
    parser.add_argument("name", nargs="?", metavar="NAME", help=text)
    parser.add_argument("--json", action="store_true", help="print an object of JSON")
    _control_flags(parser)


def _add_partitions(commands: Commands) -> None:
    text = "show the ranges of a table and where they are"
    parser = _command(commands, "partitions", "partitions", text, PARTITIONS_EXAMPLES)
    parser.add_argument("table", metavar="NAME", help="table name")
    parser.add_argument("--account", metavar="NAME", help="account (not needed if there is only one)")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for the table and each range")
    _control_flags(parser)


def _add_index(commands: Commands) -> None:
    parser = _command(commands, "index", "index", "declare indexes that the service keeps", INDEX_EXAMPLES)
    actions = parser.add_subparsers(dest="index_command", metavar="ACTION", required=True)
    for name, summary in (
        ("create", "declare an index, and build it"),
        ("list", "show the indexes of a table"),
        ("rebuild", "build an index again"),
        ("drop", "drop an index"),
        ("explain", "tell how a filter is served, and why"),
        ("export", "print the indexes of a table as Python"),
    ):
        action = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        action.add_argument("table", metavar="TABLE", help="name of the table")
        if name in ("create", "rebuild", "drop"):
            action.add_argument("index", metavar="NAME", help="name of the index")
        if name == "create":
            text = "property to index; repeatable once, for a second one"
            action.add_argument("--on", action="append", required=True, metavar="PROPERTY", help=text)
            text = "partition: for queries of one partition; table: for all (partition)"
            action.add_argument("--scope", choices=("partition", "table"), default="partition", help=text)
        if name == "explain":
            action.add_argument("filter", metavar="FILTER", help="a $filter, in quotes")
        if name == "export":
            text = "as a class for lazulite-patterns, which keeps such indexes on any account"
            action.add_argument("--as-patterns", action="store_true", required=True, help=text)
        if name in ("list", "explain"):
            text = f"print a line of JSON for {'each' if name == 'list' else 'the query and each'} index"
            action.add_argument("--json", action="store_true", help=text)
        action.add_argument("--account", metavar="NAME", help="account (not needed if there is only one)")
        _control_flags(action)


def _add_expiry(commands: Commands) -> None:
    parser = _command(commands, "expiry", "expiry", "declare when the entities of a table expire", EXPIRY_EXAMPLES)
    actions = parser.add_subparsers(dest="expiry_command", metavar="ACTION", required=True)
    for name, summary in (
        ("set", "have the entities of a table expire"),
        ("list", "show the tables whose entities expire"),
        ("drop", "have the entities of a table expire no more"),
    ):
        action = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == "list":
            action.add_argument("--json", action="store_true", help="print a line of JSON for each table")
        else:
            action.add_argument("table", metavar="TABLE", help="name of the table")
        if name == "set":
            choice = action.add_mutually_exclusive_group(required=True)
            text = "so long after their last write, such as 30m, 6h or 30d"
            choice.add_argument("--after", type=lifetime, metavar="TIME", help=text)
            choice.add_argument("--on", metavar="PROPERTY", help="at the time in a property, a DateTime")
        action.add_argument("--account", metavar="NAME", help="account (not needed if there is only one)")
        _control_flags(action)


def _add_logs(commands: Commands) -> None:
    text = "print the requests that an account's $logs has, here or in the cloud"
    parser = _command(commands, "logs", "logs", text, LOGS_EXAMPLES)
    parser.add_argument("--since", type=duration, default=3600.0, metavar="TIME", help="such as 30m, 6h, 28d (1h)")
    parser.add_argument("--failed", action="store_true", help="print only requests that did not succeed")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each, with all fields")
    text = "file that has the connection string of the account; -: standard input"
    parser.add_argument("--connection-string-file", type=Path, metavar="FILE", help=text)
    _account_flags(parser)


def _add_advise(commands: Commands) -> None:
    text = "advise on the keys of a table, from its queries and writes"
    parser = _command(commands, "advise", "advise", text, advise_flags.EXAMPLES)
    advise_flags.add(parser)
    _account_flags(parser)


def _add_faults(commands: Commands) -> None:
    text = "inject faults into the requests of a running server"
    actions = _actions(commands, "faults", text, FAULTS_EXAMPLES)
    parser = _command(actions, "list", "faults", "print the rules, and how many requests each has seen and hit")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each rule")
    _control_flags(parser)
    parser = _command(actions, "add", "faults", "add the rules of a file, or of a preset")
    text = "file of rules, or ambiguous-writes, cautious-client or flaky-network"
    parser.add_argument("rules", metavar="FILE", help=text)
    _control_flags(parser)
    parser = _command(actions, "remove", "faults", "remove a rule")
    parser.add_argument("name", metavar="NAME", help="name of the rule")
    _control_flags(parser)
    _control_flags(_command(actions, "clear", "faults", "remove all rules, and forget what they counted"))


def _add_stress(commands: Commands) -> None:
    text = "put an endpoint under load, and tell whether it passes by its targets"
    parser = _command(commands, "stress", "stress", text, STRESS_EXAMPLES)
    stress_flags.add(parser)
    _account_flags(parser)


def _control_flags(parser: Parser) -> None:
    """Add the flags that name a running server."""
    _location_flag(parser)
    _control_socket(parser)


def _control_socket(parser: Parser) -> None:
    text = "socket of the server, as lazulite serve --control-socket names it (that of the location)"
    parser.add_argument("--control-socket", type=Path, metavar="PATH", help=text)


def _add_apply(commands: Commands) -> None:
    text = "have a running server have what a seed file says: create what is missing, replace what differs"
    parser = _command(commands, "apply", "apply", text, APPLY_EXAMPLES)
    parser.add_argument("file", type=Path, metavar="FILE", help="seed file, in TOML")
    text = "connection string of another server: env:NAME, file:PATH, or itself (the server of the location)"
    parser.add_argument("--to", metavar="CONN", help=text)
    _account_flags(parser)


def _add_account_copies(commands: Commands) -> None:
    """Add `pull` and `push`, which differ in the direction alone."""
    for name, flag, summary in (
        ("pull", "--from", "copy the data of another server, or of an account in the cloud, to a running server"),
        ("push", "--to", "copy the data of a running server to another one, or to an account in the cloud"),
    ):
        parser = _command(commands, name, "account_copy", summary, PULL_EXAMPLES)
        parser.set_defaults(direction=name)
        address_flags.add_other_side(parser, flag)
        _long(parser)
        _account_flags(parser)


def _add_upgrade(commands: Commands) -> None:
    text = "upgrade the tables of a database to the format of this version"
    _database_flags(_command(commands, "upgrade", "upgrade", text))


def _account_flags(parser: Parser) -> None:
    parser.add_argument("--account", metavar="NAME", help="account (not needed if there is only one)")
    parser.add_argument("--key", type=int, choices=(1, 2), default=1, help="number of the account's key (1)")
    _control_flags(parser)
    address_flags.add_reached(parser)


def _location_flag(parser: Parser, database: bool = True) -> None:
    """Add the flags that name a store; those of a database are hidden from help if the command rejects one."""
    _location_alone(parser)
    _database_flags(parser, hidden=not database)


def _location_alone(parser: Parser) -> None:
    text = f"directory that holds data and accounts (./{DEFAULT_LOCATION})"
    parser.add_argument(
        "--location", "-l", type=Path, action=StoreExplicit, default=DEFAULT_LOCATION, metavar="DIR", help=text
    )


def _database_flags(parser: Parser, hidden: bool = False) -> None:
    flag = parser.add_argument_group("PostgreSQL").add_argument
    text = "database that holds data and accounts instead of a directory: postgresql://user@host1,host2/database"
    flag("--engine", type=database, metavar="URL", help=SUPPRESS if hidden else text)
    text = "file that holds the database password"
    flag("--engine-password-file", type=Path, metavar="FILE", help=SUPPRESS if hidden else text)
