"""The commands about when entities expire: by the process that has the store, beside its requests."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from lazulite.app.account_data import Invalidated
from lazulite.app.commands import EXPIRY_DROP, EXPIRY_LIST, EXPIRY_SET, ExpiryDeclaration, TableArguments
from lazulite.app.traffic import account_of
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.control.channel import Channel
from lazulite.control.command import AccountArguments, ControlError, Json
from lazulite.engine.contract import Engine
from lazulite.engine.store_format import raise_format
from lazulite.protocol.errors import ServiceError
from lazulite.records.spaces import TABLES
from lazulite.table.catalog import Catalog, row_of
from lazulite.table.expiry.definition import Expiry, ExpiryError, check_expiry


class ExpiryCommands:
    """The commands about when entities expire, on one store.

    Args:
        engine: of the store.
        directory: the accounts.
        invalidated: keeps rows out of all caches while they are changed.
    """

    def __init__(self, engine: Engine, directory: AccountDirectory, invalidated: Invalidated) -> None:
        self._engine = engine
        self._catalog = Catalog(engine)
        self._directory = directory
        self._invalidated = invalidated

    def register(self, channel: Channel) -> None:
        """Have the commands run in this process."""
        channel.register(EXPIRY_LIST, self.list)
        channel.register(EXPIRY_SET, self.set)
        channel.register(EXPIRY_DROP, self.drop)

    async def list(self, of: AccountArguments) -> AsyncGenerator[Json, None]:
        """Yield an object for each table whose entities expire."""
        account = account_of(self._directory, of.account)
        async with aclosing(self._catalog.list(account, "")) as tables:
            async for table in tables:
                expiry = table.indexes.expiry
                if expiry is not None:
                    yield {"table": table.name, **expiry.fields()}

    async def set(self, of: ExpiryDeclaration) -> AsyncGenerator[Json, None]:
        """Declare when the entities of a table expire."""
        expiry = Expiry(of.after_seconds, of.on)
        try:
            check_expiry(expiry)
        except ExpiryError as error:
            raise ControlError("bad-expiry", str(error)) from None
        yield await self._declare(of.account, of.table, expiry)

    async def drop(self, of: TableArguments) -> AsyncGenerator[Json, None]:
        """Declare that the entities of a table do not expire."""
        yield await self._declare(of.account, of.table, None)

    async def _declare(self, account: str, table: str, expiry: Expiry | None) -> Json:
        account = account_of(self._directory, account)
        found = await self._catalog.read(account, table) if table.isascii() else None
        if found is None:
            raise ControlError("no-table", f"account {account} has no table {table[:64]}")
        if expiry is None and found.indexes.expiry is None:
            raise ControlError("no-expiry", f"the entities of {found.name} do not expire")
        await raise_format(self._engine)
        try:
            async with self._invalidated(TABLES, [(account, row_of(table))]):
                changed = await self._catalog.set_expiry(account, table, expiry)
        except ServiceError:
            raise ControlError("no-table", f"the table {found.name} was deleted meanwhile") from None
        return {"table": changed.name}
