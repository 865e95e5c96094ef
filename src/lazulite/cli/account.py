"""`lazulite account`: the accounts of a location or a database. A service that runs there notices each change."""

import secrets
import sys
from argparse import Namespace
from collections.abc import Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.accounts.document import AccountsError, AccountStore
from lazulite.cli.account_stores import account_store
from lazulite.cli.connection_string import connection_string, scheme_of
from lazulite.cli.errors import Refusal
from lazulite.settings.config import ConfigError


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Run one of its actions."""
    try:
        _ACTIONS[args.action](args, account_store(args, environ))
    except (AccountsError, ConfigError) as error:
        raise Refusal(error) from None
    return 0


def _add(args: Namespace, store: AccountStore) -> None:
    keys = store.add(args.name, secrets.token_bytes)
    print(connection_string(Account(args.name, keys), args.table_host, args.table_port, scheme=scheme_of(args)))


def _list(_: Namespace, store: AccountStore) -> None:
    names = list(store.load())
    if not names:
        hint = f"no accounts in {store.name}; without LAZULITE_ACCOUNTS the service has devstoreaccount1"
        print(hint, file=sys.stderr)
    for name in names:
        print(name)


def _rotate_key(args: Namespace, store: AccountStore) -> None:
    keys = store.rotate(args.name, args.key, secrets.token_bytes)
    print(connection_string(Account(args.name, keys), args.table_host, args.table_port, args.key, scheme_of(args)))


_ACTIONS = {"add": _add, "list": _list, "rotate-key": _rotate_key}
