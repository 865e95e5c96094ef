"""Accounts kept in a database that many processes share: one row, see `document` for its value.

Invariants:
- a change is durable when it returns, and none is lost to another one that was made at the same time;
- the row, once written, is never deleted: it shows that there was an account beside the development account;
- a watcher of the row knows of a change `LOOK_SECONDS` and a read later. While the row cannot be read, or says nothing
  that can be understood, the accounts stay as they were.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.accounts.document import Accounts, AccountsError, Change, read_accounts, write_accounts
from lazulite.engine.commit import Decision, change_row
from lazulite.engine.contract import Engine, EngineError, Key
from lazulite.records.spaces import ACCOUNTS, Space

LOOK_SECONDS = 1.0
"""The time between two looks at the row."""
LOOK_SECONDS_MAX = 2.0
"""The timeout of a look: after a failover, its connection may be to a machine that is gone."""

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
        look_seconds_max: see `LOOK_SECONDS_MAX`.
    """

    def __init__(
        self,
        row: AccountRow,
        directory: AccountDirectory,
        report: Callable[[str], None],
        look_seconds_max: float = LOOK_SECONDS_MAX,
    ) -> None:
        self._row = row
        self._directory = directory
        self._report = report
        self._look_seconds_max = look_seconds_max
        self._seen: bytes | None = None
        self._complaint = ""

    async def start(self) -> None:
        """Look for the first time.

        Raises:
            AccountsError: damaged, or of a newer version.
            EngineError: the database cannot be read.
        """
        self._adopt(await self._row.read())

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Look again and again."""
        while True:
            await sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Look once."""
        complaint = ""
        try:
            async with asyncio.timeout(self._look_seconds_max):
                stored = await self._row.read()
            if stored != self._seen:
                self._adopt(stored)
        except AccountsError as error:
            complaint = str(error)
        except (EngineError, TimeoutError):
            complaint = f"{self._row.name} cannot be read"
        if complaint and complaint != self._complaint:
            self._report(f"{complaint}; the accounts stay as they were")
        self._complaint = complaint

    def _adopt(self, stored: bytes | None) -> None:
        accounts = self._row.decode(stored)
        if accounts is None and self._seen is not None:
            raise AccountsError(f"{self._row.name} is gone")
        self._directory.adopt(accounts)
        self._seen = stored
