"""Choose the accounts of a command: the stored ones of a location or a database, and those of the environment."""

from argparse import Namespace
from collections.abc import Mapping

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.document import AccountsError, AccountStore
from lazulite.cli.errors import CommandError
from lazulite.settings.config import ConfigError, account_file, accounts_from, database_from


def account_store(args: Namespace, environ: Mapping[str, str]) -> AccountStore:
    """Return the store of the accounts that the flags name.

    Raises:
        ConfigError: the flags do not go together.
    """
    database = database_from(args, environ)
    if database is None:
        return account_file(args.location)
    from lazulite.app.database import DatabaseAccounts  # noqa: PLC0415 - not needed, and not light, for a file

    return DatabaseAccounts(database)


def account_name(args: Namespace) -> str | None:
    """Return the account that an argument or `--account` names; None: neither does.

    Raises:
        CommandError: they name different ones.
    """
    given = {vars(args).get("name"), args.account} - {None}
    if len(given) > 1:
        raise CommandError("NAME and --account are different accounts", 2)
    return given.pop() if given else None


def choose_account(args: Namespace, environ: Mapping[str, str]) -> Account:
    """Return the account that `account_name` returns. Without a name, return the only account.

    Raises:
        CommandError: the account does not exist, the choice is ambiguous, or the accounts cannot be read.
    """
    try:
        directory = AccountDirectory(accounts_from(environ))
        directory.replace(account_store(args, environ).stored())
    except (ConfigError, AccountsError) as error:
        raise CommandError(error) from None
    name, names = account_name(args), directory.names()
    if not names:
        raise CommandError("there is no account; create one: lazulite account add NAME")
    if name is None and len(names) > 1:
        raise CommandError(f"there are several accounts; pass --account with one of {', '.join(names)}")
    account = directory.get(name or names[0])
    if account is None:
        raise CommandError(f"there is no account {name}; the accounts are: {', '.join(names)}")
    return account
