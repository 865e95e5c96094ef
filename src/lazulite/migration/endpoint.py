"""The two ends of a copy: an engine, and the accounts that go with it."""

from typing import NamedTuple, Protocol

from lazulite.auth.accounts.document import Accounts, Change
from lazulite.auth.accounts.file_store import AccountFile
from lazulite.engine.contract import Engine


class TransferError(Exception):
    """The copy cannot be made, or is not what it should be. The text is one line for people, without secrets."""


class KeptAccounts(Protocol):
    """The durable accounts of a store: an `AccountRow`, or a file."""

    async def load(self) -> Accounts:
        """Return the accounts. Raises AccountsError."""
        ...

    async def edit(self, change: Change) -> Accounts:
        """Change the accounts, durably, and return what they are now. Raises AccountsError."""
        ...


class FileAccounts:
    """Those of an embedded store: a file beside it."""

    def __init__(self, file: AccountFile) -> None:
        self._file = file

    async def load(self) -> Accounts:
        """See `KeptAccounts`."""
        return self._file.load()

    async def edit(self, change: Change) -> Accounts:
        """See `KeptAccounts`."""
        return self._file.edit(change)


class Store(NamedTuple):
    """One end of a copy."""

    name: str
    """The same whenever the same store is meant; without a password."""
    engine: Engine
    accounts: KeptAccounts
