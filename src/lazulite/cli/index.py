"""`lazulite index`: declare, build, list, explain, export and drop indexes of a table."""

import json
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from lazulite.app.commands import (
    INDEX_BUILD,
    INDEX_CREATE,
    INDEX_DROP,
    INDEX_EXPLAIN,
    INDEX_EXPORT,
    INDEX_LIST,
    ExplainArguments,
    IndexArguments,
    IndexDeclaration,
    TableArguments,
)
from lazulite.cli.account_stores import choose_account
from lazulite.cli.errors import CommandError
from lazulite.cli.index_export import IndexDefinition, patterns_module
from lazulite.cli.selected_database import selected_database
from lazulite.control.client import Client
from lazulite.control.command import Command, ControlError, Json
from lazulite.control.socket_file import SOCKET
from lazulite.engine.contract import EngineError
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import ConfigError

A = TypeVar("A")
Environment = Mapping[str, str]
Take = Callable[[Json], None]


def run(args: Namespace, environ: Environment) -> int:
    """Run a command on the indexes of a table."""
    try:
        _COMMANDS[args.index_command](args, environ)
    except (ControlError, EngineError, ConfigError) as error:
        raise CommandError(error) from None
    return 0


def _list(args: Namespace, environ: Environment) -> None:
    found: list[Any] = []
    _each(args, environ, INDEX_LIST, TableArguments(args.table, args.account or ""), found.append)
    if args.json:
        _print_json(found)
        return
    for each in found:
        successor = "; its successor" if each["state"] == "ready" else ""
        rows = "" if each["rows"] is None else f"{successor}, {each['rows']:,} rows gone through"
        print(f"{each['name']}: on {', '.join(each['on'])}; scope {each['scope']}; {each['state']}{rows}")


def _create(args: Namespace, environ: Environment) -> None:
    first, *others = args.on
    if len(others) > 1:
        raise CommandError("an index has one property, or 2 different ones", 2)
    of = IndexDeclaration(args.table, args.index, first, "".join(others), args.scope, args.account or "")
    _each(args, environ, INDEX_CREATE, of, _show_rows)
    _report(f"{args.index} is ready")


def _rebuild(args: Namespace, environ: Environment) -> None:
    of = IndexArguments(args.table, args.index, args.account or "", again=True)
    _each(args, environ, INDEX_BUILD, of, _show_rows)
    _report(f"{args.index} is ready")


def _drop(args: Namespace, environ: Environment) -> None:
    _each(args, environ, INDEX_DROP, IndexArguments(args.table, args.index, args.account or ""), lambda _: None)


def _explain(args: Namespace, environ: Environment) -> None:
    found: list[Any] = []
    _each(args, environ, INDEX_EXPLAIN, ExplainArguments(args.table, args.filter, args.account or ""), found.append)
    if args.json:
        _print_json(found)
        return
    for line in _explained(*found):
        print(line)


def _explained(query: Mapping[str, Any], *indexes: Mapping[str, Any]) -> Iterator[str]:
    uses = " and ".join(query["uses"])
    yield f"{query['class']} in the cloud; here {f'by {uses}' if uses else 'the same'}"
    for each in indexes:
        yield f"{each['index']}: {'used' if each['used'] else 'not used'}: {each['why']}"


def _export(args: Namespace, environ: Environment) -> None:
    found: list[Any] = []
    _each(args, environ, INDEX_EXPORT, TableArguments(args.table, args.account or ""), found.append)
    print(patterns_module(args.table, [IndexDefinition(**each) for each in found]), end="")


_COMMANDS = {
    "list": _list,
    "create": _create,
    "rebuild": _rebuild,
    "drop": _drop,
    "explain": _explain,
    "export": _export,
}


def _print_json(items: Iterable[Json]) -> None:
    for item in items:
        print(json.dumps(item))


def _show_rows(item: Json) -> None:
    assert isinstance(item, Mapping)
    _report(f"{item['rows']:,} rows gone through")


def _report(line: str) -> None:
    print(line, file=sys.stderr)


def _each(args: Namespace, environ: Environment, command: Command[A], arguments: A, take: Take) -> None:
    """Take each item of a command that the server runs, or this process if there is none.

    Raises:
        ControlError: the command was rejected.
        EngineError: the store cannot be opened, read or written.
    """
    database = selected_database(args, environ)
    if args.control_socket is not None or database is None:
        client = Client.at(args.control_socket or args.location / SOCKET)
        try:
            for item in client.stream(command, arguments):
                take(item)
            return
        except ControlError as error:
            if error.code != "no-server" or args.control_socket is not None:
                raise
    _run_here(args, environ, command, arguments, take)


def _run_here(args: Namespace, environ: Environment, command: Command[A], arguments: A, take: Take) -> None:
    # Only a command without a server needs the services, whose imports take a while.
    from lazulite.app.account_data import caches_of  # noqa: PLC0415
    from lazulite.app.indexes import IndexCommands  # noqa: PLC0415
    from lazulite.auth.accounts.account import AccountDirectory  # noqa: PLC0415
    from lazulite.cli.copy_endpoints import open_endpoint  # noqa: PLC0415
    from lazulite.server import lifecycle  # noqa: PLC0415

    account = choose_account(args, environ)

    async def work() -> None:
        store = selected_database(args, environ) or args.location
        async with open_endpoint(store, system_clock, must_exist=True) as opened:
            commands = IndexCommands(opened.engine, AccountDirectory({account.name: account}), caches_of({}))
            handlers: Mapping[str, Callable[[Any], AsyncGenerator[Json, None]]] = {
                INDEX_LIST.name: commands.list,
                INDEX_CREATE.name: commands.create,
                INDEX_BUILD.name: commands.build,
                INDEX_DROP.name: commands.drop,
                INDEX_EXPLAIN.name: commands.explain,
                INDEX_EXPORT.name: commands.export,
            }
            async with commands.running(), aclosing(handlers[command.name](arguments)) as items:
                async for item in items:
                    take(item)

    lifecycle.run(work())
