"""A database, opened for as long as it is needed, and the accounts in it, for commands that need nothing else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from lazulite.auth.accounts.document import Accounts, AccountsError, AccountStore, Change
from lazulite.auth.accounts.engine_store import AccountRow
from lazulite.engine.contract import Clock, EngineError, StoreUnusableError
from lazulite.engine.postgres import schema
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.remote.codec import Codec
from lazulite.protocol.clock import system_clock
from lazulite.server import lifecycle

T = TypeVar("T")


@asynccontextmanager
async def open_database(
    settings: PostgresSettings,
    report: Callable[[str], None],
    clock: Clock = system_clock,
    *,
    must_exist: bool = False,
    codec: Codec | None = None,
) -> AsyncIterator[PostgresEngine]:
    """Yield an engine that is connected and has its tables.

    Args:
        settings: of the database.
        report: takes a line for people about each of its settings that endanger data.
        clock: for what is written.
        codec: encodes commits for other processes.
        must_exist: whether to reject a database without tables of Lazulite instead of making them.

    Raises:
        EngineError: the database cannot be reached, or is none of this version. The text has its name.
    """
    engine = PostgresEngine(settings, clock, report=report, codec=codec)
    try:
        try:
            if must_exist and not await schema.has_tables(settings):
                raise StoreUnusableError("there is no store in this database")
            await engine.start()
        except EngineError as error:
            raise type(error)(f"{engine.name}: {error}") from error
        yield engine
    finally:
        await engine.close()


class DatabaseAccounts(AccountStore):
    """The accounts in a database; each call opens it and closes it again."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """See `AccountStore`."""
        return self._settings.name

    def stored(self) -> Accounts | None:
        """See `AccountStore`."""

        async def read(row: AccountRow) -> Accounts | None:
            return row.decode(await row.read())

        return self._ask(read)

    def edit(self, change: Change) -> Accounts:
        """See `AccountStore`."""
        return self._ask(lambda row: row.edit(change))

    def _ask(self, call: Callable[[AccountRow], Awaitable[T]]) -> T:
        async def ask() -> T:
            async with open_database(self._settings, lambda _: None) as engine:
                return await call(AccountRow(engine, engine.name))

        try:
            return lifecycle.run(ask())
        except EngineError as error:
            raise AccountsError(str(error)) from error
