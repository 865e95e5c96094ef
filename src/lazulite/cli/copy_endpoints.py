"""Open the endpoints of a copy: a location or a database each."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from lazulite.app.stderr import report
from lazulite.auth.accounts.engine_store import AccountRow
from lazulite.cli.errors import CommandError
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.contract import Clock, DataDirectoryInUseError
from lazulite.engine.postgres.dsn import DatabaseUrl
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.migration.endpoint import Endpoint, FileAccounts
from lazulite.settings.config import BACKUP_MANIFEST, account_file, content_path, store_path
from lazulite.settings.database import password_of
from lazulite.settings.extras import require_extra

EndpointAddress: TypeAlias = Path | PostgresSettings
"""A location, or the settings of a database."""


def endpoint_address(store: Path | DatabaseUrl, environ: Mapping[str, str], variable: str) -> EndpointAddress:
    """Return the address of an endpoint, with the password of a database.

    Args:
        store: the value of `--from` or `--to`.
        environ: the environment.
        variable: the name of the variable that holds the password; with `_FILE`, of the one that names a file.

    Raises:
        CommandError: the password cannot be read, or the extra `postgres` is not installed.
    """
    if isinstance(store, Path):
        return store.resolve()
    try:
        require_extra("postgres", "a database")
        return PostgresSettings(dsn=store.text, password=password_of(store, environ, variable=variable))
    except ValueError as error:
        raise CommandError(error) from None


def open_endpoint(address: EndpointAddress, clock: Clock, *, must_exist: bool) -> AbstractAsyncContextManager[Endpoint]:
    """Open a store for exclusive use.

    Args:
        address: the location or the database.
        clock: the clock of the store that is opened.
        must_exist: whether a missing store is an error.

    Raises:
        CommandError: the store is missing, is a backup, or is in use.
        EngineError: the store cannot be opened.
    """
    if isinstance(address, Path):
        return _location(address, clock, must_exist=must_exist)
    return _database(address, clock, must_exist=must_exist)


@asynccontextmanager
async def _location(location: Path, clock: Clock, *, must_exist: bool) -> AsyncIterator[Endpoint]:
    if (location / BACKUP_MANIFEST).exists():
        raise CommandError(f"{location} is a backup; copy it to a location with lazulite restore")
    if must_exist and not (store_path(location) / "CURRENT").is_file():
        raise CommandError(f"there is no store in {location}")
    try:
        engine = RocksEngine.open(store_path(location), clock)
    except DataDirectoryInUseError as error:
        raise CommandError(f"{error}; stop that process first") from error
    contents = ContentFiles(content_path(location))
    try:
        yield Endpoint(str(location), engine, FileAccounts(account_file(location)), contents)
    finally:
        await engine.close()
        await contents.close()


@asynccontextmanager
async def _database(settings: PostgresSettings, clock: Clock, *, must_exist: bool) -> AsyncIterator[Endpoint]:
    from lazulite.app.database import open_database  # noqa: PLC0415 - it needs an extra

    async with open_database(settings, report, clock, must_exist=must_exist) as engine:
        contents = await engine.contents()
        try:
            yield Endpoint(engine.name, engine, AccountRow(engine, engine.name), contents)
        finally:
            await contents.close()
