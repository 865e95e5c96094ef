"""Which accounts a command is about: those of a location or of a database, and beside them the environment's."""

from argparse import Namespace
from collections.abc import Mapping

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.document import AccountsError, AccountStore
from lazulite.cli.errors import Refusal
from lazulite.settings.config import ConfigError, account_file, accounts_from, database_from


def account_store(args: Namespace, environ: Mapping[str, str]) -> AccountStore:
    """Return where the accounts are kept.

    Raises:
        ConfigError: the flags do not go together.
    """
    database = database_from(args, environ)
    if database is None:
        return account_file(args.location)
    from lazulite.app.database import DatabaseAccounts  # noqa: PLC0415 - not needed, and not light, for a file

    return DatabaseAccounts(database)


def choose_account(args: Namespace, environ: Mapping[str, str]) -> Account:
    """Return the account of the flag's name, or without the flag the only one that there is.

    Raises:
        Refusal: there is none such, or several to choose from, or they cannot be read.
    """
    try:
        directory = AccountDirectory(accounts_from(environ))
        directory.adopt(account_store(args, environ).load() or None)
    except (ConfigError, AccountsError) as error:
        raise Refusal(error) from None
    name, names = args.account, directory.names()
    if name is None and len(names) > 1:
        raise Refusal(f"there are several accounts; pass --account with one of {', '.join(names)}")
    account = directory.get(name or names[0])
    if account is None:
        raise Refusal(f"there is no account {name}; the accounts are: {', '.join(names)}")
    return account
