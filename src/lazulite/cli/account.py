"""`lazulite account`: manage the accounts of a location or a database. A running server notices each change."""

import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Mapping

from lazulite.app.stderr import report
from lazulite.auth.accounts.account import Account
from lazulite.auth.accounts.document import DEVELOPMENT_NAME, AccountsError, AccountStore
from lazulite.auth.accounts.switches import Switches
from lazulite.cli.account_stores import account_store
from lazulite.cli.connection_string import connection_string, endpoints_of, scheme_of
from lazulite.cli.errors import CommandError
from lazulite.settings.config import DEVELOPMENT_OFF, ConfigError


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Run the action that the command line names."""
    try:
        _ACTIONS[args.action](args, account_store(args, environ))
    except (AccountsError, ConfigError) as error:
        raise CommandError(error) from None
    return 0


def _add(args: Namespace, store: AccountStore) -> None:
    is_first = store.stored() is None
    keys = store.add(args.name, secrets.token_bytes)
    _print_connection_string(args, Account(args.name, keys))
    if is_first and args.name != DEVELOPMENT_NAME:
        report(DEVELOPMENT_OFF)


def _list(_: Namespace, store: AccountStore) -> None:
    accounts = store.stored()
    if not accounts:
        in_force = "has devstoreaccount1" if accounts is None else "has no account"
        print(f"no accounts in {store.name}; without LAZULITE_ACCOUNTS the service {in_force}", file=sys.stderr)
    for name in accounts or ():
        print(name)


def _rotate_key(args: Namespace, store: AccountStore) -> None:
    keys = store.rotate(args.name, args.key, secrets.token_bytes)
    _print_connection_string(args, Account(args.name, keys), args.key)


def _print_connection_string(args: Namespace, account: Account, key: int = 1) -> None:
    print(connection_string(account, endpoints_of(args, account.name), key, scheme_of(args)))


def _revoke_delegation_keys(args: Namespace, store: AccountStore) -> None:
    store.revoke_delegation_keys(args.name, int(time.time()) + 1)


def _set(args: Namespace, store: AccountStore) -> None:
    changes = {name: getattr(args, name) for name in Switches._fields if getattr(args, name) is not None}
    if not changes:
        raise CommandError(f"pass at least one of {', '.join(map(_flag, Switches._fields))}", 2)
    store.switch(args.name, lambda switches: switches._replace(**changes))


def _show(args: Namespace, store: AccountStore) -> None:
    for name, value in store.switches_of(args.name)._asdict().items():
        print(f"{_flag(name)} {_WORDS[value] if isinstance(value, bool) else value}")


def _flag(switch: str) -> str:
    return f"--{switch.replace('_', '-')}"


_WORDS = {True: "on", False: "off"}
_ACTIONS = {
    "add": _add,
    "list": _list,
    "rotate-key": _rotate_key,
    "set": _set,
    "show": _show,
    "revoke-delegation-keys": _revoke_delegation_keys,
}
