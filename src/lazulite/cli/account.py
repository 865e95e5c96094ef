"""`lazulite account`: manage the accounts of a location or a database. A running server notices each change."""

import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from typing import Any, TypeAlias

from lazulite.app.commands import COUNT_RESOURCES, REMOVE_DATA
from lazulite.app.stderr import report
from lazulite.auth.accounts.account import Account
from lazulite.auth.accounts.document import DEVELOPMENT_NAME, AccountsError, AccountStore
from lazulite.auth.accounts.switches import Switches
from lazulite.cli.account_stores import account_name, account_store
from lazulite.cli.connection_string import connection_string, endpoints_of, scheme_of
from lazulite.cli.errors import CommandError
from lazulite.control.client import Client
from lazulite.control.command import AccountArguments, Command, ControlError
from lazulite.control.socket_file import SOCKET
from lazulite.engine.contract import EngineError
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import DEVELOPMENT_OFF, ConfigError, accounts_from, database_from, store_path

Environment: TypeAlias = Mapping[str, str]


def run(args: Namespace, environ: Environment) -> int:
    """Run the action that the command line names."""
    if args.action != "list":
        args.name = account_name(args)
        if args.name is None:
            raise CommandError(f'name the account (see "lazulite account {args.action} --help")', 2)
    try:
        store = account_store(args, environ)
        if args.action not in ("list", "add"):
            _reject_unstored(args.name, store, environ)
        _ACTIONS[args.action](args, store, environ)
    except (AccountsError, ConfigError, ControlError, EngineError) as error:
        raise CommandError(error) from None
    return 0


def _reject_unstored(name: str, store: AccountStore, environ: Environment) -> None:
    """Reject a change of an account that only the environment has.

    Raises:
        CommandError: there is such an account.
    """
    if name in accounts_from(environ) and name not in (store.stored() or ()):
        raise CommandError(f"account {name} comes from the environment, not from {store.name}; change it there")


def _add(args: Namespace, store: AccountStore, _: Environment) -> None:
    is_first = store.stored() is None
    keys = store.add(args.name, secrets.token_bytes)
    _print_connection_string(args, Account(args.name, keys))
    if is_first and args.name != DEVELOPMENT_NAME:
        report(DEVELOPMENT_OFF)


def _list(_: Namespace, store: AccountStore, __: Environment) -> None:
    accounts = store.stored()
    if not accounts:
        in_force = "has devstoreaccount1" if accounts is None else "has no account"
        print(f"no accounts in {store.name}; without LAZULITE_ACCOUNTS the service {in_force}", file=sys.stderr)
    for name in accounts or ():
        print(name)


def _ask_data(args: Namespace, environ: Environment, command: Command[AccountArguments]) -> Mapping[str, int]:
    """Ask for the data of an account, or remove it: by the server that has the location, or else by this process.

    Raises:
        ControlError: the server cannot do it.
        EngineError: the store cannot be opened, read or written.
        CommandError: another process has the store and takes no requests.
    """
    database = database_from(args, environ)
    if database is None:
        try:
            answer: Any = Client.at(args.location / SOCKET).ask(command, AccountArguments(args.name))
            return dict(answer)
        except ControlError as error:
            if error.code != "no-server":
                raise
        if not (store_path(args.location) / "CURRENT").is_file():
            return {}
    # A removal alone needs the services, whose imports take a while.
    from lazulite.app.account_data import AccountData, caches_of  # noqa: PLC0415
    from lazulite.cli.copy_endpoints import open_endpoint  # noqa: PLC0415
    from lazulite.server import lifecycle  # noqa: PLC0415

    async def ask_here() -> Mapping[str, int]:
        async with open_endpoint(database or args.location, system_clock, must_exist=False) as opened:
            data = AccountData(opened.engine, opened.contents, caches_of({}), shared=database is not None)
            ask = data.count if command is COUNT_RESOURCES else data.remove
            return await ask(args.name)

    return lifecycle.run(ask_here())


def _remove(args: Namespace, store: AccountStore, environ: Environment) -> None:
    store.switches_of(args.name)  # Raises AccountsError if there is no such account.
    counts = _ask_data(args, environ, COUNT_RESOURCES)
    if counts and not args.with_data:
        has = ", ".join(f"{count:,} {noun}" for noun, count in counts.items())
        raise CommandError(f"account {args.name} has {has}; pass --with-data to delete them, too")
    _ask_data(args, environ, REMOVE_DATA)
    store.remove(args.name)
    if args.with_data:
        _ask_data(args, environ, REMOVE_DATA)  # What requests wrote in between.
    if not store.load():
        report("no account is left, not even devstoreaccount1; create one: lazulite account add NAME")


def _rotate_key(args: Namespace, store: AccountStore, _: Environment) -> None:
    keys = store.rotate(args.name, args.key, secrets.token_bytes)
    _print_connection_string(args, Account(args.name, keys), args.key)


def _print_connection_string(args: Namespace, account: Account, key: int = 1) -> None:
    print(connection_string(account, endpoints_of(args, account.name), key, scheme_of(args)))


def _revoke_delegation_keys(args: Namespace, store: AccountStore, _: Environment) -> None:
    store.revoke_delegation_keys(args.name, int(time.time()) + 1)


def _set(args: Namespace, store: AccountStore, _: Environment) -> None:
    changes = {name: getattr(args, name) for name in Switches._fields if getattr(args, name) is not None}
    if not changes:
        raise CommandError(f"pass at least one of {', '.join(map(_flag, Switches._fields))}", 2)
    store.switch(args.name, lambda switches: switches._replace(**changes))


def _show(args: Namespace, store: AccountStore, _: Environment) -> None:
    for name, value in store.switches_of(args.name)._asdict().items():
        print(f"{_flag(name)} {_WORDS[value] if isinstance(value, bool) else value}")


def _flag(switch: str) -> str:
    return f"--{switch.replace('_', '-')}"


_WORDS = {True: "on", False: "off"}
_ACTIONS = {
    "add": _add,
    "remove": _remove,
    "list": _list,
    "rotate-key": _rotate_key,
    "set": _set,
    "show": _show,
    "revoke-delegation-keys": _revoke_delegation_keys,
}
