"""Commands on what a store declares for its tables: run by its server, or by this process if there is none."""

from argparse import Namespace
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from lazulite.app.commands import (
    EXPIRY_DROP,
    EXPIRY_LIST,
    EXPIRY_SET,
    INDEX_BUILD,
    INDEX_CREATE,
    INDEX_DROP,
    INDEX_EXPLAIN,
    INDEX_EXPORT,
    INDEX_LIST,
)
from lazulite.cli.account_stores import choose_account
from lazulite.cli.selected_database import selected_database
from lazulite.control.client import Client
from lazulite.control.command import Command, ControlError, Json
from lazulite.control.socket_file import SOCKET
from lazulite.protocol.clock import system_clock

A = TypeVar("A")
Environment = Mapping[str, str]
Take = Callable[[Json], None]


def run_on_store(args: Namespace, environ: Environment, command: Command[A], arguments: A, take: Take) -> None:
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
    from lazulite.app.expiry import ExpiryCommands  # noqa: PLC0415
    from lazulite.app.indexes import IndexCommands  # noqa: PLC0415
    from lazulite.auth.accounts.account import AccountDirectory  # noqa: PLC0415
    from lazulite.cli.copy_endpoints import open_endpoint  # noqa: PLC0415
    from lazulite.server import lifecycle  # noqa: PLC0415

    account = choose_account(args, environ)

    async def work() -> None:
        store = selected_database(args, environ) or args.location
        async with open_endpoint(store, system_clock, must_exist=True) as opened:
            directory = AccountDirectory({account.name: account})
            commands = IndexCommands(opened.engine, directory, caches_of({}))
            expiry = ExpiryCommands(opened.engine, directory, caches_of({}))
            handlers: Mapping[str, Callable[[Any], AsyncGenerator[Json, None]]] = {
                INDEX_LIST.name: commands.list,
                INDEX_CREATE.name: commands.create,
                INDEX_BUILD.name: commands.build,
                INDEX_DROP.name: commands.drop,
                INDEX_EXPLAIN.name: commands.explain,
                INDEX_EXPORT.name: commands.export,
                EXPIRY_LIST.name: expiry.list,
                EXPIRY_SET.name: expiry.set,
                EXPIRY_DROP.name: expiry.drop,
            }
            async with commands.running(), aclosing(handlers[command.name](arguments)) as items:
                async for item in items:
                    take(item)

    lifecycle.run(work())
