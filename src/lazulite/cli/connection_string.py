"""`lazulite connection-string`, and the endpoints and connection strings that the other commands print."""

import base64
from argparse import Namespace
from collections.abc import Mapping

from lazulite.auth.accounts.account import Account
from lazulite.cli.account_stores import choose_account
from lazulite.cli.errors import Refusal

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not listened on.
"""Addresses to listen on that no client can connect to, and what it connects to instead."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print the connection string of an account."""
    account = choose_account(args, environ)
    if args.sas is None:
        print(connection_string(account, args.table_host, args.table_port, args.key, scheme_of(args)))
    else:
        endpoint = table_endpoint(account.name, args.table_host, args.table_port, scheme_of(args))
        print(f"TableEndpoint={endpoint};SharedAccessSignature={args.sas.removeprefix('?')}")
    return 0


def scheme_of(args: Namespace) -> str:
    """Return the scheme that the flags ask endpoints to have."""
    return "https" if args.https else "http"


def base_url(host: str, port: int, scheme: str = "http") -> str:
    """Return the URL at which clients of this machine reach a service that listens on `host`."""
    host = _EVERYWHERE.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def table_endpoint(account: str, host: str, port: int, scheme: str = "http") -> str:
    """Return an account's table endpoint, path style."""
    return f"{base_url(host, port, scheme)}/{account}"


def connection_string(account: Account, host: str, port: int, key: int = 1, scheme: str = "http") -> str:
    """Return a connection string with one of the account's keys (1 or 2).

    Raises:
        Refusal: the account has no such key.
    """
    if key > len(account.keys):
        raise Refusal(f"account {account.name} has no key {key}")
    secret = base64.b64encode(account.keys[key - 1]).decode()
    return (
        f"DefaultEndpointsProtocol={scheme};AccountName={account.name};AccountKey={secret};"
        f"TableEndpoint={table_endpoint(account.name, host, port, scheme)};"
    )
