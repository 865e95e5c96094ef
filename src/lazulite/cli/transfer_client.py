"""Where `lazulite export` and `lazulite import` find tables, and how they run."""

from argparse import Namespace
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from lazulite.auth.token_source import TokenSource
from lazulite.cli.account_stores import choose_account
from lazulite.cli.connection_string import connection_text, endpoints_of, reachable, read_connection_string
from lazulite.cli.errors import CommandError
from lazulite.cli.running_addresses import endpoint_hint, served, with_running_addresses
from lazulite.server import lifecycle
from lazulite.settings.extras import require_extra
from lazulite.transfer.http_client import HttpClient, TransferError
from lazulite.transfer.inputs import InputError
from lazulite.transfer.table_client import TableClient

PERMISSION = "rwdlacu"
T = TypeVar("T")


@asynccontextmanager
async def open_tables(args: Namespace, environ: Mapping[str, str]) -> AsyncIterator[TableClient]:
    """Yield the tables of the account that the flags name, or a connection string.

    Raises:
        CommandError: there is no such account or key, or the connection string is none.
    """
    async with _http(args, environ) as http:
        yield TableClient(http)


def _http(args: Namespace, environ: Mapping[str, str]) -> HttpClient:
    if args.connection is not None:
        stated = read_connection_string(connection_text(args.connection, environ), "table")
        renewed = TokenSource(stated.account, 1, "table", PERMISSION)
        return HttpClient(stated.endpoint, (lambda: stated.token) if stated.token else renewed)
    account, args = choose_account(args, environ), with_running_addresses(args, environ)
    if args.key > len(account.keys):
        raise CommandError(f"account {account.name} has no key {args.key}")
    endpoint = served(endpoints_of(args, account.name), "table")
    token, host = TokenSource(account, args.key, "table", PERMISSION), reachable(args.table_host)
    return HttpClient(endpoint, token, host, endpoint_hint(args, "table"))


def run(main: Coroutine[object, object, T]) -> T:
    """Run a transfer; its errors become those of a command."""
    try:
        return lifecycle.run(main)
    except (TransferError, InputError) as error:
        raise CommandError(error) from error


def check_format(name: str) -> None:
    """Raise `CommandError` if a format needs an extra that is not installed."""
    if name == "parquet":
        try:
            require_extra("parquet", "Parquet")
        except ValueError as error:
            raise CommandError(error) from None
