"""`lazulite account`: the accounts that are kept at a location. A service that runs there notices each change."""

import secrets
import sys
from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.connection_string import connection_string, scheme_of
from lazulite.cli.refusal import Refusal
from lazulite.config import account_file
from lazulite.protocol.accounts import Account
from lazulite.protocol.stored_accounts import AccountsError


def run(args: Namespace, _: Mapping[str, str]) -> int:
    """Run one of its actions."""
    try:
        _ACTIONS[args.action](args)
    except AccountsError as error:
        raise Refusal(error) from None
    return 0


def _add(args: Namespace) -> None:
    keys = account_file(args.location).add(args.name, secrets.token_bytes)
    print(connection_string(Account(args.name, keys), args.table_host, args.table_port, scheme=scheme_of(args)))


def _list(args: Namespace) -> None:
    names = list(account_file(args.location).load())
    if not names:
        hint = f"no accounts in {args.location}; without LAZULITE_ACCOUNTS the service has devstoreaccount1"
        print(hint, file=sys.stderr)
    for name in names:
        print(name)


def _rotate_key(args: Namespace) -> None:
    keys = account_file(args.location).rotate(args.name, args.key, secrets.token_bytes)
    print(connection_string(Account(args.name, keys), args.table_host, args.table_port, args.key, scheme_of(args)))


_ACTIONS = {"add": _add, "list": _list, "rotate-key": _rotate_key}
