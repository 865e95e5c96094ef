"""`lazulite apply`: apply a seed file to a running server, here or in the cloud."""

import sys
from argparse import Namespace
from collections.abc import Mapping

from lazulite.app.seeding import store_accounts
from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.account_stores import account_store, choose_account
from lazulite.cli.connection_string import connection_text
from lazulite.cli.errors import CommandError
from lazulite.cli.http_sender import HttpSender
from lazulite.cli.running_addresses import with_running_addresses
from lazulite.resources.sender import RequestError
from lazulite.seed.apply import Application, Changes
from lazulite.seed.document import AccountSeed, Seed, SeedFileError, read_seed
from lazulite.seed.value import SeedError
from lazulite.settings.config import ConfigError


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Apply the file, and print what was done, a line for each kind of resource."""
    try:
        seed = read_seed(args.file)
    except SeedFileError as error:
        raise CommandError(error) from None
    changes = Changes()
    try:
        if args.to is not None:
            _apply_to(connection_text(args.to, environ), seed, changes)
        else:
            _apply_here(args, environ, seed, changes)
    except SeedError as error:
        raise CommandError(seed.described(error)) from None
    except (RequestError, AccountsError, ConfigError) as error:
        raise CommandError(error) from None
    finally:
        sys.stdout.writelines(f"{line}\n" for line in changes.lines())
    return 0


def _apply_to(connection: str, seed: Seed, changes: Changes) -> None:
    """Apply a seed to the account of a connection string. Raises as `Application.run`."""
    if seed.accounts:
        raise SeedError(seed.accounts[0].at, "a connection string has one account; leave --to out for others")
    with HttpSender(connection) as sender:
        Application(sender, changes).run(seed.own)


def _apply_here(args: Namespace, environ: Mapping[str, str], seed: Seed, changes: Changes) -> None:
    """Apply a seed to the server of a location, accounts first. Raises likewise."""
    store_accounts(seed, account_store(args, environ), changes, environ)
    if seed.own.has_data:
        _fill(args, environ, seed.own, args.account, changes)
    for account in seed.accounts:
        if account.has_data:
            _fill(args, environ, account, account.name, changes)


def _fill(args: Namespace, environ: Mapping[str, str], seed: AccountSeed, name: str | None, changes: Changes) -> None:
    chosen = choose_account(Namespace(**{**vars(args), "account": name}), environ)
    with HttpSender.from_args(with_running_addresses(args, environ), chosen) as sender:
        Application(sender, changes).run(seed)
