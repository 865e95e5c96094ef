"""Accounts kept in a database that many processes share: one row, see `document` for its value.

Invariants:
- a change is durable when it returns, and none is lost to another one that was made at the same time;
- the row, once written, is never deleted: it shows that there was an account beside the development account;
- a watcher of the row knows of a change `POLL_SECONDS` and a read later. While the row cannot be read or
  decoded, the accounts stay as they were.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.accounts.document import Accounts, AccountsError, Change, read_accounts, write_accounts
from lazulite.engine.commit import Decision, change_row
from lazulite.engine.contract import Engine, EngineError, Key
from lazulite.records.spaces import ACCOUNTS, Space

POLL_SECONDS = 1.0
"""The time between two reads of the row."""
POLL_TIMEOUT_SECONDS = 2.0
"""The timeout of a read: after a failover, its connection may be to a machine that is gone."""

PARTITION = ROW = "accounts"


def _verify(_: Key, value: bytes) -> None:
    read_accounts(value, "the list of accounts")


ACCOUNTS_SPACE = Space(number=ACCOUNTS, owner="", title="the list of accounts", verify=_verify)


class AccountRow:
    """The accounts in an engine.

    Args:
        engine: where they are.
        name: what the database is called in messages.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = f"the list of accounts in {name}"

    async def load(self) -> Accounts:
        """Return the accounts.

        Raises:
            AccountsError: damaged, or of a newer version.
            EngineError: the database cannot be read.
        """
        return self.decode(await self.read()) or {}

    async def edit(self, change: Change) -> Accounts:
        """Change the accounts, durably, and return what they are now.

        Raises:
            AccountsError: `change` raised it, or they cannot be read.
            EngineError: the database cannot be read or written.
        """

        def rewrite(current: bytes | None) -> Decision[Accounts]:
            accounts = change(self.decode(current))
            return Decision({ROW: write_accounts(accounts)}, accounts)

        return await self._engine.commit(ACCOUNTS, PARTITION, change_row(ROW, rewrite))

    async def read(self) -> bytes | None:
        """Return what is stored; None: never anything."""
        return await self._engine.get(ACCOUNTS, PARTITION, ROW)

    def decode(self, stored: bytes | None) -> Accounts | None:
        """Return the accounts of what `read` returned.

        Raises:
            AccountsError: damaged, or of a newer version.
        """
        return None if stored is None else read_accounts(stored, self.name)


class AccountWatcher:
    """Tells a directory of the accounts in an engine, now and whenever they have changed.

    Args:
        row: where they are.
        directory: takes the accounts.
        report: gets the reason, once for each state of it, if the accounts cannot be read.
        poll_timeout_seconds: see `POLL_TIMEOUT_SECONDS`.
    """

    def __init__(
        self,
        row: AccountRow,
        directory: AccountDirectory,
        report: Callable[[str], None],
        poll_timeout_seconds: float = POLL_TIMEOUT_SECONDS,
    ) -> None:
        self._row = row
        self._directory = directory
        self._report = report
        self._poll_timeout_seconds = poll_timeout_seconds
        self._seen: bytes | None = None
        self._problem = ""

    async def start(self) -> None:
        """Read the row for the first time.

        Raises:
            AccountsError: damaged, or of a newer version.
            EngineError: the database cannot be read.
        """
        self._apply(await self._row.read())

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Read the row again and again."""
        while True:
            await sleep(POLL_SECONDS)
            await self.poll()

    async def poll(self) -> None:
        """Read the row once."""
        problem = ""
        try:
            async with asyncio.timeout(self._poll_timeout_seconds):
                stored = await self._row.read()
            if stored != self._seen:
                self._apply(stored)
        except AccountsError as error:
            problem = str(error)
        except (EngineError, TimeoutError):
            problem = f"{self._row.name} cannot be read"
        if problem and problem != self._problem:
            self._report(f"{problem}; the accounts stay as they were")
        self._problem = problem

    def _apply(self, stored: bytes | None) -> None:
        accounts = self._row.decode(stored)
        if accounts is None and self._seen is not None:
            raise AccountsError(f"{self._row.name} is gone")
        self._directory.replace(accounts)
        self._seen = stored
