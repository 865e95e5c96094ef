"""An endpoint of a copy: an engine, its contents and its accounts."""

from typing import NamedTuple, Protocol

from lazulite.auth.accounts.document import Accounts, Change
from lazulite.auth.accounts.file_store import AccountFile
from lazulite.engine.content.contract import ContentStore
from lazulite.engine.contract import Engine


class MigrationError(Exception):
    """A copy cannot be made, or is damaged. The text is one line for people, without secrets."""


class EndpointAccounts(Protocol):
    """The stored accounts of an endpoint: an `AccountRow` or a file."""

    async def load(self) -> Accounts:
        """Return the accounts. Raises AccountsError."""
        ...

    async def edit(self, change: Change) -> Accounts:
        """Change the accounts durably and return the result. Raises AccountsError."""
        ...


class FileAccounts:
    """The accounts of a location, in the file beside its store."""

    def __init__(self, file: AccountFile) -> None:
        self._file = file

    async def load(self) -> Accounts:
        """See `EndpointAccounts`."""
        return self._file.load()

    async def edit(self, change: Change) -> Accounts:
        """See `EndpointAccounts`."""
        return self._file.edit(change)


class Endpoint(NamedTuple):
    """The source or the target of a copy."""

    name: str
    """The identity of the store, the same in each run, without a password."""
    engine: Engine
    accounts: EndpointAccounts
    contents: ContentStore
